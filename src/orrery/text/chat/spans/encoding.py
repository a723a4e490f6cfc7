"""Spans to ids: control tokens by their id, all other text without any."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from orrery.errors import DataError, ModelFileError
from orrery.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TextSpan:
    """Ordinary text, whoever wrote it; ``reply`` marks what the assistant is trained to write."""

    text: str
    reply: bool = False


@dataclass(frozen=True)
class Control:
    """One control token of the template, by its spelling."""

    token: str
    reply: bool = False


ChatSpan = TextSpan | Control


@dataclass(frozen=True)
class Rendered:
    """The ids of a conversation, and for each whether the assistant wrote it (its end token included).

    ``weights`` says for each how much it counts where some replies count less than others, and is empty elsewhere.
    """

    ids: list[int]
    reply: list[bool]
    weights: list[float] = field(default_factory=list)


def encode_spans(tokenizer: Tokenizer, spans: Sequence[ChatSpan]) -> Rendered:
    """Return the ids: control tokens exactly where ``spans`` has them, and nowhere else.

    Neighbouring texts are encoded as one, as they would be in one string: cutting them apart would give ids that
    the model was not trained on. Raises `DataError` where a text would become a control token, and `ModelFileError`
    where the start token is doubled.
    """
    ids: list[int] = []
    reply: list[bool] = []
    for control, group in groupby(spans, key=lambda span: isinstance(span, Control)):
        encode = _controls if control else _stretch
        part = encode(tokenizer.continuing if ids else tokenizer, group)
        ids += part.ids
        reply += part.reply
    refuse_doubled_start(tokenizer, ids)
    expected = [tokenizer.special(span.token) for span in spans if isinstance(span, Control)]
    # What the template uses as a control token is one, also where the vocabulary holds it as an ordinary piece.
    forged = _forgeable(tokenizer) | (set(expected) - _unknown(tokenizer))
    if [id for id in ids if id in forged] != [id for id in expected if id in forged]:
        raise DataError("the text of a message became a control token", "the tokenizer cannot tell them apart")
    return Rendered(ids, reply)


def refuse_doubled_start(tokenizer: Tokenizer, ids: Sequence[int]) -> None:
    """Raise `ModelFileError` where two start tokens (BOS) follow each other."""
    if "start" not in tokenizer.roles or tokenizer.id(tokenizer.roles["start"]) is None:
        return
    start = tokenizer.special("start")
    if any(left == right == start for left, right in pairwise(ids)):
        raise ModelFileError(
            f"the start token {tokenizer.roles['start']} is doubled",
            "the template writes it and so does the caller, or the template writes it twice; remove one",
        )


def _controls(tokenizer: Tokenizer, group: Iterable[ChatSpan]) -> Rendered:
    ids_and_replies = [(tokenizer.special(span.token), span.reply) for span in group if isinstance(span, Control)]
    return Rendered([id for id, _ in ids_and_replies], [reply for _, reply in ids_and_replies])


def _stretch(tokenizer: Tokenizer, group: Iterable[ChatSpan]) -> Rendered:
    texts = [span for span in group if isinstance(span, TextSpan) and span.text]
    text = "".join(span.text for span in texts)
    replies = {span.reply for span in texts}
    if len(replies) < 2:
        ids = tokenizer.encode(text)
        return Rendered(ids, [True in replies] * len(ids))
    ids, ends = tokenizer.encode_with_ends(text)
    # A token belongs to the reply when its last character does: that is the one the model has to predict.
    return Rendered(ids, [_reply_at(texts, end) for end in ends])


def _reply_at(texts: Sequence[TextSpan], end: int) -> bool:
    reached = 0
    for span in texts:
        reached += len(span.text)
        if end <= reached:
            return span.reply
    return texts[-1].reply


def _forgeable(tokenizer: Tokenizer) -> frozenset[int]:
    """Every control token but the unknown token, which any text with a rare character holds."""
    return tokenizer.control - _unknown(tokenizer)


def _unknown(tokenizer: Tokenizer) -> set[int | None]:
    return {tokenizer.id(tokenizer.roles.get("unknown", ""))}
