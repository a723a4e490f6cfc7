"""Masks as values: a rule that says which query may see which key, rendered alike for every kernel.

A rule is elementwise on places, so the same line gives the dense matrix and the index function of flex attention.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.segments import PackedSegments
from orrery.nn.spec import Value, spec

EMPTY_SLOT = 2**30
"""The position of a key that does not exist: padding, or a cache slot not yet written. No rule lets it be seen."""


@dataclass(frozen=True)
class TokenPositions:
    """Where tokens stand, ``[B, L]`` or one axis wider while pairs are compared: all that a rule may look at.

    Attributes:
        positions: distance from the start of the document, ``EMPTY_SLOT`` where there is no token.
        documents: number of the document inside a packed row, or ``None``.
        prefix: the length of the part at the beginning of its document that everybody may see, or ``None``.
    """

    positions: Int[Tensor, "..."]
    documents: Int[Tensor, "..."] | None = None
    prefix: Int[Tensor, "..."] | None = None

    def at(self, *index: slice | Tensor | None) -> "TokenPositions":
        """Index every field alike."""
        fields = (self.positions, self.documents, self.prefix)
        return TokenPositions(*[None if x is None else x[index] for x in fields])  # type: ignore[arg-type]


class Need(Enum):
    """What a rule takes for granted of the places that a call gives."""

    ORDER = "positions rise from token to token, so that a later position is a later token"
    DISTANCE = "positions count tokens, so that a distance of positions is one of tokens"
    PREFIX = "the call says how long each prefix is"


@spec
class Mask(Value):
    """A rule; combine rules with ``&`` (both must allow)."""

    needs: ClassVar[frozenset[Need]] = frozenset()

    @property
    def window(self) -> int | None:
        """Return how many tokens back a query may look, itself among them, where that is bounded."""
        return None

    @property
    def most_keys(self) -> int | None:
        """Return how many keys a query may see at most, where that is bounded."""
        return self.window

    @abstractmethod
    def allows(self, query: TokenPositions, key: TokenPositions) -> Tensor:
        """Return, elementwise, whether ``query`` may see ``key``."""

    def __and__(self, other: "Mask") -> "Mask":
        """Allow what both allow."""
        return Both(first=self, second=other)


@spec
class Full(Mask):
    """Full attention: every real token sees every real token."""

    def allows(self, query: TokenPositions, key: TokenPositions) -> Tensor:
        """Hide only what does not exist; the query broadcasts the shape."""
        return (key.positions < EMPTY_SLOT) & (query.positions <= EMPTY_SLOT)


@spec
class Causal(Mask):
    """No token sees a later one: ``j <= i``."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.ORDER})

    def allows(self, query: TokenPositions, key: TokenPositions) -> Tensor:
        """Compare positions; an unused key is later than everything."""
        return key.positions <= query.positions


@spec
class RecurrentPast(Mask):
    """What a recurrence has passed: as ``Causal``, but remembered as one state, not as a key for each token.

    A stack binds it to segments (``bind_past``), whose size grows with the tokens; ``allows`` says what they mean.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({Need.ORDER})

    def allows(self, query: TokenPositions, key: TokenPositions) -> Tensor:
        """Compare positions; an unused key is later than everything."""
        return key.positions <= query.positions


@spec
class Window(Mask):
    """No token ``length`` or more places back: ``i - length < j``, the token itself counted.

    What comes later stays to be seen: decoders take ``Causal() & Window(length=n)``.
    """

    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISTANCE})

    length: int

    @property
    def window(self) -> int:
        """Return the length."""
        return self.length

    def allows(self, query: TokenPositions, key: TokenPositions) -> Tensor:
        """Compare distances."""
        return query.positions - key.positions < self.length


@spec
class LocalWindow(Mask):
    """A window on both sides, for encoders: ``|i - j| <= distance`` (Longformer, ModernBERT)."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.DISTANCE})

    distance: int

    @property
    def most_keys(self) -> int:
        """Return the token itself and those on both sides."""
        return 2 * self.distance + 1

    def allows(self, query: TokenPositions, key: TokenPositions) -> Tensor:
        """Compare distances; an unused key is far from everything."""
        return (query.positions - key.positions).abs() <= self.distance


@spec
class Prefix(Mask):
    """Prefix language model: the prefix is seen by all, the rest causally (Raffel et al. 2020, section 3.2.1)."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.ORDER, Need.PREFIX})

    def allows(self, query: TokenPositions, key: TokenPositions) -> Tensor:
        """Allow what is causal or in the prefix, of which the query knows the length: so a cache need not keep it.

        Raises:
            UsageError: the call said nothing of a prefix.
        """
        if query.prefix is None:
            raise UsageError("a prefix mask has no prefix to go by", "give its length to the model: prefix=[B]")
        return (key.positions <= query.positions) | (key.positions < query.prefix)


@spec
class SameDocument(Mask):
    """Packed rows: a token sees only its own document."""

    def allows(self, query: TokenPositions, key: TokenPositions) -> Tensor:
        """Compare document numbers.

        Raises:
            UsageError: the call gave no documents.
        """
        if query.documents is None or key.documents is None:
            raise _no_documents()
        return query.documents == key.documents


@spec
class Both(Mask):
    """The conjunction of two rules."""

    first: Mask
    second: Mask

    @property
    def needs(self) -> frozenset[Need]:  # type: ignore[override]
        """Return what either takes for granted."""
        return self.first.needs | self.second.needs

    @property
    def window(self) -> int | None:
        """Return the shorter window."""
        return min((rule.window for rule in (self.first, self.second) if rule.window is not None), default=None)

    @property
    def most_keys(self) -> int | None:
        """Return the fewer keys."""
        return min((rule.most_keys for rule in (self.first, self.second) if rule.most_keys is not None), default=None)

    def allows(self, query: TokenPositions, key: TokenPositions) -> Tensor:
        """Allow what both allow."""
        return self.first.allows(query, key) & self.second.allows(query, key)


@dataclass(frozen=True)
class BoundMask:
    """A rule bound to the places of one call.

    ``dense`` says what a query may see. Where it is ``None`` the rows are whole, and a query sees the keys up to
    itself (``is_causal``) or all of them, so that a kernel with paths of its own for these never sees a matrix.
    """

    dense: Bool[Tensor, "B 1 L S"] | None
    is_causal: bool

    def matrix(self, queries: int, keys: int, device: torch.device) -> Bool[Tensor, "B 1 L S"]:
        """Return the dense matrix, made here where the rows are whole."""
        if self.dense is not None:
            return self.dense
        everything = torch.ones(1, 1, queries, keys, dtype=torch.bool, device=device)
        return everything.tril() if self.is_causal else everything


PLAIN_CAUSAL = BoundMask(dense=None, is_causal=True)
"""The causal mask of whole, unpadded, unpacked rows."""

PLAIN_FULL = BoundMask(dense=None, is_causal=False)
"""No mask: whole rows that see all of themselves."""

WHOLE: Mapping[Mask, BoundMask] = {Causal(): PLAIN_CAUSAL, Full(): PLAIN_FULL}
"""The rules that need no matrix where the rows are whole."""

NEWEST: Mapping[Mask, BoundMask] = {Causal(): PLAIN_FULL, Full(): PLAIN_FULL}
"""The rules that need no matrix for one new token in each row, where no other key is later and none is padding."""


def bind(mask: Mask, query: TokenPositions, key: TokenPositions) -> BoundMask:
    """Render a rule for all pairs of places as a dense matrix ``[B, 1, L, S]``."""
    allowed_BLS = mask.allows(query.at(slice(None), slice(None), None), key.at(slice(None), None, slice(None)))
    return BoundMask(dense=allowed_BLS[:, None], is_causal=False)


def bind_past(
    query: TokenPositions,
    key: TokenPositions,
    real_BL: Bool[Tensor, "B L"] | None,
    counts: Sequence[int] | None = None,
) -> PackedSegments | None:
    """Render what a recurrence passes as segments, or as nothing where every row is one from end to end.

    ``counts`` are the real tokens of rows that are padded on the right, where the host knows them.

    Raises:
        UsageError: the call has documents, and a cached row is one.
    """
    if query.documents is not None and key.documents is None:
        raise _no_documents()
    return PackedSegments.of(real_BL, query.documents, counts)


def _no_documents() -> UsageError:
    return UsageError(
        "a document mask has no documents to go by",
        "give the document of each token in the call: documents=[B, L]; a cached row is one document",
    )
