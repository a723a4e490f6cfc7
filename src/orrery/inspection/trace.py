"""A trace: everything inside one forward pass, by name, with checks that looking was honest."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check, check_mixing, check_sight, check_stream
from orrery.inspection.recorder import Edit, Recorder
from orrery.models.decoder import Decoder
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.context import Context


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
    logits: Float[Tensor, "B L V"]
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
    model: Decoder,
    ids_BL: Int[Tensor, "B L"],
    *,
    real: Bool[Tensor, "B L"] | None = None,
    keep: Sequence[str] = ("*",),
    edit: Mapping[str, Edit] | None = None,
    tokens: Sequence[str] = (),
) -> Trace:
    """Run the model once and return what is inside.

    The fused kernel never holds the scores, so scores and patterns are derived from the captured q and k by the
    eager definition, and checked against the kernel's output. An edit of scores or patterns needs them while the
    model runs: the call then uses the eager kernel, and a note says so.

    Args:
        model: a decoder in eval mode.
        ids_BL: token ids.
        real: which of them are not padding.
        keep: patterns of the keys to keep.
        edit: by pattern of keys, a function from a tensor to the tensor that takes its place.
        tokens: the spelling of the ids, for pictures.

    Raises:
        UsageError: a pattern matches nothing.
    """
    if model.training:
        raise UsageError("a model in training mode drops numbers at random", "call model.eval() before a trace")
    edit = dict(edit or {})
    kernel = eager if _edits_inside(model, edit) else sdpa
    notes = ["the eager kernel ran, because an edit reaches scores or patterns"] if kernel is eager else []
    recorder = Recorder(edit=edit)
    x_BLD, ctx = model.prepare(ids_BL, real=real, kernel=kernel, taps=recorder)
    logits_BLV = ctx.tap(model, "logits", model.head(model.stack(x_BLD, ctx)))
    recorder.check_used()
    values = _with_patterns(model, ctx, recorder.values)
    checks = [check_mixing(values)]
    if not edit:
        checks.append(check_sight(logits_BLV, model(ids_BL, real=real)))
    checks += check_stream(model, values, edit, notes)
    return Trace(ids_BL, logits_BLV, _kept(values, keep), checks, notes, tokens)


def attentions(model: Decoder) -> Iterator[tuple[str, MultiHeadAttention]]:
    """Yield every attention with the key of its taps, in order of depth; a shared block comes at each depth."""
    for depth, block in enumerate(model.stack.blocks):
        for module in block.modules():
            if isinstance(module, MultiHeadAttention):
                yield f"blocks.{depth}.{module.role}", module


def _edits_inside(model: Decoder, edit: Mapping[str, Edit]) -> bool:
    """Say whether an edit could match what only the eager kernel shows."""
    keys = [f"{path}.{name}" for path, _ in attentions(model) for name in ("scores", "pattern")]
    return any(fnmatchcase(key, pattern) for pattern in edit for key in keys)


def _with_patterns(model: Decoder, ctx: Context, seen: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the values with scores and patterns before every ``mixed``, derived where the kernel hid them."""
    paths = dict(attentions(model))
    values: dict[str, Tensor] = {}
    for key, value in seen.items():
        path, _, name = key.rpartition(".")
        if name == "mixed" and f"{path}.pattern" not in seen:
            values |= {f"{path}.{inner}": found for inner, found in _derive(paths[path], ctx, path, seen).items()}
        values[key] = value
    return values


def _derive(attention: MultiHeadAttention, ctx: Context, path: str, seen: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return scores and pattern of one attention by the eager definition from the captured q, k and v."""
    inside = Recorder()
    eager(
        *(seen[f"{path}.{name}"] for name in "qkv"),
        mask=ctx.masks[attention.mask],
        bias_BHLS=ctx.positions[attention.position].bias(attention.mask),
        scale=attention.scale,
        dropout=0.0,
        tap=inside,
    )
    return inside.values


def _kept(values: Mapping[str, Tensor], keep: Sequence[str]) -> dict[str, Tensor]:
    """Return the values that a pattern names, in order."""
    for pattern in keep:
        if not any(fnmatchcase(key, pattern) for key in values):
            near = difflib.get_close_matches(pattern, values, n=3) or list(values)[:5]
            raise UsageError(f"nothing is called {pattern!r} in this model", f"there is: {', '.join(near)}")
    return {key: value for key, value in values.items() if any(fnmatchcase(key, pattern) for pattern in keep)}
