"""Conversations of every shape become messages; what is none is refused with its line."""

import csv
import json

import pytest

from orrery.data.rows.conversations import read_conversations, refuse_untaught
from orrery.errors import DataError

ASKED = [{"role": "user", "content": "What is 1 + 1?"}, {"role": "assistant", "content": "2"}]
SAME = {
    "messages": {"messages": ASKED},
    "messages under another name": {"conversations": ASKED},
    "sharegpt": {"conversations": [{"from": "human", "value": "What is 1 + 1?"}, {"from": "gpt", "value": "2"}]},
    "turns": {"turns": [{"role": "user", "text": "What is 1 + 1?", "acts": []}, {"role": "assistant", "text": "2"}]},
    "alpaca": {"instruction": "What is 1 + 1?", "input": "", "output": "2"},
    "prompt and completion": {"prompt": "What is 1 + 1?", "completion": "2"},
    "prompt and completion as messages": {"prompt": ASKED[:1], "completion": ASKED[1:]},
    "hh, chosen": {"chosen": "\n\nHuman: What is 1 + 1?\n\nAssistant: 2", "rejected": "\n\nHuman: x\n\nAssistant: y"},
    "hh, chosen beside a prompt": {"prompt": "What?", "chosen": "\n\nHuman: What is 1 + 1?\n\nAssistant: 2"},
    "a pair": {"instruction": "What is 1 + 1?", "input": "", "output": "3", "chosen": "2", "rejected": "3"},
    "a pair of conversations": {
        "prompt": "What is 1 + 1?",
        "chosen": ASKED,
        "rejected": [*ASKED[:1], {"role": "assistant", "content": "3"}],
    },
    "a pair of replies as messages": {"prompt": ASKED[:1], "chosen": ASKED[1:], "rejected": ASKED[1:]},
    "a pair of replies in ShareGPT's words": {"prompt": ASKED[:1], "chosen": [{"from": "gpt", "value": "2"}]},
    "hh, text": {"text": "Human: What is 1 + 1?\n\nAssistant: 2"},
}


def lines(folder, *rows, name="chats.jsonl"):
    file = folder / name
    file.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return file


@pytest.mark.parametrize("name", SAME)
def test_every_shape_is_found_by_its_columns(name, tmp_path):
    file = lines(tmp_path, SAME[name])
    (conversation,) = read_conversations(file)
    assert list(conversation.messages) == ASKED
    assert conversation.where == f"{file}:1"
    assert conversation.first_prompt == "What is 1 + 1?"


def test_a_shape_and_a_column_can_be_named(tmp_path):
    file = lines(tmp_path, {"chat": ASKED, "text": "Human: a\n\nAssistant: b"})
    assert [list(conversation.messages) for conversation in read_conversations(file, column="chat")] == [ASKED]
    (conversation,) = read_conversations(file, shape="hh")
    assert [message["content"] for message in conversation.messages] == ["a", "b"]
    pair = lines(tmp_path, SAME["a pair"], name="pairs.jsonl")
    (conversation,) = read_conversations(pair, column="rejected")
    assert [message["content"] for message in conversation.messages] == ["What is 1 + 1?", "3"]
    with pytest.raises(DataError, match=r":1: no column 'talk'"):
        list(read_conversations(file, column="talk"))


def test_a_list_in_a_table_is_json(tmp_path):
    file = tmp_path / "chats.csv"
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows([["messages"], [json.dumps(ASKED)]])
    assert [list(conversation.messages) for conversation in read_conversations(file)] == [ASKED]


def test_the_input_stands_below_the_instruction_and_the_system_message_first(tmp_path):
    file = lines(tmp_path, {"instruction": "Mend it.", "input": "He go.", "output": "He goes."})
    (conversation,) = read_conversations(file, system="Be brief.")
    assert [message["content"] for message in conversation.messages] == ["Be brief.", "Mend it.\n\nHe go.", "He goes."]
    own = lines(tmp_path, {"messages": [{"role": "system", "content": "Be long."}, *ASKED]})
    (conversation,) = read_conversations(own, system="Be brief.")
    assert conversation.messages[0]["content"] == "Be long."


def test_tools_and_calls_stay(tmp_path):
    call = {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {}}}]}
    tools = [{"type": "function", "function": {"name": "f"}}]
    messages = [ASKED[0], call, {"role": "tool", "content": "2"}, ASKED[1]]
    (conversation,) = read_conversations(lines(tmp_path, {"messages": messages, "tools": tools}), check=refuse_untaught)
    assert conversation.beside == {"tools": tools}
    assert conversation.messages[1]["tool_calls"] == call["tool_calls"]


REFUSED = {
    "ends with the user": ({"messages": [*ASKED, ASKED[0]]}, "2: the conversation ends with the user"),
    "empty reply": ({"messages": [ASKED[0], {"role": "assistant", "content": " "}]}, "2: message 1, a reply"),
    "nothing from the assistant": ({"messages": ASKED[:1]}, "2: the assistant says nothing"),
    "unknown role": (
        {"messages": [{"role": "pirate", "content": "a"}, ASKED[1]]},
        "2: message 0 has the role 'pirate'",
    ),
    "no content": ({"messages": [{"role": "user"}, ASKED[1]]}, r"2: message 0 \(user\) has no content"),
    "a number": ({"messages": [{"role": "user", "content": 1}, ASKED[1]]}, "2: message 0 .* a number"),
    "no list": ({"messages": 3}, "2: no list of messages but int"),
    "an empty list": ({"messages": []}, "2: no list of messages but an empty list"),
    "no objects": ({"messages": ["hello"]}, "2: message 0 is no object"),
    "missing column": ({"other": 1}, "2: no column 'messages'"),
    "wrong JSON": ("{", "2: not JSON"),
    "half a character": ('{"messages": [{"role": "user", "content": "\\ud800"}]}', "2: .*surrogate"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_conversation_is_refused_with_its_line(name, tmp_path):
    row, message = REFUSED[name]
    file = lines(tmp_path, {"messages": ASKED}, row)
    with pytest.raises(DataError, match=f"chats.jsonl:{message}") as caught:
        list(read_conversations(file, check=refuse_untaught))
    assert caught.value.hint
    assert len(list(read_conversations(file, check=refuse_untaught, skip_bad=1))) == 1


def test_files_without_conversations(tmp_path):
    with pytest.raises(DataError, match="0 conversations"):
        list(read_conversations(lines(tmp_path)))
    with pytest.raises(DataError, match=r":1: no conversation in a, b"):
        list(read_conversations(lines(tmp_path, {"a": 1, "b": 2})))
    with pytest.raises(DataError, match="does not begin with"):
        list(read_conversations(lines(tmp_path, {"text": "Human: a\n\nAssistant: b"}, {"text": "no one speaks"})))


NAMED = {
    "instructions-small/instruction": (931, 2),
    "instructions-small/preference": (931, 2),
    "gpteacher/roleplay": (1_731, 2),
    "sgd-dialogues/dev": (400, 2),
    "hh-rlhf-harmless": (1_803, 2),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_sets(name, data_set):
    data_set(name.partition("/")[0])
    conversations = list(read_conversations(name))
    count, least = NAMED[name]
    assert len(conversations) == count
    assert min(len(conversation.messages) for conversation in conversations) >= least
    assert {message["role"] for conversation in conversations for message in conversation.messages} == {
        "user",
        "assistant",
    }
