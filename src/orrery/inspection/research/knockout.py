"""Attention knock-out: a position may no longer look at others, in a window of blocks (Geva et al. 2023)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.recorder import Recorder
from orrery.inspection.research.measures import log_probability
from orrery.inspection.research.variants import ROWS, Done, RowChange, around, check_reader, last_logits, run_variants
from orrery.models.model import Model
from orrery.nn.attention.kernels import eager


@final
@dataclass(frozen=True)
class Knockout:
    """How probable the answer is when edges are cut.

    Attributes:
        names: of the sets of positions that could not be looked at.
        clean: log p(answer) with all edges, in nats.
        knocked_MN: by set and by the middle block of the window, log p(answer) without the edges.
    """

    names: Sequence[str]
    clean: float
    knocked_MN: Float[Tensor, "M N"]

    @property
    def change(self) -> Float[Tensor, "M N"]:
        """The change of log p, in nats: below zero where the edges were needed."""
        return self.knocked_MN - self.clean


@torch.no_grad()
def attention_knockout(
    model: Model,
    ids_BL: Int[Tensor, "B L"],
    sources: Mapping[str, Sequence[int]],
    answer: int | Sequence[int],
    *,
    target: int = -1,
    window: int = 1,
    position: int = -1,
    rows: int = ROWS,
    done: Done | None = None,
) -> Knockout:
    """Cut the edges from a position to sets of others in every window of blocks, and measure log p of the answer.

    The scores of the edges become minus infinity, so that the rest of the row shares the weight (Geva et al. 2023,
    section 5).

    Args:
        model: a decoder with attention, in eval mode.
        ids_BL: the texts, up to the token before the answer.
        sources: by name, the positions that are looked at no more.
        answer: the token that should follow, one for all texts or one for each.
        target: the position that looks.
        window: how many blocks are cut together, around each block.
        position: whose next token is measured.
        rows: the most rows of one forward pass.
        done: told after each pass how many of how many windows have run.

    Raises:
        UsageError: positions outside the text, all that the target may see, or a model without scores of attention.
    """
    check_reader(model, ids_BL, position=position)
    check_reader(model, ids_BL, position=target)
    length = ids_BL.shape[1]
    if window < 1 or not sources:
        raise UsageError(f"window = {window} of {len(sources)} sets is not possible", "both are at least 1")
    for name, places in sources.items():
        if not places or any(not 0 <= place < length for place in places):
            message = f"{name} stands at {list(places)} in a text of {length} tokens"
            raise UsageError(message, f"name positions from 0 to {length - 1}")
    measure, recorder = log_probability(answer), Recorder(keep=("blocks.*.attention.scores",))
    clean_BV = last_logits(model, ids_BL, position, taps=recorder, kernel=eager)
    recorder.check_used()
    keys = list(recorder.values)
    for name, places in sources.items():
        left_BHS = recorder.values[keys[0]][:, :, target].clone()
        left_BHS[..., list(places)] = float("-inf")
        if bool(left_BHS.isneginf().all(-1).any()):
            raise UsageError(f"position {target} would see nothing without {name}", "leave it one position, its own")
    variants = [
        [RowChange(key, (slice(None), target, list(places)), _hide) for key in around(keys, n, window)]
        for places in sources.values()
        for n in range(len(keys))
    ]
    logits_of_runs = run_variants(model, ids_BL, variants, position=position, rows=rows, done=done, kernel=eager)
    knocked_N = torch.cat([measure(logits_NBV).double().mean(-1) for logits_NBV in logits_of_runs]).cpu()
    return Knockout(list(sources), float(measure(clean_BV).double().mean()), knocked_N.view(len(sources), len(keys)))


def _hide(scores: Tensor) -> Tensor:
    return torch.full_like(scores, float("-inf"))
