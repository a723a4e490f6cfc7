"""What packages for JavaScript, browsers and tools send that those for Python do not, as they send it."""

import pytest

from http_wire import Wire
from served_models import chat_folder
from serving_toy import post, running

PAGE = "https://chat.example"
CHAT, ITEMS, BLOCKS = "/v1/chat/completions", "/v1/responses", "/v1/messages"
SAID = [{"role": "user", "content": "the cat"}]
WORDS = {"type": "object", "properties": {"word": {"enum": ["yes"]}}, "required": ["word"]}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": WORDS}} for name in ("one", "two")]


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = chat_folder(tmp_path_factory.mktemp("models") / "tiny", context=512)
    with running(folder, "float32", cors_origin=PAGE) as server:
        yield server


def ask(toy, method, path, **headers):
    with Wire(int(toy.url.rsplit(":", 1)[1])) as wire:
        return wire.ask(method, path, **{name.replace("_", "-"): value for name, value in headers.items()})


def chat(toy, path=CHAT, **fields):
    return post(toy, {"messages": SAID, "max_tokens": 40, "seed": 1, **fields}, path)


def refused(toy, path=CHAT, **fields):
    status, answer = chat(toy, path, **fields)
    assert status == 400, answer
    return answer["error"]


def test_a_reference_stands_for_an_item_of_a_kept_response(toy):
    """Vercel's ai names what the assistant said by its id, from the second turn on."""
    first = post(toy, {"input": "the cat", "max_output_tokens": 4}, ITEMS)[1]
    (item,) = first["output"]
    turns = [{"role": "user", "content": "the cat"}, item, {"role": "user", "content": "the dog"}]
    told = [turn if "id" not in turn else {"type": "item_reference", "id": turn["id"]} for turn in turns]
    counts = [post(toy, {"input": given}, f"{ITEMS}/input_tokens")[1]["input_tokens"] for given in (turns, told)]
    assert counts[0] == counts[1]
    assert post(toy, {"input": told, "max_output_tokens": 4}, ITEMS)[0] == 200
    status, answer = post(toy, {"input": [{"type": "item_reference", "id": "msg_other"}]}, ITEMS)
    assert (status, answer["error"]["param"], "msg_other" in answer["error"]["message"]) == (404, "input[0]", True)


@pytest.mark.parametrize("mode", ["required", "auto"])
def test_a_chat_allows_some_of_its_tools(toy, mode):
    def choice(name):
        return {
            "type": "allowed_tools",
            "allowed_tools": {"mode": mode, "tools": [{"type": "function", "function": {"name": name}}]},
        }

    status, answer = chat(toy, tools=TOOLS, tool_choice=choice("two"), max_tokens=99)
    assert status == 200, answer
    calls = [call["function"]["name"] for call in answer["choices"][0]["message"].get("tool_calls", [])]
    assert calls == (["two"] if mode == "required" else [])
    assert refused(toy, tools=TOOLS, tool_choice=choice("three"))["param"] == "tool_choice"


@pytest.mark.parametrize(("path", "tool"), [
    (CHAT, {"type": "custom", "custom": {"name": "x"}}), (ITEMS, {"type": "web-search"}),
    (BLOCKS, {"type": "bash_20250124", "name": "bash"}),
])  # fmt: skip
def test_a_tool_of_another_kind_is_named(toy, path, tool):
    said = {"input": "Hi"} if path == ITEMS else {"messages": SAID, "max_tokens": 4}
    status, answer = post(toy, {**said, "tools": [tool]}, path)
    assert (status, repr(tool["type"]) in answer["error"]["message"]) == (400, True), answer


def test_anthropics_package_is_told_to_send_whole_conversations(toy):
    """Its tool runner leaves ``thread`` out only after an error with these details."""
    error = refused(toy, BLOCKS, thread={"type": "create"})
    assert error["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    assert "details" not in refused(toy, BLOCKS, container="x")


def test_anthropics_fields_are_named_as_they_were_sent(toy):
    assert refused(toy, BLOCKS, output_config={"effort": "low"})["message"].startswith("output_config.effort")
    found = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "a"}]}
    message = refused(toy, BLOCKS, messages=[{"role": "user", "content": [found]}])["message"]
    assert "messages[0].content[0]" in message
    assert "search_result" in message


def test_what_claude_code_sends_is_answered(toy):
    """It sends the usual effort, an edit that leaves nothing out, and words of the system behind the user's."""
    sent = {
        "messages": [*SAID, {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}],
        "thinking": {"type": "adaptive"}, "output_config": {"effort": "high"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    }  # fmt: skip
    assert chat(toy, BLOCKS, **sent)[0] == 200
    counts = [chat(toy, f"{BLOCKS}/count_tokens", **given)[1]["input_tokens"] for given in (sent, {})]
    added = toy.served.lm.tokenizer.encode("Be brief.")
    assert counts[0] - counts[1] > len(added)
    sent["context_management"]["edits"][0]["keep"] = {"type": "thinking_turns", "value": 1}
    assert refused(toy, BLOCKS, **sent)["message"].startswith("context_management")


def test_models_are_told_to_anthropics_clients_in_their_form(toy):
    page = ask(toy, "GET", "/v1/models?limit=20", anthropic_version="2023-06-01").json
    assert (page["has_more"], page["first_id"], page["last_id"]) == (False, "toy", "toy")
    (card,) = page["data"]
    assert (card["type"], card["id"], card["display_name"], card["max_input_tokens"]) == ("model", "toy", "toy", 512)
    assert card["created_at"].endswith("Z")
    assert ask(toy, "GET", "/v1/models/toy", anthropic_version="2023-06-01").json == card
    assert ask(toy, "GET", "/v1/models").json["object"] == "list"


def test_the_usual_verbosity_changes_nothing(toy):
    assert chat(toy, verbosity="medium", max_tokens=2)[0] == 200
    assert refused(toy, verbosity="low")["param"] == "verbosity"


@pytest.mark.parametrize("field", [{"max_output_tokens": 5}, {"tool_choice": "required"}])
def test_fields_that_are_none_of_ollamas_are_refused(toy, field):
    """``ollama-ai-provider-v2`` sends them beside the options."""
    assert next(iter(field)) in post(toy, {"messages": SAID, **field}, "/api/chat")[1]["error"]
    given = {"messages": SAID, "tools": TOOLS, "tool_choice": "auto", "options": {"num_predict": 2}, "stream": False}
    assert post(toy, given, "/api/chat")[0] == 200


def test_a_model_may_be_called_by_the_servers_address(toy):
    """``@huggingface/inference`` does so where an endpoint is named and no model, and that for Python says dummy."""
    assert [chat(toy, model=name, max_tokens=2)[0] for name in (toy.url, "dummy")] == [200, 200]
    assert chat(toy, model="other", max_tokens=2)[0] == 404


def test_the_page_that_is_named_may_send_what_its_package_sends(toy):
    sent = "authorization,content-type,x-stainless-os,x-stainless-retry-count"
    asked = {"origin": PAGE, "access_control_request_method": "DELETE", "access_control_request_headers": sent}
    answer = ask(toy, "OPTIONS", f"{ITEMS}/x", **asked)
    assert (answer.status, answer.headers["access-control-allow-headers"]) == (204, sent)
    assert "DELETE" in answer.headers["access-control-allow-methods"]
    exposed = ask(toy, "GET", "/v1/models", origin=PAGE).headers["access-control-expose-headers"]
    assert exposed == "retry-after, x-request-id"
    stranger = ask(toy, "OPTIONS", CHAT, **{**asked, "origin": "https://evil.example"})
    assert (stranger.status, "access-control-allow-headers" in stranger.headers) == (403, False)


def test_what_can_be_read_is_told_without_its_body(toy):
    """As ``wget --spider`` and load balancers ask, and Ollama's clients of some paths."""
    with Wire(int(toy.url.rsplit(":", 1)[1])) as wire:
        for path in ("/health", "/v1/models", "/api/tags", "/api/version", "/"):
            told = wire.ask("HEAD", path)
            assert (told.status, told.body) == (200, b""), path
            assert int(told.headers["content-length"]) == len(wire.ask("GET", path, accept="*/*").body), path
        assert wire.ask("HEAD", CHAT).status == 405


@pytest.mark.parametrize(("path", "said"), [
    ("/v1/files", "POST /v1/chat/completions"), ("/v1/messages/batches", "no files"), ("/v1/batches/b_1", "at once"),
    ("/v1/conversations", "previous_response_id"), ("/v1/threads/t/messages", "previous_response_id"),
    ("/v1/audio/speech", "texts"), ("/v1/moderations", "/v1/classify"), ("/v1/fine_tuning/jobs", "orrery --help"),
    ("/v1/responses/resp_1/input_items", "GET and DELETE /v1/responses/{response_id}"),
    ("/v1/responses/resp_1/cancel", "nothing runs on"),
    ("/v1beta/models/toy:generateContent", "Gemini"), ("/v1/responses/", "; /v1/responses does this"),
    ("/openai/deployments/toy/chat/completions?api-version=1", "; /v1/chat/completions does this"),
    ("/v1/v1/chat/completions", "; /v1/chat/completions does this"), ("/models", "; /v1/models does this"),
    ("/x/api/embed", "; /api/embed does this"), ("/v1/models/", "; /v1/models does this"),
    ("/v1/engines/toy/completions", "; /v1/completions does this"), ("/v1/filesystem", "openapi.json"),
])  # fmt: skip
def test_paths_that_are_not_answered_say_what_is(toy, path, said):
    answer = ask(toy, "GET", path)
    assert answer.status == 404
    assert said in answer.error.get("message", answer.json["error"])


def test_another_method_is_told_with_the_right_one(toy):
    assert "POST, not GET" in ask(toy, "GET", CHAT).error["message"]


def test_groqs_package_finds_one_model(toy):
    assert ask(toy, "GET", "/openai/v1/models/toy").json == ask(toy, "GET", "/v1/models/toy").json
