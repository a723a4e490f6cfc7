"""What a base's files hold for a head that the base's own class lacks: BERT's pooler, beside its masked words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from orrery.checkpoints.rules import to_theirs
from orrery.checkpoints.store import SPEC
from orrery.errors import UsageError
from orrery.exchange.reading.files import open_weights
from orrery.exchange.reading.read import Stored
from orrery.exchange.reading.weights import weights_of
from orrery.families import load_family, rules_of

LABELS = ".labels."


def carried(
    model: nn.Module, stored: Stored, config: Mapping[str, Any], renewed: Sequence[str] = ()
) -> dict[str, Tensor]:
    """Return the tensors of a model's new heads that the files of its base hold, by our names.

    They are found by the name that the class of ``config`` gives them, with or without the name of the stack before it,
    as bare models leave that out. The last maps to labels are never taken: those of another class mean something else.
    """
    there, own = weights_of(stored.model), weights_of(model)
    new = [name for name in own if name not in there and LABELS not in name and not name.startswith(tuple(renewed))]
    if stored.family is None or not new:
        return {}
    held, tensors = _held(stored), dict[str, Tensor]()
    for rule in rules_of(load_family(stored.family), config):
        for theirs, ours in rule.places(new):
            name = next((name for name in _names(theirs) if name in held), None)
            shapes = [own[each].shape for each in ours]
            if name is not None and list(held[name].shape) == list(rule.join([own[each] for each in ours]).shape):
                tensors |= dict(zip(ours, rule.split(held[name], shapes), strict=True))
    return tensors


def _names(theirs: str) -> Iterator[str]:
    """Yield the names that a tensor may have in a file."""
    yield theirs
    yield theirs.partition(".")[2]


def _held(stored: Stored) -> Mapping[str, Tensor]:
    """Return the tensors of the base's files by their names there, or those of its model under these names."""
    if not (stored.folder / SPEC).is_file():
        return open_weights(stored.folder)
    try:
        rules = rules_of(load_family(stored.family), stored.config or {})
        return to_theirs(weights_of(stored.model), rules)
    except UsageError:  # a model beyond its family: what its heads are called there, nobody knows
        return {}
