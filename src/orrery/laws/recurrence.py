"""The law of recurrence: step by step, in parallel or piece by piece, the numbers are the same."""

from collections.abc import Iterator
from functools import cached_property, partial

import torch
from torch import Tensor

from orrery.laws.evidence import FLOAT64, CannotRunError, Evidence, deviation, within
from orrery.laws.models import forms_of, random_ids, spec_of, tiny, trained
from orrery.laws.place import placed
from orrery.nn.cache.contract import State
from orrery.nn.mixer import StatefulMixer
from orrery.nn.segments import PackedSegments

SINGLE = 1e-4
TOKENS = 11


def check(family: str) -> Iterator[Evidence]:
    """Compare every form that a mixer declares with its definition, step by step: each mixer alone, and the model.

    Alone: outputs, the states they leave and gradients, over whole rows, padding and packed documents, from no state
    and from one, and in two calls. In the model: logits and gradients over padded rows.

    Raises:
        CannotRunError: the family has no mixer with a state.
    """
    mixers = {mixer: None for mixer in tiny(family).modules() if isinstance(mixer, StatefulMixer)}
    if not mixers:
        raise CannotRunError("inapplicable", "no recurrence, or one that attends to a source, with one form")
    evidence = partial(within, law="recurrence", family=family)
    precisions = (("float64", torch.float64, FLOAT64), ("float32", torch.float32, SINGLE))
    alone = {dtype: MixersAlone(family, dtype) for _, dtype, _ in precisions}
    yield evidence("two calls == one, step by step", value=alone[torch.float64].worst("step"), bound=FLOAT64)
    for form in dict.fromkeys(form for mixer in mixers for form in mixer.forms):
        for precision, dtype, bound in precisions:
            yield evidence(f"{form} form == steps, {precision}", value=alone[dtype].worst(form), bound=bound)
    in_model = {dtype: InTheModel(family, dtype) for _, dtype, _ in precisions}
    ways: tuple[str | None, ...] = (None, *forms_of(family)[1:])
    for way in ways:
        name = "outputs alone" if way is None else f"{way} form"
        for precision, dtype, bound in precisions:
            yield evidence(f"{name} == steps, logits, {precision}", value=in_model[dtype].logits(way), bound=bound)
        value = in_model[torch.float64].gradients(way)
        yield evidence(f"{name} == steps, gradients, float64", value=value, bound=FLOAT64)


def layouts() -> dict[str, PackedSegments | None]:
    """Return three rows of tokens: whole, padded (one of them empty), and of documents, one of these in pieces.

    Their lengths are near enough that a form over rows of like length pads some of them.
    """
    real = placed(torch.arange(TOKENS) >= torch.tensor([[0], [2], [TOKENS]]))
    rows = [[0] * 5 + [1] + [2] * 5, [0] * 9 + [-1] * 2, [0, 1, 1, 0, 0, 2, 2, 0, 1, 2, 2]]
    documents = placed(torch.tensor(rows))
    return {
        "whole": None,
        "padded": PackedSegments.of(real),
        "packed": PackedSegments.of(documents >= 0, documents),
    }


class MixersAlone:
    """Every mixer of a model without the model; what its steps give is computed once, for all forms."""

    def __init__(self, family: str, dtype: torch.dtype) -> None:
        self.mixers = [part for part in tiny(family, dtype).modules() if isinstance(part, StatefulMixer)]
        rng = torch.Generator().manual_seed(9)
        x = torch.randn(3, TOKENS, spec_of(family).width, generator=rng, dtype=torch.float64)
        self.x = placed(x.to(dtype))

    def worst(self, form: str) -> float:
        """Compare each mixer that has the form with its definition, and its two halves with its whole."""
        worst = 0.0
        for mixer, cases in self.by_step.items():
            if form not in ("step", *mixer.forms):
                continue
            for segments, before, expected in cases:
                # The steps beside themselves would say nothing but whether they are numbers.
                results = expected if form == "step" else _everything(mixer, form, self.x, segments, before)
                worst = max(worst, *(deviation(a, b) for a, b in zip(results, expected, strict=True)))
            worst = max(worst, in_two_calls(mixer, form, self.x))
        return worst

    @cached_property
    def by_step(self) -> dict[StatefulMixer, list[tuple[PackedSegments | None, State, tuple[Tensor, ...]]]]:
        """Return of each mixer the segments and states that it is tried on, and all that its steps give."""
        return {mixer: list(self._cases(mixer)) for mixer in self.mixers}

    def _cases(self, mixer: StatefulMixer) -> Iterator[tuple[PackedSegments | None, State, tuple[Tensor, ...]]]:
        _, state = mixer.compute("step", self.x.flip(1), None, mixer.begin(self.x))
        for name, segments in layouts().items():
            for before in (mixer.begin(self.x), *([] if name == "packed" else [state])):
                yield segments, before, _everything(mixer, "step", self.x, segments, before)


def _everything(
    mixer: StatefulMixer, form: str, x: Tensor, segments: PackedSegments | None, before: State
) -> tuple[Tensor, ...]:
    """Return outputs, the states after each row but where documents share one, and the gradients of both."""
    x = x.clone().requires_grad_()
    before = tuple(part.detach().clone().requires_grad_() for part in before)
    y, after = mixer.compute(form, x, segments, before)
    ends = after if segments is None or segments.row_N.diff().all() else ()
    loss = y.pow(2).sum() + sum(end.pow(2).sum() for end in ends)
    needed = [x, *before, *(p for p in mixer.parameters() if p.requires_grad)]
    gradients = torch.autograd.grad(loss, needed, allow_unused=True)
    zeros = (
        torch.zeros_like(one) if gradient is None else gradient for one, gradient in zip(needed, gradients, strict=True)
    )
    return (y.detach(), *(end.detach() for end in ends), *zeros)


@torch.no_grad()
def in_two_calls(mixer: StatefulMixer, form: str, x: Tensor) -> float:
    """Compare whole rows with two calls, the second from the state that the first left."""
    at_once, last = mixer.compute("step", x, None, mixer.begin(x))
    first, state = mixer.compute(form, x[:, :4], None, mixer.begin(x))
    second, after = mixer.compute(form, x[:, 4:], None, state)
    pairs = [(torch.cat([first, second], 1), at_once), *zip(after, last, strict=True)]
    return max(deviation(a, b) for a, b in pairs)


def padded() -> tuple[Tensor, Tensor]:
    """Return rows of eleven, four and no tokens, padded on the left."""
    return random_ids(3, TOKENS), placed(torch.arange(TOKENS) >= torch.tensor([[0], [7], [TOKENS]]))


class InTheModel:
    """A model over padded rows; what it gives step by step is computed once, for all forms."""

    def __init__(self, family: str, dtype: torch.dtype) -> None:
        self.model, (self.ids, self.real) = tiny(family, dtype), padded()

    def logits(self, form: str | None) -> float:
        """Compare the logits of whole rows, and of real tokens."""
        return max(deviation(a, b) for a, b in zip(self._logits(form), self._logits_by_step, strict=True))

    def gradients(self, form: str | None) -> float:
        """Compare the gradients of every parameter."""
        return max(deviation(a, b) for a, b in zip(self._gradients(form), self._gradients_by_step, strict=True))

    @cached_property
    def _logits_by_step(self) -> tuple[Tensor, Tensor]:
        return self._logits("step")

    @cached_property
    def _gradients_by_step(self) -> tuple[Tensor, ...]:
        return self._gradients("step")

    @torch.no_grad()
    def _logits(self, form: str | None) -> tuple[Tensor, Tensor]:
        logits_BLV = self.model.logits(self.ids, scan=form)
        return logits_BLV, self.model.logits(self.ids, real=self.real, scan=form)[self.real]

    def _gradients(self, form: str | None) -> tuple[Tensor, ...]:
        loss = self.model.logits(self.ids, real=self.real, scan=form)[self.real].pow(2).mean()
        # An expert to whom no token is sent has no gradient, in any form.
        return torch.autograd.grad(loss, trained(self.model), materialize_grads=True)
