"""A stack: an explicit tuple of blocks, the final norm, and what the blocks share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.block import Block
from orrery.nn.cache.contract import Cache, Layer
from orrery.nn.context import Context, Execution
from orrery.nn.masks import (
    NEWEST,
    WHOLE,
    BoundMask,
    Mask,
    Need,
    RecurrentPast,
    SameDocument,
    TokenPositions,
    bind,
    bind_past,
)
from orrery.nn.positions.scheme import NO_POSITION, BoundPosition, Grid, PositionCall, PositionScheme, PositionSpec
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec, traverse


class Stack(nn.Module):
    """``final(block_n(... block_1(start(positions(enter(x))))))``.

    Positions and masks are named dictionaries, bound once a call and shared by all blocks. A layer's identity comes
    from here (``ctx.at(layer)``), so one block object may stand at several depths (ALBERT).
    Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    role: str = ""
    learned_places: int = 0
    """How many learned keys stand before every row: those of a tuned prefix, see ``tuning/prefix.py``."""

    @spec
    class Spec(ModuleSpec):
        """Blocks in order; ``enter`` before the positions (scale), ``start`` after them (BERT's norm, dropout).

        ``order`` says which block stands at each depth, where not each stands at its own (ALBERT); ``entry`` is the
        width of the embeddings where it is not the stack's, and ``enter`` or ``start`` projects (ALBERT, OPT).
        """

        blocks: tuple[Block.Spec, ...]
        final: ModuleSpec = Identity.Spec()
        positions: Mapping[str, PositionSpec]
        masks: Mapping[str, Mask]
        enter: ModuleSpec = Identity.Spec()
        start: ModuleSpec = Identity.Spec()
        order: tuple[int, ...] | None = None
        entry: int | None = None

        @property
        def extra_width(self) -> int:
            """Return the channels that positions append to the embeddings."""
            return sum(position.extra_width for position in self.positions.values())

        def entry_width(self, width: int) -> int:
            """Return the width of the embeddings for a stack of ``width`` channels."""
            return width - self.extra_width if self.entry is None else self.entry

        def build(self, width: int) -> "Stack":
            """Return the stack.

            Raises:
                UsageError: an attention names a position or a mask that the stack does not have.
            """
            _check_names(self)
            return Stack(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.path = ""
        entry = spec.entry_width(width)
        entered = spec.enter.out_width(entry) + spec.extra_width
        self.enter = spec.enter.build(entry)
        self.positions = nn.ModuleDict({name: part.build(entered) for name, part in spec.positions.items()})
        self.masks = dict(spec.masks)
        self.pasts = [name for name, mask in self.masks.items() if isinstance(mask, RecurrentPast)]
        self.needs = frozenset[Need]().union(*(mask.needs for mask in self.masks.values()))
        self.start = spec.start.build(entered)
        self.order = range(len(spec.blocks)) if spec.order is None else spec.order
        self.turns = [list(self.order[:depth]).count(number) for depth, number in enumerate(self.order)]
        self.blocks = nn.ModuleList(block.build(width) for block in spec.blocks)
        self.final = spec.final.build(width)

    def prepare(
        self,
        x_BLD: Float[Tensor, "B L D"],
        places: TokenPositions,
        real_BL: Bool[Tensor, "B L"] | None,
        *,
        whole: bool,
        counts: Sequence[int] | None = None,
        cache: Cache,
        execution: Execution,
        encoder_states: Tensor | None = None,
        encoder_mask: BoundMask | None = None,
        grid: Grid | None = None,
    ) -> tuple[Float[Tensor, "B L D2"], Context]:
        """Reserve the cache's slots, bind positions and masks, and bring embeddings to the first block; always eager.

        ``whole`` says that the rows are unpadded, unpacked and complete: a plain mask then needs no matrix.
        ``counts`` are the real tokens of each row, padded on the right, in numbers that the host knows.
        ``execution`` names a kernel.
        ``encoder_states`` and ``encoder_mask`` are the encoder's output and which of its places are real; ``grid`` is
        that of a picture's patches.
        """
        assert execution.kernel is not None
        keys = cache.reserve(places, real_BL, self.masks, counts)
        length = cache.capacity or (places.positions.shape[1] if whole else _reach(places.positions, real_BL))
        call = PositionCall(places, keys, length, x_BLD.dtype, grid).behind(self.learned_places)
        positions: dict[str, BoundPosition] = {"none": NO_POSITION}
        for name, scheme in self.positions.items():
            assert isinstance(scheme, PositionScheme)
            positions[name] = scheme.bind(call)
        ctx = Context(
            positions=positions,
            masks=self.bind_masks(places, keys, cache, whole),
            segments={name: bind_past(places, keys[name], real_BL, counts) for name in self.pasts},
            cache=cache,
            kernel=execution.kernel,
            scan=execution.scan,
            encoder_states=encoder_states,
            encoder_mask=encoder_mask,
            grid=grid,
            routings=execution.routings,
            taps=execution.taps,
        )
        x_BLD = ctx.tap(self, "looked_up", self.enter(x_BLD))
        for position in positions.values():
            x_BLD = position.embed(x_BLD)
        x_BLD = ctx.tap(self, "embedded", self.start(ctx.tap(self, "positioned", x_BLD)))
        return x_BLD, replace(ctx, entered=x_BLD)

    def bind_masks(
        self, places: TokenPositions, keys: Mapping[str, TokenPositions], cache: Cache, whole: bool
    ) -> dict[str, BoundMask]:
        """Bind the masks of attention to a call, each as a matrix unless it is plain there.

        Where a cache shows the past alone, and as many keys as there are new tokens, the rows begin here and are whole.
        """
        new, bound = places.positions.shape[1], {}
        for name, mask in self.masks.items():
            past = places.documents is None and cache.shows_only_past(name)
            begins = past and keys[name].positions.shape[1] == new
            plain = WHOLE if whole or begins else NEWEST if past and new == 1 else {}
            if name not in self.pasts:
                bound[name] = plain[mask] if mask in plain else _matrix(mask, places, keys[name])
        return bound

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Run the blocks; this is what is compiled."""
        for depth, number in enumerate(self.order):
            x_BLD = self.blocks[number](x_BLD, ctx.at(self.layer(depth, ctx.cache)))
        return ctx.tap(self, "final", self.final(x_BLD))

    def layer(self, depth: int, cache: Cache) -> Layer:
        """Return who runs at a depth."""
        return Layer(depth, f"{self.path}blocks.{depth}", cache, self.turns[depth])


def _reach(positions: Tensor, real_BL: Tensor | None) -> int:
    """Return one more than the furthest position of a real token: documents in a packed row are short."""
    return int((positions if real_BL is None else torch.where(real_BL, positions, 0)).max()) + 1


def _matrix(mask: Mask, query: TokenPositions, key: TokenPositions) -> BoundMask:
    """Bind one mask as a matrix; a call with documents hides each from the others."""
    return bind(mask if query.documents is None else mask & SameDocument(), query, key)


def _check_names(spec: Stack.Spec) -> None:
    """Refuse a position or mask that a part names and the stack lacks, and a mask of the other kind of state."""
    known = {"position": {*spec.positions, "none"}, "mask": {*spec.masks, "memory"}}
    for path, part in traverse(spec.blocks, "blocks"):
        for slot, names in known.items():
            named = getattr(part, slot, None)
            if isinstance(named, str) and named not in names:
                raise UsageError(
                    f"{path} asks for the {slot} {named!r}, which the stack does not have",
                    f"the stack has: {', '.join(sorted(names))}",
                )
        name = getattr(part, "mask", None)
        past = isinstance(name, str) and isinstance(spec.masks.get(name), RecurrentPast)
        if isinstance(part, ModuleSpec) and isinstance(name, str) and past is not part.keeps_state:
            raise UsageError(
                f"{path} ({part.kind}) names the mask {name!r}, which is that of {'a state' if past else 'keys'}",
                "a mixer with a state names a RecurrentPast, everything else another mask",
            )


def repeat(block: Block.Spec, times: int) -> tuple[Block.Spec, ...]:
    """Return the same block spec at ``times`` depths, each with parameters of its own."""
    return (block,) * times
