"""The residual stream as a sum: embeddings, heads, biases and feed-forwards, which add up to its last value."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.frozen import Frozen, NotLinearError, frozen, unchanged
from orrery.inspection.attribution.sublayers import (
    FEED_FORWARDS,
    Sublayer,
    behind_branch,
    branch_parts,
    on_stream,
    sublayers,
)
from orrery.inspection.attribution.view import TraceView
from orrery.inspection.checks import REPLACED, Check, bound, error, stream_is_edited, sums_up
from orrery.inspection.recorded import RecordedPass
from orrery.nn.feedforward.moe import MoE
from orrery.nn.residual import NoSkip
from orrery.nn.stack import Stack

FROZEN = "norms or factors act on the stream itself: each part went through them with the scales of this very pass"


@dataclass(frozen=True)
class StreamParts:
    """The stream after the last block, before the final norm, as a sum.

    Attributes:
        names: of the parts: ``embedded.token``, ``blocks.3.attention.head.5``, ``blocks.3.feed_forward.added``, ...
        value_NBPD: each part at each position that was asked for.
        positions: these positions, counted from the left.
        check: how far the sum is from the stream, ``max|a - b| / max(1, max|b|)``.
        notes: what a reader must know: parts that could not be taken apart, norms that act on the stream.
    """

    names: Sequence[str]
    value_NBPD: Float[Tensor, "N B P D"]
    positions: Sequence[int]
    check: Check
    notes: Sequence[str] = ()

    def __getitem__(self, name: str) -> Float[Tensor, "B P D"]:
        """Return one part.

        Raises:
            UsageError: there is none of this name.
        """
        if name not in self.names:
            raise UsageError(f"no part is called {name!r}", f"there is: {', '.join(list(self.names)[:5])}, ...")
        return self.value_NBPD[list(self.names).index(name)]


def parts_of(trace: RecordedPass, position: int | None = -1) -> StreamParts:
    """Return the parts of the stream after the last block.

    ``x = token + position + sum_l (sum_h mixed_lh W_lh + b_l + feed_forward_l)`` (Elhage et al. 2021). What stands
    behind a branch (Gemma's norm, Granite's factor) acts on its parts with the scale that it had. So do, in a model
    whose norms act on the stream itself (post-LN), those norms on all parts before them, and a note says so: each
    norm is then a linear map, and the sum is as exact. Where a recurrence lets nothing pass beside it, only
    what comes after it is left.

    Args:
        trace: which has kept ``embedded``, ``positioned``, ``looked_up`` and of every block ``mixed`` (and ``gate``
            where there is one on the heads), ``hidden`` or ``added``, and ``resid``.
        position: one position, a negative one from the right; ``None`` for all.

    Raises:
        UsageError: no such position, a value that was not kept, or an edit that replaced the stream.
    """
    stack, view = trace.model.stack, TraceView(trace, position)
    layers = sublayers(stack)
    stream = [key for layer in layers for key in (f"{layer.block}.resid_pre", layer.after, f"{layer.block}.resid_post")]
    if stream_is_edited(trace.call.edit, stream):
        raise UsageError(REPLACED, "edit what is added to it, or look at the run without the edit")
    total = _Total(view)
    total.embed(stack)
    for layer in layers:
        total.add(layer)
    if not sums_up(stack):
        total.notes.append(FROZEN)
    last = view.stream(layers[-1].after)
    value_NBPD = torch.stack(list(total.parts.values()))
    name = "the parts sum to the stream after the last block"
    check = Check(name, error(value_NBPD.double().sum(0), last.double()), bound(trace[layers[-1].after].dtype))
    return StreamParts(list(total.parts), value_NBPD, list(view.positions), check, total.notes)


class _Total:
    """The parts so far, each as it stands in the stream at this point."""

    def __init__(self, view: TraceView) -> None:
        self.view = view
        self.parts: dict[str, Tensor] = {}
        self.notes: list[str] = []

    def embed(self, stack: Stack) -> None:
        """Begin with the token's vector and that of its position, as ``start`` leaves them."""
        path = stack.path
        if any(self.view.edited(f"{path}{name}") for name in ("positioned", "embedded")):
            self.parts["embedded"] = self.view.stream(f"{path}embedded")
            return
        token_BPE, x_BPD = (self.view.stream(f"{path}{name}") for name in ("looked_up", "positioned"))
        # Positions of one-hot vectors stand behind the token's channels: there the token has none.
        token_BPD = torch.nn.functional.pad(token_BPE, (0, x_BPD.shape[-1] - token_BPE.shape[-1]))
        self.parts["embedded.token"] = token_BPD
        if not torch.equal(token_BPD, x_BPD):
            self.parts["embedded.position"] = x_BPD - token_BPD
        self._through(frozen(stack.start, x_BPD), "embedded.bias")

    def add(self, layer: Sublayer) -> None:
        """Let a sublayer act on the stream."""
        skip, out = on_stream(layer, self.view)
        if isinstance(layer.residual.skip, NoSkip):  # nothing passes: rather no parts than zeros
            self.parts.clear()
        self._through(skip, f"{layer.key}.skip_bias")
        self.parts.update(self._added(layer))
        self._through(out, f"{layer.key}.norm_bias")

    def _added(self, layer: Sublayer) -> dict[str, Tensor]:
        """Return the parts of what a sublayer adds, or the whole of it, and say why."""
        added = {f"{layer.key}.added": self.view.stream(f"{layer.key}.added")}
        leaves = list(layer.leaves.values())
        if self.view.edited(f"{layer.key}.added"):
            self.notes.append(f"{layer.key}.added is one part: an edit replaced it")
            return added
        if len(leaves) == 1 and isinstance(leaves[0], (*FEED_FORWARDS, MoE)):
            return added
        try:
            parts = branch_parts(layer, self.view)
            behind = behind_branch(layer, torch.stack(list(parts.values())).sum(0))
        except NotLinearError as why:
            self.notes.append(f"{layer.key}.added is one part: {why.message}")
            return added
        bias = {} if behind.constant is None else {f"{layer.key}.post_bias": behind.constant}
        return {name: behind.linear(part) for name, part in parts.items()} | bias

    def _through(self, module: Frozen, constant: str) -> None:
        """Let a module act on every part; its constant is a part of its own."""
        if module.linear is not unchanged:
            self.parts = {name: module.linear(part) for name, part in self.parts.items()}
        if module.constant is not None:
            self.parts[constant] = module.constant
