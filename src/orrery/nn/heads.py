"""Heads: from the final stream to an answer."""

from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, Value, spec

Real = Bool[Tensor, "B L"] | None


class LanguageModelHead(nn.Module):
    """``logits = cap(U transform(x) + b)``: a score for every token of the vocabulary.

    Tied, ``U`` is the embedding table itself (Press and Wolf 2017): one storage, and the gradients of both uses add.
    Shapes: ``[B, L, D]`` to ``[B, L, V]``.
    """

    @spec
    class Spec(ModuleSpec):
        """``tied`` shares the embedding table; ``transform`` comes before the product, ``cap`` after it."""

        vocabulary: int
        tied: bool = True
        bias: bool = False
        transform: ModuleSpec = Identity.Spec()
        cap: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "LanguageModelHead":
            """Return the head; its owner ties the table."""
            return LanguageModelHead(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.transform, self.cap = spec.transform.build(width), spec.cap.build(spec.vocabulary)
        self.vocabulary = nn.Linear(spec.transform.out_width(width), spec.vocabulary, bias=spec.bias)

    def forward(self, x_BLD: Float[Tensor, "*B D"], real_BL: Real = None) -> Float[Tensor, "*B V"]:
        """Score the vocabulary."""
        return self.cap(self.vocabulary(self.transform(x_BLD)))


class Headless(nn.Module):
    """No head: a backbone that was published alone has a final stream and no logits.

    Equation: none; a call is refused. Shapes: ``[B, L, D]`` to nothing.
    """

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        tied: ClassVar[bool] = False

        def build(self, width: int) -> "Headless":
            """Return the module; it has no parameters."""
            return Headless()

    def forward(self, x_BLD: Float[Tensor, "*B D"], real_BL: Real = None) -> Float[Tensor, "*B V"]:
        """Refuse.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "this model is a backbone without a head (architectures in its config.json): it has no logits",
            "lm.hidden gives its final stream; load the model with its language-model head to score or write",
        )


class TokenHead(nn.Module):
    """``W transform(x) + b`` for every token: tags, span ends (two labels), replaced tokens and values (one).

    Shapes: ``[B, L, D]`` to ``[B, L, labels]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The number of labels and their names, where they have any; ``transform`` comes before the product."""

        labels: int
        bias: bool = True
        transform: ModuleSpec = Identity.Spec()
        names: tuple[str, ...] = ()

        def build(self, width: int) -> "TokenHead":
            """Return the head."""
            return TokenHead(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.transform = spec.transform.build(width)
        self.labels = nn.Linear(spec.transform.out_width(width), spec.labels, bias=spec.bias)

    def forward(self, x_BLD: Float[Tensor, "*B D"], real_BL: Real = None) -> Float[Tensor, "*B N"]:
        """Score the labels of every token."""
        return self.labels(self.transform(x_BLD))


class LastTokensHead(nn.Module):
    """``after(head(x))`` of the last tokens of every row: the class and the box of a thing (Fang et al. 2021, 3.1).

    Shapes: ``[B, L, D]`` to ``[B, tokens, labels]``.
    """

    @spec
    class Spec(ModuleSpec):
        """How many tokens at the end answer, and what becomes of the scores."""

        tokens: int
        head: TokenHead.Spec
        after: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "LastTokensHead":
            """Return the head."""
            return LastTokensHead(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.tokens = spec.tokens
        self.head, self.after = spec.head.build(width), spec.after.build(spec.head.labels)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real = None) -> Float[Tensor, "B N E"]:
        """Score the labels of the last tokens.

        Raises:
            UsageError: padding, which would stand among them.
        """
        if real_BL is not None:
            raise UsageError("the last tokens of padded rows", "read rows without padding")
        return self.after(self.head(x_BLD[:, -self.tokens :]))


class BehindFirstHead(nn.Module):
    """``head(x)`` of every token but the first, such as the points of each patch behind a class token.

    Shapes: ``[B, L, D]`` to ``[B, L - 1, labels]``.
    """

    @spec
    class Spec(ModuleSpec):
        """What answers."""

        head: TokenHead.Spec

        def build(self, width: int) -> "BehindFirstHead":
            """Return the head."""
            return BehindFirstHead(self.head, width)

    def __init__(self, head: TokenHead.Spec, width: int) -> None:
        super().__init__()
        self.head = head.build(width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real = None) -> Float[Tensor, "B N E"]:
        """Score the labels of all tokens but the first.

        Raises:
            UsageError: padding, before which the first token would not stand first.
        """
        if real_BL is not None:
            raise UsageError("the tokens behind the first of padded rows", "read rows without padding")
        return self.head(x_BLD[:, 1:])


@spec
class Pool(Value):
    """A rule from the vectors of a row to one."""

    def out_width(self, width: int) -> int:
        """Return how wide the one is, where those of the row have ``width``."""
        return width

    @abstractmethod
    def of(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real) -> Float[Tensor, "B E"]:
        """Return one vector a row."""


@spec
class First(Pool):
    """The first real token: BERT's ``[CLS]``."""

    def of(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real) -> Float[Tensor, "B D"]:
        """Return the vector of the first real token."""
        return x_BLD[:, 0] if real_BL is None else _at(x_BLD, real_BL.long().argmax(1))


@spec
class Last(Pool):
    """The last real token: classification and rewards over a causal model."""

    def of(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real) -> Float[Tensor, "B D"]:
        """Return the vector of the last real token."""
        return x_BLD[:, -1] if real_BL is None else _at(x_BLD, (real_BL.long().cumsum(1) * real_BL).argmax(1))


@spec
class At(Pool):
    """The token of a place behind the first: DeiT's distillation token is at 1."""

    place: int

    def of(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real) -> Float[Tensor, "B D"]:
        """Return the vector of that place.

        Raises:
            UsageError: padding, among which places are not counted.
        """
        if real_BL is not None:
            raise UsageError(f"the token at place {self.place} of padded rows", "read rows without padding")
        return x_BLD[:, self.place]


@spec
class MeanBehindFirst(Pool):
    """The mean of all tokens but the first: the patches behind a class token."""

    def of(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real) -> Float[Tensor, "B D"]:
        """Return the mean over the tokens behind the first.

        Raises:
            UsageError: padding, before which the first token would not stand first.
        """
        if real_BL is not None:
            raise UsageError("the mean behind the first token of padded rows", "read rows without padding")
        return x_BLD[:, 1:].mean(1)


@spec
class FirstAndMean(Pool):
    """``[first; mean of the others]``: the class token beside the patches, twice as wide (DINOv2)."""

    def out_width(self, width: int) -> int:
        """Return the width of both."""
        return 2 * width

    def of(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real) -> Float[Tensor, "B E"]:
        """Return both, one behind the other.

        Raises:
            UsageError: padding, before which the first token would not stand first.
        """
        return torch.cat([x_BLD[:, 0], MeanBehindFirst().of(x_BLD, real_BL)], dim=-1)


@spec
class Mean(Pool):
    """The mean of the real tokens."""

    def of(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real) -> Float[Tensor, "B D"]:
        """Return the mean over the real tokens; zeros for a row without any."""
        if real_BL is None:
            return x_BLD.mean(1)
        return (x_BLD * real_BL[..., None]).sum(1) / real_BL.sum(1, keepdim=True).clamp(min=1)


class Pooler(nn.Module):
    """``transform(pool(x))``: one vector for a row (BERT's pooler: ``tanh(W x_CLS + b)``).

    Shapes: ``[B, L, D]`` to ``[B, E]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The rule and what comes after it."""

        pool: Pool = First()
        transform: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "Pooler":
            """Return the pooler."""
            return Pooler(self, width)

        def out_width(self, width: int) -> int:
            """Return the width of the transform."""
            return self.transform.out_width(self.pool.out_width(width))

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.pool, self.transform = spec.pool, spec.transform.build(spec.pool.out_width(width))

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real = None) -> Float[Tensor, "B E"]:
        """Pool and transform."""
        return self.transform(self.pool.of(x_BLD, real_BL))


class InUnits(nn.Module):
    """``spread * x + centre``: a number about as large as 1 in the unit that it is wanted in, prices or years.

    Learned in their own unit such numbers take a network out of the range that it begins in: Adam's steps are as large
    as the rate, whatever the unit (LeCun et al. 1998, "Efficient BackProp", section 4.3, of inputs). In float32 at
    least. Shapes: unchanged.
    """

    @spec
    class Spec(ModuleSpec):
        """The mean of the numbers and their standard deviation."""

        centre: float
        spread: float

        def build(self, width: int) -> "InUnits":
            """Return the module; it has no parameters."""
            return InUnits(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.centre, self.spread = spec.centre, spec.spread

    def forward(self, x: Float[Tensor, "*B N"]) -> Float[Tensor, "*B N"]:
        """Return the numbers in their unit."""
        return self.spread * x.to(torch.promote_types(x.dtype, torch.float32)) + self.centre


class SequenceHead(nn.Module):
    """``unit(W pooler(x) + b)``: the class of a row, whether one sentence follows the other, a reward (one label).

    With heads beside it, the mean of what all of them say (DeiT, Touvron et al. 2021, section 4).
    Shapes: ``[B, L, D]`` to ``[B, labels]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The number of labels, the pooler, and what the labels are.

        ``names`` are theirs, where they have any; ``problem`` is what transformers calls the ``problem_type``: one
        label a row, several, or a number. Empty, it is as there: a number for one label, else one of the labels.
        ``unit`` is that of a number while it is learned; ``beside`` are further heads that answer the same question.
        """

        labels: int
        bias: bool = True
        pooler: Pooler.Spec = Pooler.Spec()
        names: tuple[str, ...] = ()
        problem: Literal["", "single_label_classification", "multi_label_classification", "regression"] = ""
        unit: ModuleSpec = Identity.Spec()
        beside: tuple["SequenceHead.Spec", ...] = ()

        def build(self, width: int) -> "SequenceHead":
            """Return the head."""
            return SequenceHead(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.pooler, self.unit = spec.pooler.build(width), spec.unit.build(spec.labels)
        self.labels = nn.Linear(spec.pooler.out_width(width), spec.labels, bias=spec.bias)
        self.beside = nn.ModuleList(head.build(width) for head in spec.beside)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Real = None) -> Float[Tensor, "B N"]:
        """Score the labels of every row."""
        said_BN = self.labels(self.pooler(x_BLD, real_BL))
        for head in self.beside:
            said_BN = said_BN + head(x_BLD, real_BL)
        return self.unit(said_BN / (1 + len(self.beside)))


def _at(x_BLD: Tensor, place_B: Tensor) -> Tensor:
    return x_BLD[torch.arange(len(place_B), device=place_B.device), place_B]
