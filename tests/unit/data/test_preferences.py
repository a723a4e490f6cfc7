"""Preferences: the shapes that are read, what is refused with its line, and batches that part no pair."""

import json
from typing import Any

import pytest
import torch

from orrery.data.batches.preferences import (
    PreferenceBatches,
    PreferencePair,
    RenderedReply,
    SequentialPreferences,
    SingleReply,
    mismatched,
    paired,
)
from orrery.data.rows.preferences import PreferenceColumns, read_preferences
from orrery.data.sources import SOURCES
from orrery.data.sources.preferences import fitted
from orrery.data.splits import held_back
from orrery.errors import DataError
from preference_toy import written

HH = ("\n\nHuman: Hi\n\nAssistant: Hello!\n\nHuman: A joke?\n\nAssistant: {}", "No.", "Sure: knock knock.")
ASKED = [{"role": "user", "content": "A joke?"}]


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text} for text in texts]


SHAPES: dict[str, dict[str, Any]] = {
    "texts": {"prompt": "A joke?", "chosen": "Knock.", "rejected": "No."},
    "alpaca": {"instruction": "A joke?", "input": "", "output": "?", "chosen": "Knock.", "rejected": "No."},
    "messages": {"prompt": ASKED, "chosen": said("Knock."), "rejected": said("No.")},
    "whole": {"chosen": [*ASKED, *said("Knock.")], "rejected": [*ASKED, *said("No.")]},
    "sharegpt": {
        "chosen": [{"from": "human", "value": "A joke?"}, {"from": "gpt", "value": "Knock."}],
        "rejected": [{"from": "human", "value": "A joke?"}, {"from": "gpt", "value": "No."}],
    },
    "hh": {"chosen": "\n\nHuman: A joke?\n\nAssistant: Knock.", "rejected": "\n\nHuman: A joke?\n\nAssistant: No."},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_the_same_pair(shape, tmp_path):
    (preference,) = read_preferences(written(tmp_path / "p.jsonl", [SHAPES[shape]]))
    assert [message["content"] for message in preference.chosen.messages] == ["A joke?", "Knock."]
    assert [message["content"] for message in preference.rejected.messages] == ["A joke?", "No."]
    assert [message["role"] for message in preference.chosen.messages] == ["user", "assistant"]
    assert (preference.first_prompt, preference.margin, preference.where) == (
        "A joke?",
        0.0,
        f"{tmp_path / 'p.jsonl'}:1",
    )


def test_several_rounds_share_all_but_the_last_reply(tmp_path):
    text, first, second = HH
    rows = [{"chosen": text.format(first), "rejected": text.format(second)}]
    (preference,) = read_preferences(written(tmp_path / "p.jsonl", rows), system="Be brief.")
    assert [message["role"] for message in preference.chosen.messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert preference.first_prompt == "Hi"
    assert preference.rejected.messages[-1]["content"] == second


def test_a_chosen_reply_that_is_scored_lower_is_told(tmp_path):
    rows = [{"prompt": f"a {n}", "chosen": "b", "rejected": "c", "s1": 3, "s2": n} for n in range(6)]
    file = written(tmp_path / "p.jsonl", rows)
    settings = {"kind": "preferences", "train": str(file), "columns": {"scores": ["s1", "s2"]}}
    source = SOURCES.find("preferences")
    notes = source.read(source.Settings.model_validate(settings)).remarks()
    assert "warning: 2 of 6 training rows have a margin below 0: what is called chosen is scored lower" in notes


def test_replies_that_stand_alone_and_margins(tmp_path):
    rows = [{"prompt": "a", "completion": "b", "label": label} for label in (True, False, "true", 0)]
    preferences = list(read_preferences(written(tmp_path / "p.jsonl", rows)))
    assert [row.chosen is not None for row in preferences] == [True, False, True, False]
    pair = {"prompt": "a", "chosen": "b", "rejected": "c", "margin": 0.5, "s1": 3, "s2": "1.25"}
    file = written(tmp_path / "m.jsonl", [pair])
    assert next(read_preferences(file)).margin == 0.5
    assert next(read_preferences(file, PreferenceColumns(scores=("s1", "s2")))).margin == 1.75
    named = PreferenceColumns(chosen="s1", rejected="s2", prompt="prompt")
    with pytest.raises(DataError, match=r"m\.jsonl:1: column 's1' is not a text"):
        next(read_preferences(file, named))


REFUSED = {
    "the same": ({"prompt": "a", "chosen": "b", "rejected": " b"}, "are the same"),
    "an empty side": ({"prompt": "a", "chosen": "b", "rejected": "  "}, "'rejected' is empty"),
    "an empty prompt": ({"prompt": " ", "chosen": "b", "rejected": "c"}, "'prompt' is empty"),
    "ends with the user": (
        {"chosen": [*ASKED, *said("b"), *ASKED], "rejected": [*ASKED, *said("c")]}, "ends with the user",
    ),
    "different prompts": (
        {"chosen": "\n\nHuman: a\n\nAssistant: b", "rejected": "\n\nHuman: A!\n\nAssistant: c"}, "different prompts",
    ),
    "NaN": ({"prompt": "a", "chosen": "b", "rejected": "c", "margin": float("nan")}, "'margin' is 'nan'"),
    "no number": ({"prompt": "a", "chosen": "b", "rejected": "c", "margin": "much"}, "'margin' is 'much'"),
    "no label": ({"prompt": "a", "completion": "b", "label": "good"}, "neither true nor false"),
    "other columns": ({"question": "a", "answer": "b"}, "no preferences in question, answer"),
    "no text": ({"prompt": "a", "chosen": 5, "rejected": "c"}, "is not a text but int"),
    "no conversation": ({"chosen": "b", "rejected": "c"}, "does not begin with"),
    "a role": ({"chosen": [*ASKED, {"role": "boss", "content": "b"}], "rejected": [*ASKED, *said("c")]}, "role 'boss'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_bad_row_is_told_with_its_line(case, tmp_path):
    row, message = REFUSED[case]
    file = written(tmp_path / "p.jsonl", [SHAPES["texts"], row])
    with pytest.raises(DataError, match=rf"p\.jsonl:2: .*{message}") as error:
        list(read_preferences(file))
    assert error.value.hint
    if case != "other columns":
        assert len(list(read_preferences(file, skip_bad=1))) == 1


def test_an_empty_file_and_a_missing_column_are_refused(tmp_path):
    (tmp_path / "p.jsonl").write_text("")
    with pytest.raises(DataError, match="0 rows"):
        list(read_preferences(tmp_path / "p.jsonl"))
    with pytest.raises(DataError, match="no column 'better'"):
        list(read_preferences(written(tmp_path / "q.jsonl", [SHAPES["texts"]]), PreferenceColumns(chosen="better")))


def source(file: str, **settings: Any) -> Any:
    kind = SOURCES.find("preferences")
    return kind.read(kind.Settings(train=file, **settings))


def test_a_first_prompt_is_trained_on_or_held_back_with_all_its_rows(tmp_path):
    prompts = [f"question {number}" for number in range(40)]
    rows = [{"prompt": prompt, "chosen": f"yes {n}", "rejected": f"no {n}"} for n in range(3) for prompt in prompts]
    read_here = source(written(tmp_path / "p.jsonl", rows), split={"every": 4})
    train, others = ({row.first_prompt for row in part} for part in (read_here.train, read_here.held_back))
    assert others == {prompt for prompt in prompts if held_back(prompt, 4)}
    assert not train & others
    assert len(read_here.held_back) == 3 * len(others)
    by_row = source(written(tmp_path / "p.jsonl", rows), split={"every": 4, "by": "row"})
    assert len(by_row.held_back) == 30
    with pytest.raises(DataError, match="of its 1 rows none can be held back"):
        source(written(tmp_path / "one.jsonl", rows[:1]), split={"every": 1000})


A, B = RenderedReply([1, 2, 3, 9], 3), RenderedReply([1, 2, 3, 7, 8, 9], 3)


def test_a_pair_that_is_too_long():
    assert fitted([A, B], 6, "refuse", "f:1") == [A, B]
    with pytest.raises(DataError, match="f:1: prompt and reply have 6 tokens"):
        fitted([A, B], 5, "refuse", "f:1")
    with pytest.raises(DataError, match="f:1: the prompt has 3 tokens"):
        fitted([A, B], 3, "refuse", "f:1")
    assert fitted([A, B], 5, "leave_out", "f:1") is None
    # The prompt loses its beginning, on both sides as much; a reply is never cut.
    assert fitted([A, B], 5, "cut", "f:1") == [RenderedReply([2, 3, 9], 2), RenderedReply([2, 3, 7, 8, 9], 2)]
    assert fitted([A, B], 4, "cut", "f:1") == [RenderedReply([3, 9], 1), RenderedReply([3, 7, 8, 9], 1)]
    assert fitted([A, B], 3, "cut", "f:1") is None


def test_fields_of_pairs_and_of_replies_that_stand_alone():
    batch = paired([PreferencePair(A, B, 0.5), PreferencePair(B, A, 0.0)])
    assert batch["ids"].shape == (2, 2, 6)
    assert batch["ids"][0].tolist() == [[1, 2, 3, 9, 0, 0], [1, 2, 3, 7, 8, 9]]
    assert batch["real"][0, 0].tolist() == [True] * 4 + [False] * 2
    assert batch["reply"][0].int().tolist() == [[0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert batch["margin"].tolist() == [0.5, 0.0]
    # A reply whose ids are those of padding or of an end token counts by its place alone.
    assert paired([PreferencePair(RenderedReply([0, 0], 1), A, 0.0)])["reply"][0, 0].tolist() == [
        False,
        True,
        False,
        False,
    ]
    rows = [SingleReply(A, True), SingleReply(B, False), SingleReply(RenderedReply([4, 5], 1), True)]
    alone = mismatched(6)(rows)
    assert alone["desirable"].tolist() == [True, False, True]
    assert alone["ids"][:, 1].tolist() == [[1, 2, 3, 5, 0, 0], [1, 2, 3, 9, 0, 0], [4, 7, 8, 9, 0, 0]]
    assert mismatched(3)(
        [SingleReply(RenderedReply([1, 2, 3], 2), True), SingleReply(RenderedReply([4, 5, 6], 1), True)]
    )["ids"][0, 1].tolist() == [
        1,
        2,
        5,
    ]


def test_what_the_template_writes_behind_a_reply_is_read_and_not_learnt():
    own, other = RenderedReply([1, 2, 3, 8, 8], 2, 2), RenderedReply([1, 2, 6, 8], 2, 1)
    batch = paired([PreferencePair(own, other, 0.0)])
    assert batch["reply"][0].int().tolist() == [[0, 0, 1, 0, 0], [0, 0, 1, 0, 0]]
    assert batch["real"][0].int().tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]
    assert fitted([own, other], 4, "cut", "f:1") == [RenderedReply([2, 3, 8, 8], 1, 2), RenderedReply([2, 6, 8], 1, 1)]
    for length, learnt in ((5, [0, 0, 1, 0, 0]), (4, [0, 0, 1, 0, 0]), (3, [0, 0, 1, 0, 0])):
        rows = mismatched(length)([SingleReply(own, True), SingleReply(own, True)])
        assert rows["reply"][0, 1].int().tolist() == learnt


def test_every_epoch_has_each_pair_once_and_evaluation_too():
    rows = [
        PreferencePair(RenderedReply([1, n + 2, 3], 1), RenderedReply([1, 2, 3, n + 4], 1), float(n)) for n in range(12)
    ]
    batches = PreferenceBatches(rows, paired, 4, 0, None)
    assert sorted(m for step in range(3) for m in batches.batch(step)["margin"].tolist()) == [
        float(n) for n in range(12)
    ]
    assert torch.equal(batches.batch(7)["ids"], PreferenceBatches(rows, paired, 4, 0, None).batch(7)["ids"])
    windows = SequentialPreferences(rows, paired, 5, None)
    assert sorted(m for n in range(len(windows)) for m in windows.batch(n)["margin"].tolist()) == list(range(12))
    by_tokens = PreferenceBatches(rows, paired, 99, 0, 8)
    assert all(by_tokens.batch(step)["ids"][:, 0].numel() <= 8 for step in range(5))


def test_the_lines_of_a_bad_row_are_json(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text(json.dumps(SHAPES["texts"]) + "\n{not json\n")
    with pytest.raises(DataError, match=r"p\.jsonl:2"):
        list(read_preferences(file))
