"""The dual encoder: one side reads pictures, the other texts, and both give vectors of one space."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from orrery.models.encoder import Encoder
from orrery.models.inputs import Batch, Inputs
from orrery.models.kernel_choice import default_kernel
from orrery.models.model import HIDDEN, Model, ModelSpec
from orrery.nn.attention.kernels import Kernel
from orrery.nn.context import DEFAULT_EXECUTION, Execution
from orrery.nn.spec import ModuleSpec, Value, spec
from orrery.nn.stack import Stack

EMBEDDING = "embedding"
"""The head of each side that gives its vector."""


class Pair(NamedTuple):
    """The vectors of the pictures ``[B, E]`` and of the texts ``[N, E]``, each of length one."""

    images: Float[Tensor, "B E"]
    texts: Float[Tensor, "N E"]


class Similarity(nn.Module):
    """``exp(s) V T^T + b``: how well each picture fits each text (Radford et al. 2021, figure 3; Zhai et al. 2023).

    Shapes: vectors ``[B, E]`` and ``[N, E]`` to ``[B, N]``; the scale ``s`` and, where there is one, the bias ``b``.
    """

    @spec
    class Spec(ModuleSpec):
        """What the scale is in a new model; ``bias`` adds one to all, which begins at minus ten."""

        scale: float
        bias: bool = False

        def build(self, width: int) -> "Similarity":
            """Return the head."""
            return Similarity(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(spec.scale))
        self.bias = nn.Parameter(torch.tensor(-10.0)) if spec.bias else None

    def forward(self, pair: Pair, real_BL: Bool[Tensor, "B L"] | None = None) -> Float[Tensor, "B N"]:
        """Score every picture with every text."""
        scored_BN = self.scale.exp() * (pair.images @ pair.texts.T)
        return scored_BN if self.bias is None else scored_BN + self.bias


class Side(nn.Module):
    """``v``: the vectors of one side as they are compared. Shapes: ``[B, E]`` and ``[N, E]`` to one of them."""

    @spec
    class Spec(ModuleSpec):
        """The number of the side: 0 for the pictures, 1 for the texts."""

        order: int

        def build(self, width: int) -> "Side":
            """Return the head; it has no parameters."""
            return Side(self.order)

    def __init__(self, order: int) -> None:
        super().__init__()
        self.order = order

    def forward(self, pair: Pair, real_BL: Bool[Tensor, "B L"] | None = None) -> Float[Tensor, "B E"]:
        """Return the vectors of the side."""
        return pair[self.order]


@spec
class FilledRows(Value):
    """Texts get the padding token behind them up to a length, and it is read as any other token (Zhai et al. 2023).

    The vector of such a text stands at its last place, and depends on how many padding tokens there are. ``token`` is
    the padding token of a tokenizer that names none.
    """

    length: int
    token: int

    def padding(self, tokenizer: Any) -> int:
        """Return the token that a tokenizer pads with."""
        named = tokenizer is not None and "pad" in tokenizer.roles
        return int(tokenizer.special("pad")) if named else self.token

    def of(self, ids_BL: Int[Tensor, "B L"], real_BL: Bool[Tensor, "B L"] | None, token: int) -> Int[Tensor, "B L2"]:
        """Return rows that are padded on the right as rows of the length, all of whose tokens count."""
        ids_BL = ids_BL if real_BL is None else ids_BL.masked_fill(~real_BL, token)
        behind = ids_BL.new_full((len(ids_BL), max(0, self.length - ids_BL.shape[1])), token)
        return torch.cat([ids_BL, behind], dim=1)


class DualEncoder(Model):
    """``similarity(v / |v|, t / |t|)`` with ``v`` the pictures' vectors and ``t`` the texts' (Radford et al. 2021).

    Its stream is the pair of both sides' vectors, of which there need not be equally many. Shapes: images
    ``[B, channels, rows, columns]`` and ids ``[N, L]`` to ``[B, N]``.
    """

    how = frozenset({"real", "positions"})
    sees: Encoder
    reads: Encoder

    @spec
    class Spec(ModelSpec):
        """The whole architecture: the two sides, each with a head ``embedding``; ``fill`` says what texts end in."""

        sees: Encoder.Spec
        reads: Encoder.Spec
        fill: FilledRows | None = None

        @property
        def inputs(self) -> Inputs:
            """The images and the token numbers."""
            return {**self.sees.inputs, **self.reads.inputs}

        @property
        def answering(self) -> Stack.Spec:
            """The stack of the texts."""
            return self.reads.stack

        def build(self, width: int = 0) -> "DualEncoder":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return DualEncoder(self)

    spec: Spec

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.kernel: Kernel = default_kernel(spec)
        self.sees, self.reads = spec.sees.build(), spec.reads.build()
        self.heads = nn.ModuleDict({name: head.build(spec.width) for name, head in spec.heads.items()})
        self.sees.stand_before(self.reads.stack)

    @property
    def stack(self) -> Stack:  # type: ignore[override]
        """The stack of the texts."""
        return self.reads.stack

    def stream(self, batch: Batch, execution: Execution) -> Pair:  # type: ignore[override]
        """Return the vectors of both sides, each of length one."""
        words = {name: value for name, value in batch.items() if name in ("ids", *self.how)}
        return Pair(
            self.vectors(self.sees, {"images": batch["images"]}, execution), self.vectors(self.reads, words, execution)
        )

    def hidden(self, *inputs: Tensor, **call: Any) -> Pair:  # type: ignore[override]
        """Return the vectors of both sides; arguments as in ``logits``."""
        pair: Pair = self._called(inputs, (HIDDEN,), call)[HIDDEN]
        return pair

    def vectors(self, side: Encoder, given: Batch, execution: Execution = DEFAULT_EXECUTION) -> Float[Tensor, "B E"]:
        """Return the vectors of one side, ``sees`` or ``reads``, of length one."""
        head: Any = side.heads[EMBEDDING]
        stream_BLD = side.stream(given, execution.by_default(self.kernel, self.scan))
        vector_BE: Tensor = head(stream_BLD, side.spec.counted(given))
        return vector_BE / vector_BE.norm(dim=-1, keepdim=True)
