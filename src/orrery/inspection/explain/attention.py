"""Nodes of attention: queries and keys with their rotation, products, scores, pattern, and what is mixed."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.inspection.explain.formula import (
    Formula,
    FormulaTerm,
    Index,
    Operand,
    function_of,
    given,
    sum_of,
    term,
    written,
)
from orrery.inspection.explain.node import Numbers, TensorNode
from orrery.nn.positions.scheme import BoundPosition


@dataclass(frozen=True)
class Heads(TensorNode):
    """``[B, L, H C]`` cut into heads ``[B, H, L, C]``, the channels from ``first`` on rotated by their position.

    Attributes:
        source: the key of what is cut.
        width: channels of a head.
        position: what rotates.
        first: the first channel that rotates; ``None`` rotates none.
    """

    source: str
    width: int
    position: BoundPosition
    first: int | None

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the heads, rotated."""
        x_BHLC = self.plain(numbers)
        if self.first is None:
            return x_BHLC
        return torch.cat([x_BHLC[..., : self.first], self.position.rotate(x_BHLC[..., self.first :])], dim=-1)

    def plain(self, numbers: Numbers) -> Tensor:
        """Return the heads before any rotation."""
        return numbers[self.source].unflatten(-1, (-1, self.width)).transpose(1, 2)

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the rotation as a sum of two products, or the formula of the number itself where nothing rotates."""
        head, place, channel = index
        if self.first is None or channel < self.first:
            return numbers.nodes[self.source].explain(numbers, (place, head * self.width + channel), most)
        shape = (numbers[self.source].shape[1], self.width - self.first)
        factor_C = rotation_of(self.position, shape, place, channel - self.first)
        return _rotated(numbers, self.source, (place, head * self.width + self.first), factor_C, most)


def rotation_of(position: BoundPosition, shape: tuple[int, int], place: int, channel: int) -> Float[Tensor, "C"]:
    """Return what each channel of a vector counts in one channel of the turned vector, in float64.

    A rotation is linear, so these are its derivatives: a cosine and a sine, and zeros.

    Args:
        position: what rotates.
        shape: tokens and channels.
        place: the token.
        channel: of the turned vector.
    """
    x_11LC = torch.zeros(1, 1, *shape, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        (factor_11LC,) = torch.autograd.grad(position.rotate(x_11LC)[0, 0, place, channel], x_11LC)
    return factor_11LC[0, 0, place]


def _rotated(numbers: Numbers, source: str, start: Index, factor_C: Tensor, most: int) -> Formula:
    """Return ``sum_c x_c m_c`` over the channels that the rotation lets in: one pair."""
    place, first = start
    pair = factor_C.nonzero().flatten().tolist()
    terms = [
        term(numbers.operand(source, (place, first + c)), Operand("cos, sin of the angle", float(factor_C[c])))
        for c in pair
    ]
    return sum_of("a · cos θ ∓ b · sin θ, a pair of channels turned by its position", most, more=terms)


@dataclass(frozen=True)
class LatentKeys(TensorNode):
    """The keys of latent attention: channels of the latent, then one rotated part that all heads share.

    Attributes:
        plain: the key of ``W_k c``, ``[B, S, H P]``.
        rotated: the key of ``W_r x``, ``[B, S, C_r]``.
        width: channels of a head that come from the latent.
        heads: how many.
        position: what rotates.
    """

    plain: str
    rotated: str
    width: int
    heads: int
    position: BoundPosition

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the keys of all heads."""
        plain_BHSC = numbers[self.plain].unflatten(-1, (-1, self.width)).transpose(1, 2)
        turned_B1SC = self.position.rotate(numbers[self.rotated][:, None])
        return torch.cat([plain_BHSC, turned_B1SC.expand(-1, self.heads, -1, -1)], dim=-1)

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the sum over the latent, or the rotation."""
        head, place, channel = index
        if channel < self.width:
            return numbers.nodes[self.plain].explain(numbers, (place, head * self.width + channel), most)
        _, length, width = numbers[self.rotated].shape
        factor_C = rotation_of(self.position, (length, width), place, channel - self.width)
        return _rotated(numbers, self.rotated, (place, 0), factor_C, most)


@dataclass(frozen=True)
class Products(TensorNode):
    """``q . k``, ``[B, H, L, S]``; several heads may share a key."""

    q: str
    k: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the products of all pairs."""
        q_BHLC, k_BKSC = numbers[self.q], numbers[self.k]
        return q_BHLC @ k_BKSC.repeat_interleave(q_BHLC.shape[1] // k_BKSC.shape[1], dim=1).mT

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the sum over the channels of a head."""
        head, query, key = index
        q_HLC, k_KSC = numbers[self.q][0], numbers[self.k][0]
        shared = head * k_KSC.shape[0] // q_HLC.shape[0]
        factors = [
            numbers.vector(self.q, lambda c: (head, query, c), q_HLC[head, query]),
            numbers.vector(self.k, lambda c: (shared, key, c), k_KSC[shared, key]),
        ]
        return sum_of("Σ_c q[c] · k[c]", most, factors)


@dataclass(frozen=True)
class Scores(TensorNode):
    """``cap(scale q . k) + bias``, minus infinity where the mask hides.

    Attributes:
        products: the key of ``q . k``.
        scale: what it is multiplied by.
        cap: ``cap tanh(x / cap)``, where there is one.
        bias: what the position adds, ``[1, H, L, S]``.
        terms: keys of what else is added, times the scale (disentangled attention).
        key: the recorded scores, which know the mask.
    """

    products: str
    scale: float
    cap: float | None
    bias: Tensor | None
    terms: Sequence[str]
    key: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the recorded scores."""
        return numbers.recorded[self.key]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the scaled product and what is added, or that the mask hides the pair."""
        if numbers.at(self.key, index) == float("-inf"):
            return given("the mask hides this pair", float("-inf"))
        product, scale = numbers.operand(self.products, index), Operand("scale", self.scale)
        others = [self._term(numbers, key, index, scale) for key in self.terms]
        added = [] if self.bias is None else [Operand("bias of the position", self._bias(index))]
        if self.cap is None:
            text = " + ".join(["scale · q·k", *(f"scale · {key.split('.')[-1]}" for key in self.terms)])
            return sum_of(text + " + bias" * bool(added), most, more=[term(scale, product), *others, *map(term, added)])
        x = scale.value * product.value
        value = self.cap * float(torch.tanh(torch.tensor(x / self.cap, dtype=torch.float64)))
        value += sum(one.value for one in added)
        shift = "".join(f" + {written(one.value)}" for one in added)
        filled = f"{self.cap:g} · tanh({written(x)} / {self.cap:g}){shift}"
        text = "cap · tanh(scale · q·k / cap)" + " + bias" * bool(added)
        return function_of(text, filled, value, [product, scale, *added], abs(x))

    def added(self, numbers: Numbers, head: int, query: int) -> Float[Tensor, "S"] | None:
        """Return what is added to the scaled products of one row, where anything is."""
        parts = [] if self.bias is None else [_row(self.bias[0], head, query)]
        parts += [self.scale * _row(numbers[key][0], head, query) for key in self.terms]
        return sum(parts[1:], parts[0]) if parts else None

    def _bias(self, index: Index) -> float:
        assert self.bias is not None
        head, query, key = index
        return float(_row(self.bias[0], head, query)[key])

    def _term(self, numbers: Numbers, key: str, index: Index, scale: Operand) -> FormulaTerm:
        head, query, place = index
        rows = numbers[key].shape[2]
        return term(scale, numbers.operand(key, (head, query if rows > 1 else 0, place)))


def _row(bias_HLS: Float[Tensor, "#H #L S"], head: int, query: int) -> Float[Tensor, "S"]:
    """Return one row of a bias; where it has one head or one row, that serves all."""
    heads, rows = bias_HLS.shape[:2]
    return bias_HLS[head if heads > 1 else 0, query if rows > 1 else 0]


@dataclass(frozen=True)
class Pattern(TensorNode):
    """``exp(s_j - m) / sum_k exp(s_k - m)``, over the keys that are seen and a sink where there is one."""

    scores: str
    sinks_H: Tensor | None
    key: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the recorded pattern."""
        return numbers.recorded[self.key]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return one share of the softmax, with the largest scores of its row."""
        head, query, key = index
        score_S = numbers[self.scores][0][head, query].double()
        sinks = [] if self.sinks_H is None else [Operand("sink", float(self.sinks_H[head]))]
        all_N = torch.cat([score_S, torch.tensor([one.value for one in sinks], dtype=torch.float64)])
        if not bool((score_S > float("-inf")).any()):
            return given("a token that may see nothing has zeros", 0.0)
        highest = float(all_N.max())
        total = float((all_N - highest).exp().sum())
        value = float((score_S[key] - highest).exp()) / total
        order = [place for place in score_S.argsort(descending=True).tolist() if score_S[place] > float("-inf")]
        shown = [key, *(place for place in order if place != key)][:most]
        filled = f"exp({written(float(score_S[key]))} - {written(highest)}) / {written(total)}"
        operands = [*(numbers.operand(self.scores, (head, query, place)) for place in shown), *sinks]
        text = (
            f"exp(scores[{key}] - max) / Σ_k exp(scores[k] - max), over {len(order)} keys{' and a sink' * bool(sinks)}"
        )
        return function_of(text, filled, value, operands)


@dataclass(frozen=True)
class Mixed(TensorNode):
    """``sum_j pattern_j v_j``, ``[B, H, L, E]``."""

    pattern: str
    v: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return pattern times values."""
        pattern_BHLS, v_BKSE = numbers[self.pattern], numbers[self.v]
        return pattern_BHLS @ v_BKSE.repeat_interleave(pattern_BHLS.shape[1] // v_BKSE.shape[1], dim=1)

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the sum over the keys."""
        head, query, channel = index
        pattern_HLS, v_KSE = numbers[self.pattern][0], numbers[self.v][0]
        shared = head * v_KSE.shape[0] // pattern_HLS.shape[0]
        factors = [
            numbers.vector(self.pattern, lambda j: (head, query, j), pattern_HLS[head, query]),
            numbers.vector(self.v, lambda j: (shared, j, channel), v_KSE[shared, :, channel]),
        ]
        return sum_of("Σ_j pattern[j] · v[j]", most, factors)
