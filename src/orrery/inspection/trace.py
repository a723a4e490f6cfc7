"""A trace: everything inside one forward pass, by name, with checks that looking was honest."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check, check_gates, check_mixing, check_sight, check_stream
from orrery.inspection.recorder import Edit, Recorder
from orrery.models.assemblies import Assembly
from orrery.nn.attention.kernels import Kernel, eager, sdpa


@dataclass(frozen=True)
class Trace:
    """The inside of one call: ``trace["blocks.4.attention.pattern"]``.

    Attributes:
        ids: the tokens, ``[B, L]``.
        tokens: their spelling in the first row, where a tokenizer was at hand.
        logits: ``[B, L, V]``.
        values: the kept tensors by key; beside the taps ``scores`` and ``pattern`` of every attention.
        checks: what was verified of this very call.
        notes: what a reader must know: another kernel, a check that does not apply.
    """

    ids: Int[Tensor, "B L"]
    logits: Float[Tensor, "..."]
    values: Mapping[str, Tensor]
    checks: Sequence[Check]
    notes: Sequence[str] = ()
    tokens: Sequence[str] = ()

    def __getitem__(self, key: str) -> Tensor:
        if key not in self.values:
            near = difflib.get_close_matches(key, self.values, n=3) or list(self.values)[:5]
            raise UsageError(f"nothing is called {key!r} in this trace", f"there is: {', '.join(near)}")
        return self.values[key]

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)


@torch.no_grad()
def trace(
    model: Assembly,
    *ids_BL: Int[Tensor, "B _"],
    keep: Sequence[str] = ("*",),
    edit: Mapping[str, Edit] | None = None,
    tokens: Sequence[str] = (),
    **call: Any,
) -> Trace:
    """Run the model once and return what is inside.

    The fused kernel never holds the scores, so beside it the eager definition shows scores and patterns of the same
    q and k, and they are checked against the fused kernel's output. An edit of scores or patterns needs them while
    the model runs: the call then uses the eager kernel, and a note says so.

    Args:
        model: any assembly, in eval mode.
        ids_BL: token ids; for an encoder-decoder those of the source and of the target.
        keep: patterns of the keys to keep.
        edit: by pattern of keys, a function from a tensor to the tensor that takes its place.
        tokens: the spelling of the ids, for pictures.
        call: what else the model takes: ``real``, ``segments``, ...

    Raises:
        UsageError: a pattern matches nothing.
    """
    if model.training:
        raise UsageError("a model in training mode drops numbers at random", "call model.eval() before a trace")
    edit = dict(edit or {})
    recorder = Recorder(edit=edit)
    inside = _edits_inside(model, ids_BL, edit, call)
    kernel = eager if inside or model.kernel is eager else sdpa
    notes = ["the eager kernel ran, because an edit reaches scores or patterns"] if inside else []
    logits = model(*ids_BL, kernel=kernel if kernel is eager else beside(kernel), taps=recorder, **call)
    recorder.check_used()
    values = recorder.values
    checks = [check_mixing(values), *check_gates(values)]
    if not edit:
        checks.append(check_sight(logits, model(*ids_BL, kernel=kernel, **call)))
    checks += check_stream(model, values, edit, notes)
    return Trace(ids_BL[-1], logits, _kept(values, keep), checks, notes, tokens)


def beside(kernel: Kernel) -> Kernel:
    """Return the kernel with the eager definition beside it, which shows scores and pattern and decides nothing."""

    def watched(*qkv: Tensor, tap: Callable[[str, Tensor], Tensor], **operands: Any) -> Tensor:
        eager(*qkv, tap=tap, **operands)
        return kernel(*qkv, tap=tap, **operands)

    return watched


def _edits_inside(
    model: Assembly, ids_BL: tuple[Tensor, ...], edit: Mapping[str, Edit], call: Mapping[str, Any]
) -> bool:
    """Say whether an edit matches what only the eager kernel shows; the keys come from a pass without edits."""
    if not edit:
        return False
    plain = Recorder()
    model(*ids_BL, kernel=eager, taps=plain, **call)
    keys = [key for key in plain.values if key.rpartition(".")[2] in ("scores", "pattern")]
    return any(fnmatchcase(key, pattern) for pattern in edit for key in keys)


def _kept(values: Mapping[str, Tensor], keep: Sequence[str]) -> dict[str, Tensor]:
    """Return the values that a pattern names, in order."""
    for pattern in keep:
        if not any(fnmatchcase(key, pattern) for key in values):
            near = difflib.get_close_matches(pattern, values, n=3) or list(values)[:5]
            raise UsageError(f"nothing is called {pattern!r} in this model", f"there is: {', '.join(near)}")
    return {key: value for key, value in values.items() if any(fnmatchcase(key, pattern) for pattern in keep)}
