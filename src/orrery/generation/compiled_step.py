"""A model whose step of one token is one compiled call; all else is the model itself."""

from contextlib import suppress
from typing import Any, NamedTuple, final
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.kernels.readiness import build_beside, ready, why_not_here
from orrery.kernels.step.listing import BLOCK_MODULES, WHOLE_NUMBERS, NotRunnableError
from orrery.kernels.step.loading import begin_loading
from orrery.kernels.step.program import StepProgram
from orrery.kernels.wide_products import wide_products
from orrery.models.calls import Numbers
from orrery.models.decoder import Decoder
from orrery.models.session import DecodingSession
from orrery.nn.cache.rows import RowCache
from orrery.nn.cache.sliding import SlidingStore
from orrery.nn.cache.slots import SlotStore
from orrery.nn.embeddings import check_ids
from orrery.nn.stack import Stack
from orrery.tuning._linear import BlockEmbedding
from orrery.tuning.blocks import BlockLinear
from orrery.tuning.quantise import QuantisedLinear

WHOLE_NUMBERS.add(QuantisedLinear)
BLOCK_MODULES.update((BlockLinear, BlockEmbedding))

KERNELS = ("auto", "eager", "compiled")
"""How steps are computed: compiled wherever that can be, by torch, or compiled or not at all."""


def why_not(model: Any) -> str | None:
    """Return why the step of a model cannot be compiled, or nothing: the one place where that is decided."""
    reason = why_not_here()
    if reason is not None:
        return reason
    if type(model) is not Decoder:
        return f"it is no decoder but a {type(model).__name__}"
    device = next(model.parameters()).device
    if device.type != "cpu":
        return f"it is on {device.type}, and the compiled step runs on a CPU"
    try:
        StepProgram(model.stack, model.embed, model.head)
    except NotRunnableError as error:
        return f"no instruction computes {error}"
    return None


def check_kernel(kernel: str) -> None:
    """Refuse a way to compute steps that there is not.

    Raises:
        UsageError: it is none of ``KERNELS``.
    """
    if kernel not in KERNELS:
        raise UsageError(f"no kernel {kernel!r}", f"use {', '.join(KERNELS)}")


def described(model: Any, kernel: str) -> str:
    """Return in words how a model will write: ``compiled steps``, or ``eager steps`` and why."""
    reason = "they were asked for" if kernel == "eager" else why_not(model)
    if reason is None and kernel == "auto" and not ready():
        reason = "machine code is made while it first writes, and serves from the next time on"
    return "compiled steps" if reason is None else f"eager steps ({reason})"


class _Made(NamedTuple):
    """A program, and what of the model it was made of; none where a part of the model has no instruction any more."""

    program: StepProgram | None
    state: list[tuple[int, int]]
    small_N: Tensor


_made: WeakKeyDictionary[Any, _Made] = WeakKeyDictionary()
"""By model. A program reads parameters where they are and knows nothing of the model, which goes when its user does."""


def stepping(model: Any, kernel: str = "auto") -> Any:
    """Return what writes: the model, or the model with a compiled step.

    With ``auto`` the machine code has to be at hand: where it is not, it is compiled in another process for the next
    time, and the model writes as it is. So a request never waits for a compiler, and is answered in one way to its end.

    Raises:
        UsageError: ``compiled``, and the step cannot be; or there is no such kernel.
    """
    check_kernel(kernel)
    if kernel == "eager":
        return model
    if model in _made:
        return CompiledStep(model, _made[model])
    reason = why_not(model)
    if reason is not None and kernel == "compiled":
        raise UsageError(f"the step of this model cannot be compiled: {reason}", "leave the kernel at auto")
    if reason is not None:
        return model
    if kernel == "auto" and not ready():
        build_beside()
        return model
    begin_loading()
    return CompiledStep(model, _made.setdefault(model, _made_of(model)))


@final
class CompiledStep:
    """A decoder in whose sessions one token a row is written by the compiled step (``kernels.step``).

    Prompts, several tokens at once and whatever is watched are the model's own; both write into the same session. The
    numbers are those of the model in float32 arithmetic; what a bfloat16 matrix multiplies is rounded to bfloat16, and
    logits come in float32. A row does not depend on the number of its neighbours. Where gradients are asked for,
    dropout is on, keys and values are kept in pages, or the model was given a part that no instruction computes, the
    model steps itself.

    Args:
        model: a decoder for which ``why_not`` has no reason.
        made: its program where there is one already.

    Raises:
        NotRunnableError: there is a reason.
    """

    def __init__(self, model: Decoder, made: _Made | None = None) -> None:
        self.model = model
        self.spec = model.spec
        self._vocabulary = model.spec.vocabulary or 0
        self._program, self._state, self._small_N = _made_of(model) if made is None else made

    @property
    def row_invariant(self) -> bool:
        """Whether a row that is kept in slots is bit for bit what it is alone."""
        return self._program is not None

    @property
    def stack(self) -> Stack:
        """Return the model's."""
        return self.model.stack

    @property
    def first_token(self) -> int | None:
        """Return the model's."""
        return self.model.first_token

    @property
    def reads_at_once(self) -> bool:
        """Return the model's."""
        return self.model.reads_at_once

    def start(
        self, source: Int[Tensor, "B L"], capacity: int, lengths: Numbers | None = None, **call: Any
    ) -> tuple[Float[Tensor, "B V"], DecodingSession]:
        """Read a prompt as the model does; a model whose numbers have changed since gets a new program.

        Raises:
            UsageError: as the model does.
        """
        state, small_N = _state(self.model), _small(self.model)
        if state != self._state or not torch.equal(small_N, self._small_N):
            self._program, self._state, self._small_N = None, state, small_N
            with suppress(NotRunnableError):
                self._program = StepProgram(self.model.stack, self.model.embed, self.model.head)
            if self.model in _made:
                _made[self.model] = _Made(self._program, state, small_N)
        with wide_products():
            return self.model.start(source, capacity, lengths, **call)

    def step(
        self, tokens: Int[Tensor, "B N"], session: DecodingSession, lengths: Numbers | None = None, **call: Any
    ) -> Float[Tensor, "B N V"]:
        """Write N more tokens a row into the session, in place, and return the logits after each.

        Raises:
            UsageError: the session is over, or a row is full.
            DataError: a token outside the vocabulary.
        """
        many = tokens.shape[1] != 1 or lengths is not None
        if many or call or torch.is_grad_enabled() or self.model.training or not _in_slots(session.cache):
            with wide_products():
                return self.model.step(tokens, session, lengths, **call)
        if self._program is None:
            return self.model.step(tokens, session)
        check_ids(tokens, self._vocabulary)
        with session.writing() as cache:
            return self._program(tokens[:, 0].contiguous(), cache)[:, None]


def _in_slots(cache: RowCache) -> bool:
    """Say whether a cache is of the kinds that the compiled step knows."""
    return all(isinstance(store, SlotStore | SlidingStore) for store in cache.stores.values())


def _made_of(model: Decoder) -> _Made:
    """Make the program of a model.

    Raises:
        NotRunnableError: no instruction computes a part.
    """
    return _Made(StepProgram(model.stack, model.embed, model.head), _state(model), _small(model))


def _state(model: Decoder) -> list[tuple[int, int]]:
    """Return what changes when a parameter is put elsewhere, or changed by all but torch's fused optimizers."""
    return [(parameter.data_ptr(), parameter._version) for parameter in model.parameters()]


def _small(model: Decoder) -> Tensor:
    """Return the numbers of which a program has a copy: torch's fused optimizers change them and count no version."""
    parameters = [parameter.detach().flatten() for parameter in model.parameters() if parameter.ndim < 2]
    return torch.cat(parameters) if parameters else torch.empty(0)
