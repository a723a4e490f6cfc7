"""Looking inside one pass over a text."""

from collections.abc import Mapping, Sequence
from functools import partial

from orrery.inspection.edits import Edit
from orrery.inspection.trace import Trace
from orrery.inspection.trace import trace as trace_model
from orrery.language_model.outputs import inputs, targets
from orrery.language_model.stored import check_one_vocabulary, reads_apart, target_vocabulary
from orrery.language_model.texts import encode, prompt, spell
from orrery.reading.read import Stored


def trace(stored: Stored, text: str, target: str | None, keep: Sequence[str], edit: Mapping[str, Edit] | None) -> Trace:
    """Return the inside of one pass over a text; see ``LanguageModel.trace``."""
    context, first = stored.model.spec.context, stored.model.first_token
    ids = prompt(stored, text, None, context)
    rows = [inputs(stored, [ids], None)[0]]
    if reads_apart(stored):
        check_one_vocabulary(stored)
        written = encode(stored, target or "", None, context - 1, target_vocabulary(stored))
        ids = [*([] if first is None else [first]), *written]
        rows.append(targets(stored, [ids]))
    tokens = [spell(stored, id) for id in ids]
    return trace_model(stored.model, *rows, keep=keep, edit=edit, tokens=tokens, spell=partial(spell, stored))
