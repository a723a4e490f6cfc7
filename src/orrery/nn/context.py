"""Context: everything that varies from call to call, in one frozen argument.

Modules hold parameters; calls hold state. A module that needs positions, a mask, the cache or a tap asks the context.
``Execution`` is the part of it that a caller of a model chooses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from orrery.nn.attention.kernels import Kernel
from orrery.nn.cache.contract import Cache, Layer
from orrery.nn.feedforward.routing import Routing
from orrery.nn.masks import BoundMask
from orrery.nn.positions.scheme import BoundPosition, Grid
from orrery.nn.segments import PackedSegments


@runtime_checkable
class Taps(Protocol):
    """What a recorder offers: it sees every tapped tensor and returns it, or its replacement."""

    def __call__(self, key: str, value: Tensor) -> Tensor:
        """Return ``value``, kept under ``key``, or what stands in for it."""
        ...


@runtime_checkable
class EditingTaps(Taps, Protocol):
    """What a recorder offers to a module that makes a value step by step and needs each step's edit at once."""

    def edit_in_time(self, key: str) -> Callable[[Tensor], Tensor] | None:
        """Hand the edit of ``key`` over to its owner, if there is one; what is then shown is already edited."""
        ...


@dataclass(frozen=True)
class Execution:
    """How a call of a model is computed; none of it changes what is computed, but an edit of a recorder.

    Attributes:
        kernel: the attention kernel; by default the model's own, ``model.kernel``.
        scan: the form of mixers with a state; by default ``model.scan``, or each mixer's own.
        routings: where each mixture of experts appends what its router decided; ``None`` drops it.
        taps: a recorder.
    """

    kernel: Kernel | None = None
    scan: str | None = None
    routings: list[Routing] | None = None
    taps: Taps | None = None

    def by_default(self, kernel: Kernel, scan: str | None) -> "Execution":
        """Return the same with a model's own kernel and form where none is named."""
        return Execution(self.kernel or kernel, self.scan or scan, self.routings, self.taps)

    def tap(self, key: str, value: Tensor) -> Tensor:
        """Show a value that no brick makes to the recorder."""
        return value if self.taps is None else self.taps(key, value)


DEFAULT_EXECUTION = Execution()
"""The model's own kernel and form; nobody looks."""


@dataclass(frozen=True)
class Context:
    """The state of one call.

    Attributes:
        positions: the stack's position schemes, bound to this call, by name.
        masks: the stack's masks, bound to this call, by name.
        segments: by the name of its mask, what a mixer with a state passes through; ``None`` where the rows are whole.
        cache: the keys and values of earlier calls; ``UNCACHED`` keeps nothing.
        kernel: how attention is computed: ``eager`` (the definition) or one that equals it.
        scan: the form in which mixers with a state are computed, ``step`` (the definition), ``parallel`` or
            ``chunked``; ``None`` leaves it to each.
        layer: the depth of the running block and its share of the cache, set by the stack alone.
        encoder_states: the encoder's output ``[B, S, D]`` that cross-attention reads.
        encoder_mask: which places of the encoder states are real.
        grid: rows and columns of the patches where pictures are read; ``None`` is the one the model was made for.
        length: how many tokens the rows have, where what stands between the layers sees some of them; else ``None``.
        routings: where each mixture of experts appends what its router decided; ``None`` drops it.
        taps: a recorder, or ``None``, which leaves nothing in a compiled graph.
        entered: what the first block reads, ``[B, L, D]``, for blocks that read it again (Zamba).
    """

    positions: Mapping[str, BoundPosition]
    masks: Mapping[str, BoundMask]
    cache: Cache
    kernel: Kernel
    segments: Mapping[str, PackedSegments | None] | None = None
    scan: str | None = None
    layer: Layer | None = None
    encoder_states: Tensor | None = None
    encoder_mask: BoundMask | None = None
    grid: Grid | None = None
    length: int | None = None
    routings: list[Routing] | None = None
    taps: Taps | None = None
    entered: Tensor | None = None

    def at(self, layer: Layer) -> "Context":
        """Return the context of one depth; the stack alone asks for it."""
        return Context(  # written out: dataclasses.replace takes twice the time, at every depth of every step
            positions=self.positions,
            masks=self.masks,
            cache=self.cache,
            kernel=self.kernel,
            segments=self.segments,
            scan=self.scan,
            layer=layer,
            encoder_states=self.encoder_states,
            encoder_mask=self.encoder_mask,
            grid=self.grid,
            length=self.length,
            routings=self.routings,
            taps=self.taps,
            entered=self.entered,
        )

    def tap(self, owner: nn.Module, name: str, value: Tensor) -> Tensor:
        """Show ``value`` to the recorder under the owner's role: the only instrumentation in ``nn``.

        The key is ``blocks.<depth>.<role>.<name>`` inside a block and ``<name>`` outside; it depends on the role
        of the owner, not on where it is nested, so every family has the same keys.
        """
        return value if self.taps is None else self.taps(self._key(owner, name), value)

    def edit_in_time(self, owner: nn.Module, name: str) -> Callable[[Tensor], Tensor] | None:
        """Return the edit of a value that its owner makes step by step, to be applied there before it is shown."""
        return self.taps.edit_in_time(self._key(owner, name)) if isinstance(self.taps, EditingTaps) else None

    def _key(self, owner: nn.Module, name: str) -> str:
        block = "" if self.layer is None else self.layer.path
        return ".".join(filter(None, (block, getattr(owner, "role", ""), name)))
