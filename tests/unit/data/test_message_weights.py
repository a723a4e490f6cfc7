"""``weight`` and ``train`` of a message: which replies are learnt, in every format, and what is refused."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.chat_toy import chat_tokenizer

from orrery.data.batches.rendering import cut_to, render, weights_of
from orrery.data.rows.conversations import read_conversations, refuse_untaught
from orrery.data.sources import BatchRequest
from orrery.data.sources.conversations import ConversationSettings, ConversationSource
from orrery.errors import DataError
from orrery.text.chat.folder import DEFAULT
from orrery.text.chat.formats import FORMATS
from orrery.text.chat.of_run import template_of_run, templates_of_run

REPLIES = ("the cat", "on the mat", "the dog")
PATTERNS = [pattern for pattern in product((0, 1), repeat=3) if any(pattern)]


def rows(weights: Any, field: str = "weight", roles: tuple[str, str] = ("role", "content")) -> dict[str, Any]:
    role, content = roles
    messages: list[dict[str, Any]] = []
    for reply, weight in zip(REPLIES, weights, strict=False):
        messages.append({role: "user", content: "why?"})
        messages.append({role: "assistant", content: reply, **({} if weight is None else {field: weight})})
    return {"messages" if content == "content" else "conversations": messages}


def read(tmp_path: Path, *wanted: dict[str, Any], **settings: Any) -> Any:
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in wanted), encoding="utf-8")
    return ConversationSource.read(ConversationSettings(train=str(path), **settings))


def learnt(source: Any, form: str = "chatml", replies: Any = "all") -> str:
    tokenizer = chat_tokenizer(form)
    rendered = render(template_of_run(templates_of_run(form, {}), tokenizer), source.train[0], replies)
    return tokenizer.decode([id for id, own in zip(rendered.ids, rendered.reply, strict=True) if own])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_reply_of_weight_0_is_read_and_not_learnt(tmp_path: Path, form: str, pattern: tuple[int, ...]) -> None:
    text = learnt(read(tmp_path, rows(pattern)), form)
    assert [reply in text for reply in REPLIES] == [bool(weight) for weight in pattern]


@pytest.mark.parametrize(
    "given",
    [[0, 1], [False, True], [0.0, 1.0], [0, None], [False, None]],
    ids=["0", "false", "0.0", "alone", "false alone"],
)
@pytest.mark.parametrize("field", ["weight", "train", "loss", "loss_scale"])
def test_every_spelling_of_no_counts(tmp_path: Path, given: list[Any], field: str) -> None:
    assert REPLIES[0] not in (text := learnt(read(tmp_path, rows(given, field))))
    assert REPLIES[1] in text


def test_the_lists_of_other_shapes_keep_theirs(tmp_path: Path) -> None:
    for roles in (("from", "value"), ("role", "text")):
        assert REPLIES[0] not in learnt(read(tmp_path, rows([0, 1], "train", roles)))
    assert REPLIES[0] not in learnt(read(tmp_path, rows([None, None, 1])), replies="last")


def changed(place: int, **fields: Any) -> dict[str, Any]:
    row = rows([1, 1])
    row["messages"][place] |= fields
    return row


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "all zero": (rows([0, 0]), "every reply of the assistant has the weight 0"),
    "all false": (rows([False, False], "train"), "every reply of the assistant has the weight 0"),
    "no number": (rows([float("nan"), 1]), "message 1 has weight NaN, which says neither"),
    "a share to train": (rows([0.5, 1], "train"), "message 1 has train 0.5, which says neither"),
    "a loss of another size": (rows([2, 1], "loss_scale"), "message 1 has loss_scale 2, which says neither"),
    "parts of a reply": (
        changed(1, train_detail=[{"begin_offset": 0, "end_offset": 2, "train": True}]),
        "message 1 has train_detail, parts of a reply",
    ),
    "a share and no": (changed(1, weight=0.5, train=False), "message 1 has weight 0.5 and train False"),
    "two": (rows([2, 1]), "message 1 has weight 2, which says neither"),
    "one and a half": (rows([1.5, 1]), "message 1 has weight 1.5, which says neither"),
    "below zero": (rows([-1, 1]), "message 1 has weight -1, which says neither"),
    "a word": (rows(["no", 1]), 'message 1 has weight "no", which says neither'),
    "a number in a text": (rows(["0.5", 1]), 'message 1 has weight "0.5", which says neither'),
    "a list": (rows([[0], 1]), r"message 1 has weight \[0\], which says neither"),
    "both": (changed(1, weight=1, train=False), "message 1 has weight 1 and train False"),
    "the user's": (changed(0, train=True), "message 0, of the user, is to be learnt"),
    "the user's weight": (changed(2, weight=1), "message 2, of the user, is to be learnt"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused_by_its_row(tmp_path: Path, name: str) -> None:
    row, told = REFUSED[name]
    with pytest.raises(DataError, match=rf"c\.jsonl:2: .*{told}") as refused:
        read(tmp_path, rows([1, 1]), row)
    assert "skip_bad" in refused.value.hint
    assert len(read(tmp_path, rows([1, 1]), row, skip_bad=1).train) == 1


def test_a_last_reply_of_weight_0_is_refused_where_it_alone_is_learnt(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the last reply, which alone is learnt, has the weight 0"):
        read(tmp_path, rows([1, 0]), replies="last")
    assert REPLIES[1] in learnt(read(tmp_path, rows([0, 1]), replies="last"), replies="last")


def test_the_user_may_be_marked_as_not_learnt_and_an_empty_reply_of_weight_0_stands(tmp_path: Path) -> None:
    row = changed(0, train=False)
    row["messages"][1] |= {"content": "", "weight": 0}
    (conversation,) = read_conversations(written(tmp_path, row), check=refuse_untaught)
    assert [message["role"] for message in conversation.messages] == ["user", "assistant"] * 2


def written(tmp_path: Path, row: dict[str, Any]) -> Path:
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return path


def test_the_batches_and_the_share_that_is_said_have_the_weights(tmp_path: Path) -> None:
    counts = []
    for weights in ([1, 1, 1], [0, 0, 1]):
        source = read(tmp_path, rows(weights))
        asked = BatchRequest("padded", 96, 1, 7, chat_tokenizer("chatml"), chat=source.chat({}))
        assert DEFAULT in asked.chat
        examples = source.examples(asked)
        counts.append(int((examples.train.batch(0)["targets"] >= 0).sum()))
        assert f"training: {counts[-1]} of " in "\n".join(examples.notes)
    assert counts[1] < counts[0]


@pytest.mark.parametrize("kind", ["padded", "packed"])
@pytest.mark.parametrize("shares", [(0.5, 1, 0), (0.1, 0.25, 1), (1e-9, None, 0.75)])
def test_a_share_stands_beside_each_token_of_its_reply(tmp_path: Path, kind: str, shares: tuple[Any, ...]) -> None:
    source = read(tmp_path, rows(shares), rows([1, 1, 1]))
    asked = BatchRequest(kind, 96, 2, 7, chat_tokenizer("chatml"), chat=source.chat({}))
    batch = source.examples(asked).train.batch(0)
    found, tokenizer = batch["weights"], chat_tokenizer("chatml")
    assert ((found > 0) == (batch["targets"] >= 0)).all()
    for share, reply in zip(shares, REPLIES, strict=True):
        weight = 1 if share is None else share
        said = tokenizer.decode(batch["targets"][(found == weight) & (batch["targets"] >= 0)].tolist())
        assert (reply in said) == bool(weight)


def test_what_is_held_back_counts_alike_and_whole_weights_need_none(tmp_path: Path) -> None:
    for shares in ((0.5, 1), (0, 1)):
        source = read(tmp_path, *[rows(shares)] * 20)
        examples = source.examples(BatchRequest("padded", 96, 2, 7, chat_tokenizer("chatml"), chat=source.chat({})))
        assert ("weights" in examples.train.batch(0)) == (shares[0] == 0.5)
        assert examples.held_back is None or "weights" not in examples.held_back.batches.batch(0)


def test_a_cut_keeps_the_shares_of_what_is_left(tmp_path: Path) -> None:
    source = read(tmp_path, rows([0.5, 0.25, 1]), long="cut")
    whole = render(template_of_run(templates_of_run("chatml", {}), chat_tokenizer("chatml")), source.train[0])
    assert cut_to(whole, 20).weights == whole.weights[:20]
    assert weights_of(whole) == [*whole.weights[1:], 0.0]
