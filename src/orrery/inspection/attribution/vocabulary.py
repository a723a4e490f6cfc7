"""The head that scores a vocabulary: which one it is, and the direction of a token in the stream before it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.frozen import Map, NotLinearError, chained, frozen, matrix_of, pull
from orrery.inspection.attribution.view import TraceView, needed, wide
from orrery.models.model import Model
from orrery.nn.elementwise import Activation
from orrery.nn.heads import LanguageModelHead


def vocabulary_head(model: Model) -> LanguageModelHead:
    """Return the main head of a model, which scores a vocabulary.

    Raises:
        UsageError: it scores something else, or there is none.
    """
    main = next(iter(model.named_heads.values()), None)
    if not isinstance(main, LanguageModelHead):
        has = f"its main head is a {type(main).__name__}" if main else "it has no head"
        raise UsageError(f"this model scores no vocabulary: {has}", "take a decoder, or an encoder with a masked head")
    return main


def sums_parts(model: Model) -> bool:
    """Say whether the logits of a model with a vocabulary are sums over parts: no activation stands before them."""
    return not any(isinstance(module, Activation) for module in vocabulary_head(model).transform.modules())


def most_probable(view: TraceView, token: int | None) -> Int[Tensor, "B P"]:
    """Return a token for each row and position: the given one, or the most probable there.

    Raises:
        UsageError: the token is not in the vocabulary.
    """
    logits_BPV = view.take(view.trace.logits)
    if token is None:
        return logits_BPV.argmax(-1)
    return torch.full(logits_BPV.shape[:2], checked(token, logits_BPV.shape[-1]), device=logits_BPV.device)


def checked(token: int, vocabulary: int) -> int:
    """Return the id of a token.

    Raises:
        UsageError: it is not in the vocabulary.
    """
    if not 0 <= token < vocabulary:
        raise UsageError(f"token {token} of a vocabulary of {vocabulary:,}", f"give 0 to {vocabulary - 1:,}")
    return token


@dataclass(frozen=True)
class TokenDirection:
    """A token's logit, or the difference of two, as a linear function of the stream after the last block.

    ``logit = d . x + sum of the constants``, with the scale of the final norm held fixed.

    Attributes:
        direction_BPD: ``d``, with the gain of the final norm in it.
        readout: from a part of the stream to what meets the token's row of the head, whose numbers times
            ``factor`` are logits.
        factor: of the logits (Cohere, Granite).
        constants: what is added whatever the parts are: ``final.bias``, ``head.bias``.
        logit_BP: what the model gave.
        token_BP: the tokens.
        notes: that a cap behind the logits was left out.
    """

    direction_BPD: Float[Tensor, "B P D"]
    readout: Map
    factor: float
    constants: dict[str, Float[Tensor, "B P"]]
    logit_BP: Float[Tensor, "B P"]
    token_BP: Int[Tensor, "B P"]
    notes: Sequence[str] = ()


def direction_of(view: TraceView, token: int | None, against: int | None, last: str) -> TokenDirection:
    """Return how the logit of a token follows from the stream under the key ``last``.

    Raises:
        UsageError: the model scores no vocabulary, or its head has an activation before the scores.
    """
    model, head = view.trace.model, vocabulary_head(view.trace.model)
    x_BPD = view.stream(last)
    final = frozen(model.stack.final, x_BPD)
    z_BPD = final(x_BPD)
    transform, cap = frozen(head.transform, z_BPD), _Cap.of(head)
    token_BP = most_probable(view, token)
    signs = [(token_BP, 1.0)] if against is None else [(token_BP, 1.0), (most_probable(view, against), -1.0)]
    matrix_VE = matrix_of(head.vocabulary)
    direction_BPE = cap.factor * _signed(signs, matrix_VE.__getitem__)
    constants = {}
    if final.constant is not None:
        constants["final.bias"] = (transform.linear(final.constant) * direction_BPE).sum(-1)
    if transform.constant is not None:
        constants["transform.bias"] = (transform.constant * direction_BPE).sum(-1)
    for name, bias_V in cap.biases.items():
        constants[name] = _signed(signs, bias_V.__getitem__)
    logits_BPV = cap.before(view, head)
    logit_BP = _signed(signs, lambda ids_BP: logits_BPV.gather(-1, ids_BP[..., None])[..., 0])
    readout = chained([final.linear, transform.linear])
    direction_BPD = pull(readout, direction_BPE, x_BPD)
    return TokenDirection(direction_BPD, readout, cap.factor, constants, logit_BP, token_BP, cap.notes)


@dataclass(frozen=True)
class _Cap:
    """What stands behind the scores, where it is linear: a factor, a bias; a soft cap is left out, and said so."""

    factor: float
    biases: dict[str, Tensor]
    left_out: bool = False

    @classmethod
    def of(cls, head: LanguageModelHead) -> "_Cap":
        own = getattr(head.vocabulary, "bias", None)
        biases = {} if own is None else {"head.bias": wide(own)}
        like_V = matrix_of(head.vocabulary).new_zeros(head.vocabulary.out_features)
        try:
            cap = frozen(head.cap, like_V)
        except NotLinearError:
            return cls(1.0, biases, left_out=True)
        factor = float(cap.linear(like_V.new_ones(())))
        biases = {name: factor * bias_V for name, bias_V in biases.items()}
        return cls(factor, biases if cap.constant is None else {**biases, "cap.bias": cap.constant})

    @property
    def notes(self) -> tuple[str, ...]:
        return ("the logit is that before the cap, which bends it",) if self.left_out else ()

    def before(self, view: TraceView, head: LanguageModelHead) -> Tensor:
        """Return the scores that the parts sum to: the logits, or what they were before the cap."""
        if not self.left_out:
            return wide(view.take(view.trace.logits))
        with torch.no_grad():
            final_BPD = view.take(needed(view.trace, f"{view.trace.model.stack.path}final"))
            return wide(head.vocabulary(head.transform(final_BPD)))


def _signed(signs: Sequence[tuple[Tensor, float]], of: Callable[[Tensor], Tensor]) -> Tensor:
    first, *others = [sign * of(ids_BP) for ids_BP, sign in signs]
    return first if not others else first + others[0]
