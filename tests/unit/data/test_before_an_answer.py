"""What published rows have before an answer is read once and whole: system, history, context, whole conversations."""

import json
from typing import Any

import pytest

from orrery.data.rows.conversations import read_conversations
from orrery.data.rows.preferences import read_preferences
from orrery.data.rows.prompts import prompt_ids, read_prompts
from orrery.errors import DataError

U, A, S = "user", "assistant", "system"
ASKED, REPLY, OTHER = {"role": U, "content": "Hi?"}, {"role": A, "content": "Yes."}, {"role": A, "content": "No."}
PAIR = [(U, "Hi?"), (A, "Yes.")]
HH = "\n\nHuman: Hi?\n\nAssistant:"
TOOL = {"type": "function", "function": {"name": "f"}}


def lines(folder, *rows):
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def said(conversation):
    return [(message["role"], message["content"]) for message in conversation.messages]


ANSWERED: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "Dolly": ({"instruction": "Hi?", "context": "C", "response": "Yes."}, [(U, "Hi?\n\nC"), (A, "Yes.")]),
    "a question about a text": ({"question": "Hi?", "context": "C", "answer": "Yes."}, [(U, "Hi?\n\nC"), (A, "Yes.")]),
    "a context that the prompt has": ({"prompt": "Hi?", "context": "Hi", "completion": "Yes."}, PAIR),
    "history": (
        {"instruction": "Hi?", "input": "", "output": "Yes.", "system": "S", "history": [["a", "b"]]},
        [(S, "S"), (U, "a"), (A, "b"), *PAIR],
    ),
    "an empty history": ({"prompt": "Hi?", "response": "Yes.", "history": []}, PAIR),
    "OpenOrca": ({"system_prompt": "S", "question": "Hi?", "response": "Yes."}, [(S, "S"), *PAIR]),
    "ShareGPT with a column of the system": (
        {"conversations": [{"from": "human", "value": "Hi?"}, {"from": "gpt", "value": "Yes."}], "system": "S"},
        [(S, "S"), *PAIR],
    ),
    "a system message in both places": (
        {"messages": [{"role": S, "content": "own"}, ASKED, REPLY], "system": "S"},
        [(S, "own"), *PAIR],
    ),
    "a prompt with speakers": ({"prompt": HH, "completion": "Yes."}, PAIR),
    "a whole conversation as completion": ({"prompt": [ASKED], "completion": [ASKED, REPLY]}, PAIR),
    "one message as the prompt": ({"prompt": ASKED, "completion": "Yes."}, PAIR),
    "ShareGPT's list in a cell as the prompt": (
        {"prompt": '[{"from": "human", "value": "Hi?"}]', "completion": "Yes."},
        PAIR,
    ),
    "entities as the answer": (
        {"instruction": "Hi?", "output": '[{"text": "Paris", "label": "LOC"}]'},
        [(U, "Hi?"), (A, '[{"text": "Paris", "label": "LOC"}]')],
    ),
    "a question that begins with a list": (
        {"instruction": '[{"text": "a"}] as YAML?', "input": "", "output": "Yes."},
        [(U, '[{"text": "a"}] as YAML?'), (A, "Yes.")],
    ),
    "a list of roles that are no speakers": (
        {"prompt": '[{"role": "admin", "text": "a"}]', "completion": "Yes."},
        [(U, '[{"role": "admin", "text": "a"}]'), (A, "Yes.")],
    ),
    "documents and functions in words": (
        {"question": "Hi?", "answer": "Yes.", "documents": "a long text", "functions": "sin, cos"},
        PAIR,
    ),
    "a cell whose objects begin with something else": (
        {"messages": json.dumps([{"id": 1, **ASKED}, {"weight": 1, **REPLY}])},
        PAIR,
    ),
    "a cell as pandas writes it": ({"messages": repr([ASKED, REPLY])}, PAIR),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_a_conversation_has_all_that_stands_before_its_answer(name, tmp_path):
    row, meant = ANSWERED[name]
    (conversation,) = read_conversations(lines(tmp_path, row))
    assert said(conversation) == meant


@pytest.mark.parametrize(
    "beside", [{"tools": [TOOL]}, {"tools": json.dumps([TOOL])}, {"functions": [TOOL["function"]]}], ids=str
)
def test_tools_are_a_list_however_they_are_written(beside, tmp_path):
    (conversation,) = read_conversations(lines(tmp_path, {"messages": [ASKED, REPLY], **beside}))
    assert conversation.beside == {"tools": [TOOL]}
    row = {"prompt": [ASKED], "chosen": [REPLY], "rejected": [OTHER], **beside}
    (preference,) = read_preferences(lines(tmp_path, row))
    assert preference.chosen.beside == preference.rejected.beside == {"tools": [TOOL]}
    with pytest.raises(DataError, match=r":1: column 'tools' is a text, and no list in JSON: 'f\(x\)'"):
        list(read_conversations(lines(tmp_path, {"messages": [ASKED, REPLY], "tools": "f(x)"})))


def test_the_older_form_of_a_call_is_a_call(tmp_path):
    call = {"name": "f", "arguments": "{}"}
    old = [
        ASKED,
        {"role": A, "content": None, "function_call": call},
        {"role": "function", "name": "f", "content": "3"},
    ]
    (conversation,) = read_conversations(lines(tmp_path, {"messages": [*old, REPLY]}))
    assert [message["role"] for message in conversation.messages] == [U, A, "tool", A]
    assert conversation.messages[1]["tool_calls"] == [{"type": "function", "function": call}]
    assert "function_call" not in conversation.messages[1]


PREFERRED: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "UltraFeedback": ({"prompt": "Hi?", "chosen": [ASKED, REPLY], "rejected": [ASKED, OTHER]}, [(U, "Hi?")]),
    "a prompt in messages and whole sides": (
        {"prompt": [{"role": S, "content": "S"}, ASKED], "chosen": [ASKED, REPLY], "rejected": [ASKED, OTHER]},
        [(S, "S"), (U, "Hi?")],
    ),
    "the last of several prompts": (
        {"prompt": "Hi?", **{side: [{"role": U, "content": "a"}, {"role": A, "content": "b"}, ASKED, last]
                             for side, last in (("chosen", REPLY), ("rejected", OTHER))}},
        [(U, "a"), (A, "b"), (U, "Hi?")],
    ),
    "turns that go on behind the prompt": (
        {"prompt": "a", **{side: [{"role": A, "content": "b"}, ASKED, last]
                           for side, last in (("chosen", REPLY), ("rejected", OTHER))}},
        [(U, "a"), (A, "b"), (U, "Hi?")],
    ),
    "HH with its prompt apart": ({"prompt": HH, "chosen": " Yes.", "rejected": " No."}, [(U, "Hi?")]),
    "HH whole beside its prompt": ({"prompt": HH, "chosen": f"{HH} Yes.", "rejected": f"{HH} No."}, [(U, "Hi?")]),
    "Orca": ({"system": "S", "question": "Hi?", "chosen": "Yes.", "rejected": "No."}, [(S, "S"), (U, "Hi?")]),
    "context": ({"instruction": "Hi?", "context": "C", "chosen": "Yes.", "rejected": "No."}, [(U, "Hi?\n\nC")]),
    "cells in JSON": (
        {"prompt": "Hi?", "chosen": json.dumps([ASKED, REPLY]), "rejected": json.dumps([ASKED, OTHER])},
        [(U, "Hi?")],
    ),
    "replies as one object": (
        {"prompt": "Hi?", "chosen": {"from": "gpt", "value": "Yes."}, "rejected": {"from": "gpt", "value": "No."}},
        [(U, "Hi?")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PREFERRED)
def test_both_sides_of_a_preference_begin_with_the_prompt_once(name, tmp_path):
    row, before = PREFERRED[name]
    (preference,) = read_preferences(lines(tmp_path, row))
    for side, reply in ((preference.chosen, "Yes."), (preference.rejected, "No.")):
        assert [(role, content.strip()) for role, content in said(side)] == [*before, (A, reply)]


def test_kto_has_its_prompt_once(tmp_path):
    (preference,) = read_preferences(lines(tmp_path, {"prompt": "Hi?", "completion": [ASKED, REPLY], "label": True}))
    assert said(preference.chosen) == PAIR


def test_a_reply_about_speakers_stays_a_text(tmp_path):
    reply = "Human: Who?\n\nAssistant: Me."
    (preference,) = read_preferences(lines(tmp_path, {"prompt": "Write one.", "chosen": reply, "rejected": "No."}))
    assert said(preference.chosen) == [(U, "Write one."), (A, reply)]


def test_a_conversation_about_another_prompt_and_a_broken_cell_are_refused(tmp_path):
    other = lines(tmp_path, {"prompt": "Else?", "chosen": [ASKED, REPLY], "rejected": [ASKED, OTHER]})
    with pytest.raises(DataError, match=r":1: column 'chosen' is a whole conversation, in which the prompt"):
        list(read_preferences(other))
    # What numpy writes of a list of objects: no commas between them.
    cell = lines(tmp_path, {"prompt": "Hi?", "chosen": f"[{ASKED!r}\n {REPLY!r}]", "rejected": "No."})
    with pytest.raises(DataError, match=r":1: begins as a list of messages, and is neither JSON nor Python's"):
        list(read_preferences(cell))


def test_prompts_have_what_stands_before_them(tmp_path):
    rows: list[dict[str, Any]] = [
        {"system": "S", "prompt": "Hi?"},
        {"instruction": "Hi?", "context": "C"},
        {"prompt": HH},
        {"prompt": json.dumps([ASKED])},
        {"prompt": [{"from": "human", "value": "Hi?"}]},
        {"source": "a newspaper", "text": "Hi?"},
    ]
    prompts = list(read_prompts(lines(tmp_path, *rows)))
    assert [said(prompt.conversation) for prompt in prompts] == [
        [(S, "S"), (U, "Hi?")],
        [(U, "Hi?\n\nC")],
        *[[(U, "Hi?")]] * 4,
    ]
    # Without a template a model goes on with the text as it stands.
    assert [prompt.text for prompt in prompts[1:3]] == ["Hi?\n\nC", HH]
    with pytest.raises(DataError, match=r":1: the prompt is a conversation"):
        prompt_ids(prompts, None, None)  # type: ignore[arg-type]


def test_a_context_that_is_no_text_is_refused(tmp_path):
    with pytest.raises(DataError, match=r":1: column 'context', which belongs to 'question', is not a text but dict"):
        list(read_prompts(lines(tmp_path, {"question": "Hi?", "context": {"title": ["a"]}})))


def test_a_reply_that_is_said_to_be_bad_is_not_learnt(tmp_path):
    rows = [{"prompt": "Hi?", "completion": text, "label": good} for text, good in (("Yes.", True), ("No.", False))]
    with pytest.raises(DataError, match=r":2: label False says that the completion is not desirable"):
        list(read_conversations(lines(tmp_path, *rows)))
    (conversation,) = read_conversations(lines(tmp_path, rows[0]))
    assert said(conversation) == PAIR


def test_lists_in_prompts_and_judged_replies_are_texts(tmp_path):
    text = '[{"text": "a", "value": 1}]'
    (prompt,) = read_prompts(lines(tmp_path, {"prompt": text}))
    assert said(prompt.conversation) == [(U, text)]
    (one,) = read_preferences(lines(tmp_path, {"prompt": "Hi?", "chosen": text, "rejected": "No."}))
    assert one.chosen is not None
    assert said(one.chosen) == [(U, "Hi?"), (A, text)]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('[{"role": "user", "content": "Hi?"}, {', r"rows\.jsonl:1: begins as a list of messages"),
        ('[{"role": "User", "content": "Hi?"}]', r"rows\.jsonl:1: message 0 has the role 'User'"),
    ],
)
def test_a_list_that_is_cut_off_or_has_another_role_is_refused_with_its_place(cell, said, tmp_path):
    with pytest.raises(DataError, match=said):
        list(read_conversations(lines(tmp_path, {"messages": cell})))
