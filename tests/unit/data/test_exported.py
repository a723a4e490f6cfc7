"""Chats and preferences in the layouts of other services and published data sets."""

import csv
import json

import pytest

from orrery.data.rows.conversations import read_conversations, refuse_untaught
from orrery.data.rows.preferences import PreferenceColumns, read_preferences
from orrery.data.rows.prompts import read_prompts
from orrery.errors import DataError
from orrery.text.chat.messages import text_of

ASKED, GOOD, BAD = "A joke?", "Knock.", "No."


def said(role, text):
    return {"role": role, "content": text}


def parts(role, text):
    return {"role": role, "parts": [{"text": text}]}


def node(name, role, text, rank=None, replies=(), **more):
    return {"message_id": name, "text": text, "role": role, "rank": rank, "replies": list(replies), **more}


TREE = node("a", "prompter", ASKED, None, [
    node("b", "assistant", BAD, 1),
    node("c", "assistant", GOOD, 0, [node("e", "prompter", "Who?", None, [node("f", "assistant", "Me.", None)])]),
    node("d", "assistant", "Spam", 2, deleted=True),
])  # fmt: skip
MESSAGES = [said("user", ASKED), said("assistant", GOOD)]
CHATS = {
    "gemini": {"systemInstruction": parts("system", "Be brief."),
               "contents": [parts("user", ASKED), parts("model", GOOD)]},
    "gemini's other name": {"system_instruction": {"parts": [{"text": "Be brief."}]},
                            "contents": [{"parts": [{"text": ASKED}]}, parts("model", GOOD)]},
    "bedrock": {"schemaVersion": "bedrock-conversation-2024", "system": [{"text": "Be brief."}],
                "messages": [{"role": each["role"], "content": [{"text": each["content"]}]} for each in MESSAGES]},
    "anthropic": {"system": [{"type": "text", "text": "Be brief."}], "messages": MESSAGES},
    "cohere": {"messages": [said("System", "Be brief."), said("User", ASKED), said("Chatbot", GOOD)]},
    "capybara": {"system": "Be brief.", "source": "x", "conversation": [{"input": ASKED, "output": GOOD}]},
    "ultrachat": {"id": "0", "system": "Be brief.", "data": [ASKED, GOOD]},
    "rounds": {"system": "Be brief.", "conversation": [{"human": ASKED, "assistant": GOOD}]},
    "openai's preferences": {"input": {"messages": [said("system", "Be brief."), MESSAGES[0]]},
                             "preferred_output": MESSAGES[1:], "non_preferred_output": [said("assistant", BAD)]},
}  # fmt: skip
PAIRS = {
    "openai": {"input": {"messages": [MESSAGES[0]], "tools": [], "parallel_tool_calls": True},
               "preferred_output": MESSAGES[1:], "non_preferred_output": [said("assistant", BAD)]},
    "gemini": {"contents": [parts("user", ASKED)], "completions": [
        {"score": 1, "completion": parts("model", GOOD)}, {"score": 0, "completion": parts("model", BAD)}]},
    "llama-factory": {"conversations": [{"from": "human", "value": ASKED}],
                      "chosen": {"from": "gpt", "value": GOOD}, "rejected": {"from": "gpt", "value": BAD}},
    "axolotl": {"messages": [MESSAGES[0]], "chosen": MESSAGES[1], "rejected": said("assistant", BAD)},
    "ms-swift": {"messages": MESSAGES, "rejected_response": BAD},
    "ms-swift's messages": {"messages": MESSAGES, "rejected_messages": [MESSAGES[0], said("assistant", BAD)]},
    "nectar": {"prompt": f"\n\nHuman: {ASKED}\n\nAssistant: ", "answers": [
        {"answer": BAD, "model": "x", "rank": 2.0}, {"answer": GOOD, "model": "y", "rank": 1.0}]},
    "ultrafeedback": {"instruction": ASKED, "models": ["x", "y"], "completions": [
        {"response": BAD, "overall_score": 2.0}, {"response": GOOD, "overall_score": 8.5}]},
    "shp": {"history": ASKED, "human_ref_A": BAD, "human_ref_B": GOOD, "labels": 0, "score_A": 3, "score_B": 9},
    "helpsteer3": {"context": [MESSAGES[0]], "response1": BAD, "response2": GOOD, "overall_preference": 2},
    "arena": {"conversation_a": MESSAGES, "conversation_b": [MESSAGES[0], said("assistant", BAD)],
              "model_a": "x", "model_b": "y", "winner": "model_a"},
    "saferlhf": {"prompt": ASKED, "response_0": GOOD, "response_1": BAD, "better_response_id": 0},
    "webgpt": {"question": {"id": "1", "full_text": ASKED}, "answer_0": BAD, "answer_1": GOOD,
               "score_0": -0.5, "score_1": 0.5},
    "oasst": {"message_tree_id": "a", "tree_state": "ready_for_export", "prompt": TREE},
}  # fmt: skip


def written(tmp_path, rows, name="x.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def texts(messages):
    return [(message["role"], message["content"]) for message in messages]


@pytest.mark.parametrize("layout", CHATS)
def test_every_layout_is_the_same_conversation(tmp_path, layout):
    (found,) = read_conversations(written(tmp_path, [CHATS[layout]]))
    assert texts(found.messages) == [("system", "Be brief."), ("user", ASKED), ("assistant", GOOD)]


CALL = {"name": "weather", "arguments": {"city": "Bern"}}
TOOL = {"name": "weather", "description": "of a city", "parameters": {"type": "object", "properties": {}}}
CALLS = {
    "llama-factory": {"tools": json.dumps([TOOL]), "conversations": [
        {"from": "human", "value": "Rain?"}, {"from": "function_call", "value": json.dumps(CALL)},
        {"from": "observation", "value": '{"rain": true}'}, {"from": "gpt", "value": "Yes."}]},
    "several calls in a list": {"tools": [TOOL], "conversations": [
        {"from": "human", "value": "Rain?"}, {"from": "function_call", "value": json.dumps([CALL])},
        {"from": "observation", "value": '{"rain": true}'}, {"from": "gpt", "value": "Yes."}]},
    "gemini": {"tools": [{"functionDeclarations": [TOOL]}], "contents": [
        parts("user", "Rain?"),
        {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Bern"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"rain": True}}}]},
        parts("model", "Yes.")]},
}  # fmt: skip


@pytest.mark.parametrize("layout", CALLS)
def test_calls_of_functions_are_the_same_in_every_layout(tmp_path, layout):
    (found,) = read_conversations(written(tmp_path, [CALLS[layout]]))
    asked, called, gave, answered = found.messages
    assert (asked["content"], answered["content"]) == ("Rain?", "Yes.")
    assert called == {"role": "assistant", "tool_calls": [{"type": "function", "function": CALL}]}
    assert (gave["role"], json.loads(gave["content"])) == ("tool", {"rain": True})
    assert found.beside == {"tools": [{"type": "function", "function": TOOL}]}


def test_blocks_of_anthropic_are_calls_results_and_thoughts(tmp_path):
    use = {"type": "tool_use", "id": "1", "name": "weather", "input": {"city": "Bern"}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "rain"}]}
    thought = {"type": "thinking", "thinking": "Look.", "signature": "x"}
    turns = [said("user", [{"type": "text", "text": "Rain?"}]), said("assistant", [thought, use])]
    turns += [
        said("user", [result, {"type": "text", "text": "So?"}]),
        said("assistant", [{"type": "text", "text": "Yes."}]),
    ]
    schema = {"name": "weather", "description": "of a city", "input_schema": TOOL["parameters"]}
    (found,) = read_conversations(written(tmp_path, [{"messages": turns, "tools": [schema]}]), check=refuse_untaught)
    asked, called, gave, further, answered = found.messages
    assert [text_of(each) for each in (asked, gave, further, answered)] == ["Rain?", "rain", "So?", "Yes."]
    assert called["reasoning_content"] == "Look."
    assert called["tool_calls"] == [{"id": "1", "type": "function", "function": CALL}]
    assert (gave["role"], gave["tool_call_id"], gave["name"]) == ("tool", "1", "weather")
    assert found.beside == {"tools": [{"type": "function", "function": TOOL}]}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"messages": [said("user", [{"type": "image_url", "image_url": {"url": "x"}}]), MESSAGES[1]]}, "image_url"),
        ({"conversations": [{"from": "human", "value": "<image> What?"}, {"from": "gpt", "value": GOOD}],
          "image": "a.png"}, "column 'image'"),
        ({"prompt": ASKED, "chosen": GOOD, "rejected": BAD, "images": ["a.png"]}, "column 'images'"),
    ],
)  # fmt: skip
def test_what_is_seen_in_a_conversation_is_refused_and_not_left_out(tmp_path, row, says):
    file = written(tmp_path, [row])
    with pytest.raises(DataError, match=rf"x\.jsonl:1: .*{says}"):
        list((read_preferences if "rejected" in row else read_conversations)(file))


def test_chatgpts_export_is_read_from_its_beginning_to_what_was_seen_last(tmp_path):
    def entry(parent, role=None, kind="text", *said):
        message = role and {"author": {"role": role}, "content": {"content_type": kind, "parts": list(said)}}
        return {"parent": parent, "message": message, "children": []}

    nodes = {
        "z": entry("s", "user", "text", ASKED), "a": entry(None), "s": entry("a", "system", "text", ""),
        "g": entry("z", "assistant", "text", GOOD), "b": entry("z", "assistant", "text", BAD),
    }  # fmt: skip
    rows = [{"title": "x", "mapping": nodes, "current_node": "g"}]
    (tmp_path / "conversations.json").write_text(json.dumps(rows))
    (found,) = read_conversations(tmp_path / "conversations.json")
    assert texts(found.messages) == texts(MESSAGES)
    nodes["g"] = entry("z", "assistant", "code", GOOD)
    with pytest.raises(DataError, match=r":1: message 1 has a part of the type 'code'"):
        list(read_conversations(written(tmp_path, rows)))
    for broken in (None, [], {"message": "x"}, {"message": {"content": None}}, {"message": {"content": {}}}):
        with pytest.raises(DataError, match=r":1: .*no conversation|:1: message"):
            list(read_conversations(written(tmp_path, [{**rows[0], "mapping": {**nodes, "z": broken}}])))
    nodes["z"] = entry("g", "user", "text", ASKED)
    with pytest.raises(DataError, match=r":1: message \d has a part of the type 'code'"):
        list(read_conversations(written(tmp_path, rows)))


def test_a_call_that_is_none_is_refused_with_its_message(tmp_path):
    row = {"conversations": [{"from": "human", "value": "Rain?"}, {"from": "function_call", "value": "weather(Bern)"}]}
    with pytest.raises(DataError, match=r"x\.jsonl:1: message 1 is no call with a name and arguments in JSON"):
        list(read_conversations(written(tmp_path, [row])))


@pytest.mark.parametrize("layout", PAIRS)
def test_every_layout_is_the_same_preference(tmp_path, layout):
    (found,) = read_preferences(written(tmp_path, [PAIRS[layout]]))
    assert texts(found.chosen.messages) == [("user", ASKED), ("assistant", GOOD)]
    assert texts(found.rejected.messages) == [("user", ASKED), ("assistant", BAD)]
    assert found.where == f"{tmp_path / 'x.jsonl'}:1"
    (learnt,) = read_conversations(written(tmp_path, [PAIRS[layout]])) if layout != "oasst" else (found.chosen,)
    assert texts(learnt.messages) == [("user", ASKED), ("assistant", GOOD)]


def test_the_best_stands_beside_each_that_is_worse(tmp_path, caplog):
    answers = [{"answer": str(rank), "rank": rank} for rank in (3, 1, 2, 1)]
    rows = [{"prompt": "a", "answers": answers}, {"prompt": "b", "answers": answers[1:2]}]
    found = read_preferences(written(tmp_path, rows))
    assert [each.rejected.messages[-1]["content"] for each in found] == ["2", "3"]
    assert "2 prompts with several replies: the best is chosen" in caplog.text
    assert "1 of which none is better are left out" in caplog.text


def test_helpsteers_replies_follow_each_other(tmp_path):
    rows = [{"prompt": "a", "response": f"{n}", "helpfulness": n, "verbosity": 1} for n in (1, 4)]
    (found,) = read_preferences(written(tmp_path, [*rows, {**rows[0], "prompt": "b"}]))
    assert (found.chosen.messages[-1]["content"], found.rejected.messages[-1]["content"]) == ("4", "1")


def test_threads_of_a_tree_and_its_table(tmp_path):
    wanted = [("user", ASKED), ("assistant", GOOD), ("user", "Who?"), ("assistant", "Me.")]
    (found,) = read_conversations(written(tmp_path, [PAIRS["oasst"]]))
    assert texts(found.messages) == wanted
    rows, nodes = [], [(TREE, "")]
    for each, parent in nodes:
        rows.append([each["message_id"], parent, each["text"], each["role"], each["rank"], each.get("deleted", False)])
        nodes += [(reply, each["message_id"]) for reply in each["replies"]]
    with (tmp_path / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["message_id", "parent_id", "text", "role", "rank", "deleted"], *rows])
    (found,) = read_conversations(tmp_path / "x.csv")
    assert texts(found.messages) == wanted
    (pair,) = read_preferences(tmp_path / "x.csv")
    assert (pair.chosen.messages[-1]["content"], pair.rejected.messages[-1]["content"]) == (GOOD, BAD)


def test_kto_beside_a_conversation_and_labels_of_steps(tmp_path):
    rows = [{"conversations": MESSAGES, "kto_tag": good} for good in (True, False)]
    assert [each.chosen is not None for each in read_preferences(written(tmp_path, rows))] == [True, False]
    rows = [{"messages": MESSAGES, "label": good} for good in (True, False)]
    assert [each.chosen is not None for each in read_preferences(written(tmp_path, rows))] == [True, False]
    for tag in ("label", "kto_tag"):
        with pytest.raises(DataError, match=r"x\.jsonl:1: .* not desirable") as error:
            list(read_conversations(written(tmp_path, [{"messages": MESSAGES, tag: False}])))
        assert "--loss kto" in error.value.hint
        (found,) = read_conversations(written(tmp_path, [{"messages": MESSAGES, tag: True}]))
        assert texts(found.messages) == texts(MESSAGES)
    with pytest.raises(DataError, match="labels of the steps of an answer"):
        list(read_preferences(written(tmp_path, [{"prompt": "a", "completions": ["b"], "labels": [True]}])))


def test_columns_that_are_named_are_read_as_they_are(tmp_path):
    row = {"prompt": ASKED, "answers": [{"answer": BAD, "rank": 1}], "yes": GOOD, "no": BAD}
    (found,) = read_preferences(written(tmp_path, [row]), PreferenceColumns(chosen="yes", rejected="no"))
    assert found.chosen.messages[-1]["content"] == GOOD


def test_what_is_asked_of_a_policy(tmp_path):
    rows = [{"messages": [MESSAGES[0]], "reference_answer": GOOD}, {"contents": [parts("user", ASKED)]}]
    assert [prompt.text for prompt in read_prompts(written(tmp_path, rows[:1]))] == [ASKED]
    (prompt,) = read_prompts(written(tmp_path, rows[1:]))
    assert prompt.text == ASKED


def test_a_part_that_is_no_text_is_refused_by_its_row(tmp_path):
    picture = {"role": "user", "parts": [{"fileData": {"fileUri": "x"}}]}
    with pytest.raises(DataError, match=r"x\.jsonl:1: message 0 has a part that is no text: fileData"):
        list(read_conversations(written(tmp_path, [{"contents": [picture, parts("model", GOOD)]}])))


def test_messages_of_no_tree_are_counted(tmp_path, caplog):
    rows = [
        {"message_id": name, "parent_id": parent, "text": name, "role": role}
        for name, parent, role in (
            ("a", None, "prompter"), ("b", "a", "assistant"), ("c", "gone", "prompter"), ("d", "c", "assistant"),
            ("e", "f", "prompter"), ("f", "e", "assistant"), (["g"], ["h"], "assistant"),
        )
    ]  # fmt: skip
    (found,) = read_conversations(written(tmp_path, rows))
    assert texts(found.messages) == [("user", "a"), ("assistant", "b")]
    assert "5 messages left out: they answer none that is there" in caplog.text


@pytest.mark.parametrize(
    "row",
    [
        {"contents": [parts("user", ASKED), parts("model", GOOD)], "tools": ["x"]},
        {"prompt": node("a", "prompter", ASKED, None, ["x"])},
        {"prompt": "p", "answers": [{"answer": "a", "rank": 10**400}]},
    ],
)
def test_a_layout_with_parts_of_another_kind_is_a_bad_row(tmp_path, row):
    path = written(tmp_path, [{"messages": MESSAGES}, row])
    with pytest.raises(DataError, match=r"x\.jsonl:2"):
        list(read_conversations(path))
    assert len(list(read_conversations(path, skip_bad=1))) == 1
