"""Ollama's interface over the wire: lines, options, counts, and refusals by name."""

import http.client
import json
import time

import pytest

from orrery.serving import ollama_options
from orrery.serving.ollama_requests import messages_of
from orrery.serving.schema import ollama
from scripted import write
from served_models import chat_folder, filling_folder
from serving_toy import chat_model, prompt_of, requests_seen, running

SAID = [{"role": "user", "content": "a dog"}]
LOOK = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}},
}
FEW = {"num_predict": 5, "temperature": 0}


def send(toy, method, path, body=None, **headers):
    """Return the status, the content type and the bytes of an answer."""
    connection = http.client.HTTPConnection(toy.url.removeprefix("http://"), timeout=60)
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, headers)
    response = connection.getresponse()
    answered = response.status, response.headers.get("content-type", ""), response.read()
    connection.close()
    return answered


def ask(toy, path, expected=200, **body):
    """Return what is answered, not streamed unless the request says so."""
    status, _, data = send(toy, "POST", path, {"model": "toy", "stream": False, **body})
    assert status == expected, data
    return json.loads(data)


def lines(toy, path, **body):
    status, kind, data = send(toy, "POST", path, {"model": "toy", **body})
    assert (status, kind) == (200, "application/x-ndjson")
    return [json.loads(line) for line in data.decode().splitlines()]


def test_a_chat_is_that_of_the_library_with_counts_and_durations(toy):
    answer = ask(toy, "/api/chat", messages=SAID, options=FEW)
    wanted = toy.served.lm.reply(SAID, max_new_tokens=5, temperature=0)
    assert answer["message"] == {"role": "assistant", "content": wanted.text}
    assert (answer["model"], answer["done"], answer["eval_count"]) == ("toy", True, len(wanted.ids))
    assert answer["prompt_eval_count"] == len(toy.served.lm.chat_ids(SAID, prompt=True).ids)
    assert answer["total_duration"] == answer["prompt_eval_duration"] + answer["eval_duration"] > 0
    assert answer["created_at"].endswith("Z")


@pytest.mark.parametrize(
    ("path", "question", "part"),
    [
        ("/api/chat", {"messages": SAID}, lambda one: one["message"]["content"]),
        ("/api/generate", {"prompt": "a dog"}, lambda one: one["response"]),
    ],
)
def test_lines_come_unless_the_client_wants_none(toy, monkeypatch, path, question, part):
    write(monkeypatch, toy, "so it is, and more", end=None)
    answers = lines(toy, path, options=FEW, logprobs=True, **question)
    whole = ask(toy, path, options=FEW, logprobs=True, **question)
    assert [one["done"] for one in answers] == [False] * (len(answers) - 1) + [True]
    assert "".join(map(part, answers)) == part(whole)
    assert [score for one in answers for score in one.get("logprobs", [])] == whole["logprobs"]
    assert answers[-1]["eval_count"] == whole["eval_count"] == 5
    assert answers[-1]["done_reason"] == whole["done_reason"] == "length"
    assert "total_duration" not in answers[0]


def test_an_answer_that_ends_by_itself_says_stop(toy, monkeypatch):
    write(monkeypatch, toy, "so it is")
    assert ask(toy, "/api/generate", prompt="a dog")["done_reason"] == "stop"
    assert "".join(one["response"] for one in lines(toy, "/api/generate", prompt="a dog")) == "so it is"


def test_a_prompt_goes_through_the_template_unless_it_is_raw(toy, seen):
    ask(toy, "/api/generate", prompt="a dog", system="be kind", options=FEW)
    ask(toy, "/api/chat", messages=[{"role": "system", "content": "be kind"}, *SAID], options=FEW)
    assert list(seen[0].prompt) == list(seen[1].prompt)
    assert "context" not in ask(toy, "/api/generate", prompt="a dog", raw=True, options=FEW)
    assert list(seen[2].prompt) == toy.served.lm.tokenizer.encode("a dog")


def test_a_context_is_gone_on_from(toy, seen):
    first = ask(toy, "/api/generate", prompt="a dog", options=FEW)
    assert first["context"][: len(seen[0].prompt)] == list(seen[0].prompt)
    ask(toy, "/api/generate", prompt="a cat", context=first["context"], options=FEW)
    ask(toy, "/api/generate", prompt="a cat", options=FEW)
    assert list(seen[1].prompt) == [*first["context"], *seen[2].prompt]


def test_a_suffix_is_filled_in_before(tmp_path, monkeypatch):
    with running(filling_folder(tmp_path / "filling"), "float32") as toy:
        requests = requests_seen(toy, monkeypatch)
        ask(toy, "/api/generate", prompt="", suffix=" on the mat", options=FEW)
        assert prompt_of(toy, requests[0]) == "<|fim_prefix|><|fim_suffix|> on the mat<|fim_middle|>"
        assert "insert" in ask(toy, "/api/show")["capabilities"]


def test_a_model_without_a_template_continues_prompts_and_has_no_chats(tmp_path):
    folder = chat_model(tmp_path / "model")
    (folder / "chat_template.jinja").unlink()
    with running(folder) as toy:
        lm = toy.served.lm
        answer = ask(toy, "/api/generate", prompt="a dog", options=FEW)
        assert answer["response"] == lm.generate("a dog", max_new_tokens=5, temperature=0)
        assert "template" in ask(toy, "/api/chat", 400, messages=SAID)["error"]
        assert "template" in ask(toy, "/api/generate", 400, prompt="a dog", system="be kind")["error"]
        assert "tools" not in ask(toy, "/api/show")["capabilities"]


def test_options_are_the_settings_of_a_chat_under_other_names(toy, seen):
    options = {
        "temperature": 0.5, "top_k": 7, "top_p": 0.8, "min_p": 0.1, "typical_p": 0.9, "repeat_penalty": 1.3,
        "presence_penalty": 0.2, "frequency_penalty": 0.3, "seed": 4, "stop": ["x"], "num_predict": 3, "num_ctx": 400,
    }  # fmt: skip
    ask(toy, "/api/chat", messages=SAID, options={**options, "repeat_last_n": 9})
    own = {"repetition_penalty": 1.3, "repetition_window": 9, "max_tokens": 3}
    shared = {name: options[name] for name in options if name not in ("repeat_penalty", "num_predict", "num_ctx")}
    status, _, data = send(
        toy, "POST", "/v1/chat/completions", {"messages": SAID, **shared, **own}, **{"Content-Type": "application/json"}
    )
    assert status == 200, data
    ollama_, openai = seen
    assert (ollama_.sampler, ollama_.seed) == (openai.sampler, openai.seed)
    assert (ollama_.limits.stop, ollama_.limits.max_new_tokens) == (openai.limits.stop, openai.limits.max_new_tokens)


@pytest.mark.parametrize(
    ("options", "window"),
    [
        ({"repeat_penalty": 1.2}, 64),
        ({"repeat_penalty": 1.2, "repeat_last_n": 5}, 5),
        ({"repeat_penalty": 1.2, "repeat_last_n": -1}, 0),
        ({"repeat_penalty": 1.2, "repeat_last_n": 0}, 0),
        ({}, 0),
    ],
)
def test_a_penalty_looks_back_as_far_as_ollamas(toy, seen, options, window):
    ask(toy, "/api/chat", messages=SAID, options={**options, "num_predict": 1})
    assert seen[0].sampler.window == window
    penalised = {**options, "repeat_last_n": 64}.get("repeat_penalty") and options.get("repeat_last_n") != 0
    penalties = [one.penalty for one in seen[0].sampler.filters if type(one).__name__ == "RepetitionPenalty"]
    assert (penalties in ([1.2],)) is bool(penalised)


def test_what_is_left_out_is_as_ollama_draws(toy, seen):
    ask(toy, "/api/chat", messages=SAID, options={"num_predict": 1})
    ask(toy, "/api/chat", messages=SAID, options={"num_predict": 1, **ollama_options.USUAL})
    ask(toy, "/api/chat", messages=SAID, options={"num_predict": 1, "temperature": 0.1, "seed": -1})
    assert seen[0].sampler == seen[1].sampler != seen[2].sampler
    assert len(seen[2].sampler.filters) == len(seen[0].sampler.filters)
    assert len({request.seed for request in seen}) == 3


@pytest.mark.parametrize("most", [-2, -1, 0, 10_000])
def test_an_answer_ends_where_the_context_does(toy, seen, most):
    ask(toy, "/api/chat", messages=SAID, options={"num_predict": most, "num_ctx": 40, "stop": ["a", "e", "t", " "]})
    assert seen[0].limits.max_new_tokens == 40 - len(seen[0].prompt)


def test_the_oldest_turns_are_left_out_unless_the_client_forbids_it(toy, seen):
    said = [*[{"role": "user", "content": "the cat sat on the mat " * 20}, {"role": "assistant", "content": "so"}] * 9]
    said = [{"role": "system", "content": "be kind"}, *said, {"role": "user", "content": "the last"}]
    ask(toy, "/api/chat", messages=said, options={"num_predict": 1, "num_ctx": 300})
    assert len(seen[0].prompt) < 300
    assert "be kind" in prompt_of(toy, seen[0])
    assert "the last" in prompt_of(toy, seen[0])
    assert "context length" in ask(toy, "/api/chat", 400, messages=said, truncate=False)["error"]
    alone = [{"role": "user", "content": "the cat sat on the mat " * 99}]
    assert "context length is 50" in ask(toy, "/api/chat", 400, messages=alone, options={"num_ctx": 50})["error"]


def test_calls_have_objects_for_arguments_and_their_results_are_taken(toy, monkeypatch, seen):
    call = '<tool_call>\n{"name": "look", "arguments": {"at": "cat"}}\n</tool_call>'
    with monkeypatch.context() as patch:
        write(patch, toy, f"I look.\n{call}\n{call}")
        whole = ask(toy, "/api/chat", messages=SAID, tools=[LOOK])
        answers = lines(toy, "/api/chat", messages=SAID, tools=[LOOK])
    function = {"name": "look", "arguments": {"at": "cat"}}
    told = [one["function"] for one in whole["message"]["tool_calls"]]
    assert told == [{"index": 0, **function}, {"index": 1, **function}]
    assert whole["message"]["content"] == "I look."
    assert [one["function"] for line in answers for one in line["message"].get("tool_calls", [])] == told
    assert "".join(line["message"]["content"] for line in answers) == "I look."
    results = [{"role": "tool", "tool_name": "look", "content": text} for text in ("a cat", "a mat")]
    ask(toy, "/api/chat", messages=[*SAID, whole["message"], *results], tools=[LOOK], options=FEW)
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": '{"at": "cat"}'}} for n in (0, 1)
    ]
    same = [*SAID, {"role": "assistant", "content": "I look.", "tool_calls": calls}]
    same += [{"role": "tool", "tool_call_id": f"c{n}", "content": text} for n, text in enumerate(("a cat", "a mat"))]
    send(toy, "POST", "/v1/chat/completions", {"messages": same, "tools": [LOOK], "max_tokens": 1},
         **{"Content-Type": "application/json"})  # fmt: skip
    assert list(seen[-2].prompt) == list(seen[-1].prompt)


def test_results_without_ids_answer_the_calls_in_their_order(toy):
    def call(name, id=None):
        return {"id": id, "function": {"name": name, "arguments": {}}}

    messages = [
        {"role": "assistant", "tool_calls": [call("a"), call("b", "own"), call("a")]},
        {"role": "tool", "tool_name": "b", "content": "1"},
        {"role": "tool", "content": "2"},
        {"role": "tool", "tool_name": "a", "content": "3"},
        {"role": "tool", "tool_name": "a", "content": "4"},
    ]
    converted = messages_of(toy.served, [ollama.OllamaMessage.model_validate(message) for message in messages])
    ids = [one["id"] for one in converted[0]["tool_calls"]]
    assert [one["tool_call_id"] for one in converted[1:4]] == [ids[1], ids[0], ids[2]]
    assert [one["name"] for one in converted[1:]] == ["b", "a", "a", "a"]
    assert converted[4]["tool_call_id"] not in ids


@pytest.mark.parametrize("think", [None, True, "high"])
def test_thoughts_are_told_apart(toy, monkeypatch, think):
    write(monkeypatch, toy, "<think>\nwhy not\n</think>\n\nSo be it.")
    whole = ask(toy, "/api/chat", messages=SAID, think=think)
    assert (whole["message"]["thinking"], whole["message"]["content"]) == ("why not", "So be it.")
    answers = lines(toy, "/api/generate", prompt="a dog", think=think)
    assert "".join(one.get("thinking", "") for one in answers) == "why not"
    assert "".join(one["response"] for one in answers) == "So be it."


def test_thinking_is_turned_off_where_the_template_has_a_switch(toy, seen, tmp_path):
    ask(toy, "/api/chat", messages=SAID, think=False, options=FEW)
    assert prompt_of(toy, seen[0]).endswith("<think>\n\n</think>\n\n")
    assert "thinking" in ask(toy, "/api/show")["capabilities"]
    with running(chat_folder(tmp_path / "plain"), "float32") as plain:
        assert ask(plain, "/api/chat", messages=SAID, think=False, options=FEW)["done"]
        assert ask(plain, "/api/chat", 400, messages=SAID, think=True)["error"].startswith("think is not supported")


def test_answers_have_the_form_that_was_asked_for(toy):
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
    assert json.loads(ask(toy, "/api/generate", prompt="a", format=schema)["response"])["a"] in (1, 2)
    assert ask(toy, "/api/generate", prompt="a", format="json", options=FEW)["response"].startswith("{")
    assert ask(toy, "/api/generate", prompt="a", format="", options=FEW)["done"]


def test_who_asks_for_nothing_is_told_that_the_model_is_loaded(toy):
    for body in ({}, {"prompt": ""}, {"keep_alive": 0}, {"prompt": "", "keep_alive": "5m"}):
        assert ask(toy, "/api/generate", **body)["done_reason"] == "load"
    assert ask(toy, "/api/chat", messages=[])["message"] == {"role": "assistant", "content": ""}


def test_vectors_are_those_of_the_other_interface(toy):
    _, _, data = send(
        toy, "POST", "/v1/embeddings", {"input": ["a dog", "a cat"]}, **{"Content-Type": "application/json"}
    )
    wanted = [one["embedding"] for one in json.loads(data)["data"]]
    answer = ask(toy, "/api/embed", input=["a dog", "a cat"], options={"num_ctx": 128}, keep_alive=-1)
    assert answer["embeddings"] == wanted
    assert answer["prompt_eval_count"] == json.loads(data)["usage"]["prompt_tokens"]
    assert ask(toy, "/api/embeddings", prompt="a dog")["embedding"] == pytest.approx(wanted[0], abs=1e-6)
    assert ask(toy, "/api/embed", input="")["embeddings"] == ask(toy, "/api/embeddings")["embedding"] == []
    long = "the cat " * 900
    assert len(ask(toy, "/api/embed", input=long)["embeddings"]) == 1
    assert "truncate" in ask(toy, "/api/embed", 400, input=long, truncate=False)["error"]


def test_what_clients_ask_first(toy):
    for method in ("GET", "HEAD"):
        for path in ("/", "/api/version", "/api/tags"):
            assert send(toy, method, path, Accept="*/*")[0] == 200
    assert send(toy, "GET", "/", Accept="*/*")[2] == b"Ollama is running"
    assert send(toy, "GET", "/", Accept="text/html,*/*")[2].startswith(b"<!")
    (card,) = json.loads(send(toy, "GET", "/api/tags")[2])["models"]
    (running_,) = json.loads(send(toy, "GET", "/api/ps")[2])["models"]
    assert card["name"] == card["model"] == running_["name"] == "toy:latest"
    assert card["digest"] == running_["digest"]
    assert card["size"] == sum(one.numel() * 4 for one in toy.served.lm.model.parameters())
    assert card["details"]["quantization_level"] == "F32"
    for name in ("toy", "toy:latest"):
        shown = ask(toy, "/api/show", model=name)
        assert ask(toy, "/api/chat", model=name, messages=SAID, options=FEW)["model"] == name
    assert shown["model_info"]["llama.context_length"] == toy.served.lm.context
    assert shown["model_info"]["general.parameter_count"] * 4 == card["size"]
    assert shown["capabilities"] == ["completion", "tools", "thinking"]
    assert ask(toy, "/api/pull", name="toy") == {"status": "success"}


def test_what_only_the_server_of_ollama_has_is_refused(toy):
    for path in ("create", "copy", "push"):
        assert "orrery serve" in ask(toy, f"/api/{path}", 400)["error"]
    assert send(toy, "DELETE", "/api/delete", {"model": "toy"})[0] == 400
    assert "no such URL" in ask(toy, "/api/nothing", 404)["error"]
    assert json.loads(send(toy, "GET", "/api/chat")[2])["error"].startswith("this URL takes POST")


def test_a_body_without_a_content_type_is_read_unless_a_page_sends_it(toy):
    body = json.dumps({"model": "toy", "prompt": "", "stream": False}).encode()
    for kind in ({}, {"Content-Type": "application/x-www-form-urlencoded"}):
        assert send(toy, "POST", "/api/generate", body, **kind)[0] == 200
        assert send(toy, "POST", "/v1/completions", body, **kind)[0] == 415
        status, _, data = send(toy, "POST", "/api/generate", body, Origin="http://evil.example", **kind)
        assert (status, type(json.loads(data)["error"])) == (403, str)
    assert send(toy, "POST", "/api/generate", body, **{"Content-Type": "text/html"})[0] == 415


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": "x"}, "'x'"),
        ({"messages": "a"}, "messages"),
        ({"messages": [{"role": "wizard", "content": "a"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": "a", "images": ["aGk="]}]}, "messages[0].images"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "a", "arguments": "{}"}}]}]},
         "arguments"),
        ({"tools": [{"type": "web"}]}, "tools[0].type"),
        ({"tools": [LOOK, LOOK]}, "tools"),
        ({"format": "xml"}, "format"),
        ({"format": {"type": "x"}}, "type"),
        ({"think": "much"}, "think"),
        ({"keep_alive": "soon"}, "keep_alive"),
        ({"keep_alive": True}, "keep_alive"),
        ({"shift": True}, "shift"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"stream": "no"}, "stream"),
        ({"options": [1]}, "options"),
        ({"options": {"temperature": "hot"}}, "options.temperature"),
        ({"options": {"temperature": -1}}, "options.temperature"),
        ({"options": {"top_k": 1.5}}, "options.top_k"),
        ({"options": {"repeat_penalty": 0}}, "options.repeat_penalty"),
        ({"options": {"num_predict": -3}}, "options.num_predict"),
        ({"options": {"num_predict": True}}, "options.num_predict"),
        ({"options": {"num_ctx": 0}}, "options.num_ctx"),
        ({"options": {"num_ctx": 2**40}}, "options.num_ctx"),
        ({"options": {"repeat_last_n": -2}}, "options.repeat_last_n"),
        ({"options": {"stop": ["a"] * 17}}, "options.stop"),
        ({"options": {"seed": 2**70}}, "options.seed"),
        ({"options": {"mirostat": 2}}, "options.mirostat"),
        ({"options": {"tfs_z": 0.5}}, "options.tfs_z"),
        ({"options": {"penalize_newline": False}}, "options.penalize_newline"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_its_name(toy, change, named):
    expected = 404 if "model" in change else 400
    error = ask(toy, "/api/chat", expected, **{"messages": SAID, **change})["error"]
    assert named in error


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"template": "{{ .Prompt }}"}, "template"),
        ({"images": ["aGk="]}, "images"),
        ({"raw": True, "system": "be kind"}, "system"),
        ({"raw": True, "context": [1]}, "context"),
        ({"raw": True, "think": True}, "think"),
        ({"context": [10**6]}, "context"),
        ({"suffix": "b"}, "suffix"),
        ({"prompt": "a " * 4000}, "context length"),
    ],
)
def test_prompts_that_cannot_be_answered_are_refused_by_name(toy, change, named):
    assert named in ask(toy, "/api/generate", 400, **{"prompt": "a dog", **change})["error"]


def test_options_that_ask_for_nothing_are_taken(toy):
    options = {**dict.fromkeys(ollama_options.HARMLESS, 1), "mirostat": 0, "tfs_z": 1.0, "penalize_newline": True}
    assert ask(toy, "/api/chat", messages=SAID, options={**options, **FEW, "top_p": None})["done"]


def test_the_answer_of_a_client_that_leaves_is_ended(toy, monkeypatch):
    write(monkeypatch, toy, "so it is " * 200, end=None)
    connection = http.client.HTTPConnection(toy.url.removeprefix("http://"), timeout=60)
    connection.request("POST", "/api/generate", json.dumps({"prompt": "a dog"}))
    assert json.loads(connection.getresponse().readline())["done"] is False
    connection.close()
    deadline = time.monotonic() + 20
    while toy.served.gauges()["orrery_requests_inside"] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert toy.served.gauges()["orrery_requests_inside"] == 0
    assert "orrery_answers_cancelled_total 1" in toy.served.metrics.text({})


def test_a_failure_in_a_stream_is_its_last_line(toy, monkeypatch):
    def broken(*_):
        raise RuntimeError("no more")

    monkeypatch.setattr("orrery.serving.chat_answers.ChatAnswers.take", broken)
    assert list(lines(toy, "/api/chat", messages=SAID)[-1]) == ["error"]
