"""Matrices that are whole numbers already, for a GGUF file: their blocks hold them as they are, not rounded again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from orrery.checkpoints.gguf import stays_float
from orrery.checkpoints.gguf_file import Kind
from orrery.checkpoints.rules import Rule
from orrery.exchange.reading.gguf_model import keeps_rows
from orrery.exchange.reading.weights import weights_of
from orrery.models.model import Model
from orrery.tuning import matrix_of, refuse_transformed
from orrery.tuning.blocks import StoredBlocks, in_blocks, kinds_for
from orrery.tuning.quantise import Quantise

SCALE = ".weight_scale"


@dataclass
class Laid:
    """The tensors of a model as the rules of a file take them.

    Attributes:
        tensors: by our names, without scales; a matrix in blocks is uint8 ``[out, bytes of a row]``.
        kinds: of what is in blocks, by the file's names.
        deviation: the largest that a number in blocks is off by.
    """

    tensors: dict[str, Tensor]
    kinds: dict[str, Kind] = field(default_factory=dict)
    deviation: float = 0.0


def laid_out(model: Model, rules: Sequence[Rule]) -> Laid:
    """Return the tensors of a model: what is stored in whole numbers in blocks, where the file has the same rows.

    Parts of one tensor of the file have one kind: where some are of four bits and some of eight, all have eight, which
    hold the same numbers. What no blocks hold so is written out.

    Raises:
        UsageError: the model has other transforms than quantised matrices; they are named.
    """
    if any(not isinstance(transform, Quantise | StoredBlocks) for transform in model.transforms):
        refuse_transformed(model, "GGUF cannot hold")
    own = weights_of(model)
    laid = Laid({name: tensor for name, tensor in own.items() if not name.endswith(SCALE)})
    whole = {
        name: model.get_submodule(name.removesuffix(".weight"))
        for name, tensor in laid.tensors.items()
        if not tensor.is_floating_point()
    }
    for theirs, ours, kind in _kept(whole, rules):
        laid.kinds[theirs] = kind
        for name in ours:
            laid.tensors[name], deviation = in_blocks(whole.pop(name), kind)
            laid.deviation = max(laid.deviation, deviation)
    return Laid(laid.tensors | {name: matrix_of(module) for name, module in whole.items()}, laid.kinds, laid.deviation)


def _kept(whole: Mapping[str, nn.Module], rules: Sequence[Rule]) -> list[tuple[str, tuple[str, ...], Kind]]:
    """Return the tensors of the file that can be in blocks, with the parts of each and the first kind for them all."""
    places = [(*place, rule) for rule in rules for place in rule.places(whole)]
    return [
        (theirs, ours, kinds[0])
        for theirs, ours, rule in places
        if keeps_rows(rule.layout, len(ours))
        and whole.keys() >= set(ours)
        and not stays_float(theirs)
        and (kinds := _common(whole, ours))
    ]


def _common(whole: Mapping[str, nn.Module], names: Sequence[str]) -> list[Kind]:
    found = [kinds_for(whole[name]) for name in names]
    return [kind for kind in found[0] if all(kind in kinds for kinds in found)]
