"""Looking inside one pass over a text."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orrery.inspection.edits import Edit
from orrery.inspection.trace import Trace
from orrery.inspection.trace import trace as trace_model
from orrery.language_model.chat import chat_template
from orrery.language_model.outputs import inputs, targets
from orrery.language_model.stored import check_one_vocabulary, reads_apart, target_vocabulary
from orrery.language_model.texts import encode, prompt, spell
from orrery.reading.read import Stored

Given = str | Sequence[int] | Sequence[Mapping[str, Any]]
"""A text, tokens, or a conversation."""


def trace(
    stored: Stored,
    text: Given,
    target: str | Sequence[int] | None,
    keep: Sequence[str],
    edit: Mapping[str, Edit] | None,
) -> Trace:
    """Return the inside of one pass over a text; see ``LanguageModel.trace``."""
    context, first = stored.model.spec.context, stored.model.first_token
    ids = _read(stored, text, context)
    rows = [inputs(stored, [ids], None)[0]]
    if reads_apart(stored):
        check_one_vocabulary(stored)
        written = target or ""
        if isinstance(written, str):
            written = encode(stored, written, None, context - 1, target_vocabulary(stored))
        ids = [*([] if first is None else [first]), *written]
        rows.append(targets(stored, [ids]))
    found = trace_model(stored.model, *rows, keep=keep, edit=edit, tokens=[spell(stored, id) for id in ids])
    if len(rows) == 1:
        return found
    source = [spell(stored, id) for id in rows[0][0].tolist()]
    return replace(found, source_ids=rows[0], source_tokens=source)


def _read(stored: Stored, given: Given, context: int) -> list[int]:
    """Return the tokens of what is given."""
    if isinstance(given, str):
        return prompt(stored, given, None, context)
    if given and isinstance(given[0], Mapping):
        return chat_template(stored, None).render(given).ids  # type: ignore[arg-type]
    return list(given)  # type: ignore[arg-type]
