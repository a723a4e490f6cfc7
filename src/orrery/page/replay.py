"""An answer that was served, computed again in one pass: what is seen inside is what the client was told."""

from collections.abc import Sequence

import torch

from orrery.inspection.checks import Check
from orrery.page.views._inside import Inside

COARSE, FINE = 2e-2, 1e-4
"""Nats between log probabilities written token by token and those of one pass, in 16 bits and in float32."""


def replay_check(inside: Inside, ids: Sequence[int], served: Sequence[float]) -> Check:
    """Compare the log probabilities that were served with those of a pass over prompt and answer.

    ``max_i |log p_pass(written_i | what stands before) - served_i|`` in nats; each is the model's own, before
    temperature and filters.

    Args:
        inside: the pass; the answer stands at its end.
        ids: the ids of the answer.
        served: their log probabilities, as many as were told.
    """
    logits_BLV = inside.first.logits
    count = len(ids)
    before_NV = logits_BLV[0, -count - 1 : -1].double() if count else logits_BLV[0, :0].double()
    found_N = before_NV.log_softmax(-1)[torch.arange(count), torch.tensor(ids, dtype=torch.long)]
    off_N = (found_N[: len(served)] - torch.tensor(served, dtype=torch.double)).abs()
    worst = float(off_N.max()) if len(served) else 0.0
    fine = logits_BLV.dtype in (torch.float32, torch.float64)
    return Check("replayed log probabilities are those that were served", worst, FINE if fine else COARSE)
