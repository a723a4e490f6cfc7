"""Looking inside one pass over a text, ids, a conversation, or a pair of source and target."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, SupportsIndex, TypeAlias

from torch import Tensor

from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import check_one_vocabulary, reads_apart, target_vocabulary, tokenizer_of
from orrery.inspection.call import ModelRun
from orrery.inspection.edits import Edit
from orrery.inspection.trace import Trace
from orrery.inspection.trace import trace as trace_model
from orrery.language_model.chat import chat_template
from orrery.language_model.outputs import inputs, targets
from orrery.language_model.pictures import Picture, images_of, patch_names
from orrery.language_model.texts import encode, framed, prompt, spell
from orrery.nn.inputs import Images
from orrery.text.chat.messages import Message

Row: TypeAlias = str | Sequence[int] | Picture
"""A text, or the ids of one row as they are; of a model of images an image."""
Given: TypeAlias = Row | Sequence[Message] | tuple[Row, Row]


def trace(
    stored: Stored,
    given: Given,
    target: Row | None,
    keep: Sequence[str],
    edit: Mapping[str, Edit] | None,
    folder: str | Path | None,
) -> Trace:
    """Return the inside of one pass; see ``LanguageModel.trace``."""
    call = call_of(stored, given, target)
    spelling: dict[str, Any] = {"tokens": call.tokens, "source_tokens": call.source_tokens, "spell": call.spell}
    return call.look(call.model, *call.inputs, keep=keep, edit=edit, folder=folder, **spelling)


def call_of(stored: Stored, given: Given, target: Row | None = None) -> ModelRun[Trace]:
    """Return what a pass over ``given`` runs: the model, what it reads, and how that is spelled.

    Raises:
        UsageError: nothing to read, too much, or a target for a model that has none.
    """
    read, target = source_and_target(given, target)
    row = _read(stored, read)
    is_image = row.is_floating_point()
    spelled = patch_names(stored, (row.shape[-2], row.shape[-1])) if is_image else _spelled(stored, row)
    known = partial(spell, stored) if stored.tokenizer is not None else None
    if stored.model.spec.reads_pair:
        beside = _written(stored, target) if reads_apart(stored) else _text(stored, target)
        written_BL = targets(stored, [beside])
        tokens = _spelled(stored, written_BL, written=True)
        return ModelRun(trace_model, stored.model, (row, written_BL), tokens=tokens, source_tokens=spelled, spell=known)
    if target is not None:
        raise UsageError("this model reads and writes one row, and has no target", "give it what it reads alone")
    return ModelRun(trace_model, stored.model, (row,), tokens=spelled, spell=known)


def token_id(stored: Stored, text: str) -> int:
    """Return the id of a text that is one token; see ``LanguageModel.token_id``."""
    tokenizer = tokenizer_of(stored)
    own = tokenizer.id(text)
    ids = tokenizer.encode(text)
    if own is None and tokenizer.unknown(ids):
        message = f"{text!r} is not in the vocabulary: the tokenizer reads it as an unknown token"
        raise UsageError(message, "give a word that the model knows, or an id")
    if len(ids) == 1:
        return ids[0]
    if own is not None:
        return own
    spelled = " + ".join(repr(spell(stored, id)) for id in ids)
    variants = [other for other in (f" {text}", text.strip()) if other != text and len(tokenizer.encode(other)) == 1]
    others = f"; {' and '.join(map(repr, variants))} is one token" if variants else ""
    raise UsageError(
        f"{text!r} is {len(ids)} tokens: {spelled or 'none'}",
        f"give a text of one token, or an id{others}; within a sentence a word often begins with its space",
    )


def source_and_target(given: Given, target: Row | None) -> tuple[Row | Sequence[Message], Row | None]:
    """Tell a pair of source and target from a row of ids."""
    if not isinstance(given, tuple) or len(given) != 2 or any(isinstance(side, int) for side in given):
        return given, target  # type: ignore[return-value]
    if target is not None:
        raise UsageError("the target is given twice", "give (source, target), or target=")
    return given[0], given[1]  # type: ignore[return-value]


def _read(stored: Stored, given: Row | Sequence[Message]) -> Tensor:
    """Return what the model reads, as it learned to read it."""
    if isinstance(next(iter(stored.model.spec.inputs.values())), Images):
        return images_of(stored, given)
    return inputs(stored, [_ids(stored, given)], None)[0]


def _ids(stored: Stored, given: Row | Sequence[Message]) -> list[int]:
    if isinstance(given, str):
        return prompt(stored, given, None, stored.model.spec.context)
    if isinstance(given, Tensor):
        is_one_row = not given.is_floating_point() and (given.dim() == 1 or len(given) == 1)
        return given.flatten().tolist() if is_one_row else _refused(given)
    if not isinstance(given, Sequence) or isinstance(given, bytes | bytearray | memoryview):
        return _refused(given)
    if given and all(isinstance(part, Mapping) for part in given):
        if reads_apart(stored):
            raise UsageError("this model has no chats: it writes beside a source", "give (source, target)")
        messages: Any = given
        ends = messages[-1].get("role") != "assistant"
        return chat_template(stored, None).render(messages, prompt=ends, replies=False).ids
    if not all(isinstance(part, SupportsIndex) and not isinstance(part, bool) for part in given):
        return _refused(given)
    return [part.__index__() for part in given]  # type: ignore[union-attr]


def _refused(given: object) -> list[int]:
    raise UsageError(
        f"a trace of {type(given).__name__} {str(given)[:40]}",
        "give a text, ids (one list of numbers), messages (a list of role and content), (source, target), or an image "
        "to a model that reads images",
    )


def _written(stored: Stored, target: Row | None) -> list[int]:
    """Return the ids of a target: of a text behind the token that every target begins with; ids as they are."""
    context, first = stored.model.spec.context, stored.model.first_token
    begins = [] if first is None else [first]
    if target is not None and not isinstance(target, str):
        return _ids(stored, target)
    check_one_vocabulary(stored)
    return [*begins, *encode(stored, target or "", None, context - 1, target_vocabulary(stored))]


def _text(stored: Stored, text: Row | None) -> list[int]:
    """Return the ids of the text beside a picture, as the model was trained on such; ids as they are.

    Raises:
        UsageError: there is not one token.
    """
    if text is not None and not isinstance(text, str):
        return _ids(stored, text)
    context = stored.model.spec.context
    ids = framed(stored, encode(stored, text or "", None, context, target_vocabulary(stored)), None)
    if not ids:
        raise UsageError("the text beside the picture is empty", "give (picture, text), or target=")
    spec: Any = stored.model.spec
    if spec.fill is None:
        return ids
    return [*ids, *[spec.fill.padding(stored.tokenizer)] * (spec.fill.length - len(ids))]


def _spelled(stored: Stored, ids_BL: Tensor, *, written: bool = False) -> list[str]:
    """Return how the ids read, where the tokenizer knows them."""
    if stored.tokenizer is None:
        return []
    sizes = stored.model.spec.vocabulary, stored.model.spec.target_vocabulary
    if written and None not in sizes and sizes[0] != sizes[1]:
        return []
    known = stored.tokenizer.size
    return [spell(stored, id) if id < known else f"[{id}]" for id in ids_BL[0].tolist()]
