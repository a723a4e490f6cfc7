"""Causal tracing: noise hides the subject, and one state at a time is restored (Meng et al. 2022)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.recorder import Recorder
from orrery.inspection.research.measures import probability
from orrery.inspection.research.patching import SITES
from orrery.inspection.research.variants import (
    ROWS,
    Done,
    RowChange,
    around,
    check_reader,
    last_logits,
    put,
    run_variants,
)
from orrery.models.model import Model


@final
@dataclass(frozen=True)
class CausalTrace:
    """How probable the answer is when the subject is hidden and single states are restored.

    Attributes:
        clean: p(answer) of the text as it is.
        corrupted: p(answer) with the subject hidden, the mean over samples.
        restored_NL: by block and position, p(answer) with this state restored, the mean over samples.
        noise: the standard deviation of what was added to the subject.
    """

    clean: float
    corrupted: float
    restored_NL: Float[Tensor, "N L"]
    noise: float

    @property
    def total(self) -> float:
        """The total effect of the noise, ``p(clean) - p(corrupted)``."""
        return self.clean - self.corrupted

    @property
    def indirect(self) -> Float[Tensor, "N L"]:
        """The indirect effect of each state, ``p(restored) - p(corrupted)``."""
        return self.restored_NL - self.corrupted


@torch.no_grad()
def causal_tracing(
    model: Model,
    ids_L: Int[Tensor, "L"],
    subject: Sequence[int],
    answer: int,
    *,
    at: str = "residual_post",
    window: int = 1,
    noise: float = 3.0,
    samples: int = 8,
    seed: int = 1337,
    position: int = -1,
    rows: int = ROWS,
    done: Done | None = None,
) -> CausalTrace:
    """Add noise to what is embedded of the subject, then restore one state of the clean run at a time.

    Meng et al. 2022, section 2. Every state is restored under the same draws of the noise.
    Differs from the paper: the deviation is counted from what this text embeds, positions included, and not from the
    embeddings of many subjects.

    Args:
        model: a decoder in eval mode.
        ids_L: the text, up to the token before the answer.
        subject: the positions of the subject's tokens.
        answer: the token that should follow.
        at: what is restored: ``residual_post``, ``attention``, ``feed_forward`` or another site by position.
        window: how many blocks around are restored together; the paper has 10 for attention and feed-forward.
        noise: the deviation of the noise, in deviations of what is embedded.
        samples: draws of the noise.
        seed: of the draws.
        position: whose next token is measured.
        rows: the most rows of one forward pass.
        done: told after each pass how many of how many states are restored.

    Raises:
        UsageError: positions outside the text, a site without positions, or a setting outside its range.
    """
    ids_BL = ids_L.repeat(max(samples, 0), 1)
    _check(model, ids_L, subject, at, window, samples)
    check_reader(model, ids_BL, position=position)
    name, measure = SITES[at].name, probability(answer)
    recorder = Recorder(keep=("embedded", f"blocks.*.{name}"))
    clean_BV = last_logits(model, ids_L[None], position, taps=recorder)
    embedded_1LD = recorder.values.pop("embedded")
    recorder.check_used()
    deviation = noise * float(embedded_1LD.double().std())
    rng = torch.Generator().manual_seed(seed)
    shape = (samples, len(subject), embedded_1LD.shape[-1])
    drawn_BND = deviation * torch.randn(shape, generator=rng, dtype=torch.float64).to(embedded_1LD)
    hide = RowChange("embedded", (list(subject),), lambda value_BND: value_BND + drawn_BND)
    states = list(recorder.values.items())
    variants = [[hide]]
    for block in range(len(states)):
        near = around(states, block, window)
        variants += [[hide, *(put(key, (place,), value) for key, value in near)] for place in range(len(ids_L))]
    logits_of_runs = run_variants(model, ids_BL, variants, position=position, rows=rows, done=done)
    measured_N = torch.cat([measure(logits_NBV).double().mean(-1) for logits_NBV in logits_of_runs]).cpu()
    restored_NL = measured_N[1:].view(len(states), len(ids_L))
    return CausalTrace(float(measure(clean_BV)), float(measured_N[0]), restored_NL, deviation)


def _check(model: Model, ids_L: Tensor, subject: Sequence[int], at: str, window: int, samples: int) -> None:
    known = [name for name, site in SITES.items() if site.by_position and not site.by_head]
    if at not in known:
        raise UsageError(f"no state of one position is called {at!r}", f"there is: {', '.join(known)}")
    if min(window, samples) < 1:
        raise UsageError(f"window = {window} and samples = {samples} are not possible", "both are at least 1")
    if not subject or any(not 0 <= place < len(ids_L) for place in subject):
        message = f"the subject stands at {list(subject)} in a text of {len(ids_L)} tokens"
        raise UsageError(message, f"name positions from 0 to {len(ids_L) - 1}")
