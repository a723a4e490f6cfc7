"""A probe of length: the loss of the trained model by the place in a row that is longer than those it learned."""

from dataclasses import replace
from typing import Any

import torch

from orrery.evaluation.floors import joined
from orrery.language_model.load import load
from orrery.studies.compare.probes.subject import Curve, ProbeSubject

TIMES, PARTS, ROWS = 4, 2, 16
"""So many training lengths are read, in so many parts each, in so many rows at most."""


@torch.no_grad()
def extrapolation(subject: ProbeSubject) -> Curve:
    """Return the bits of a token by its place, up to four times the training length, on the text held back."""
    length = subject.plan.base.batches.length
    whole = TIMES * length
    ids = torch.from_numpy(joined(subject.held_back).astype("int64"))
    rows = min(ROWS, (len(ids) - 1) // whole)
    if rows == 0:
        return {}
    # Rows from places all over the text held back.
    starts = [round(row * (len(ids) - 1 - whole) / max(1, rows - 1)) for row in range(rows)]
    read_BL = torch.stack([ids[start : start + whole + 1] for start in starts])
    model = longer(subject, whole)
    logits_BLV = torch.cat([model.logits(row_L[None, :-1]) for row_L in read_BL])
    nats_BL = torch.nn.functional.cross_entropy(logits_BLV.float().mT, read_BL[:, 1:], reduction="none")
    bits_P = (nats_BL.mean(0) / torch.log(torch.tensor(2.0))).unflatten(0, (TIMES * PARTS, -1)).mean(1)
    size = length // PARTS
    return {str((part + 1) * size): float(bits) for part, bits in enumerate(bits_P)}


def longer(subject: ProbeSubject, length: int) -> Any:
    """Return the trained model with a longer context: what it learned knows nothing of that number."""
    model: Any = load(subject.run, "cpu", "float32", say=lambda line: None).model
    made = replace(model.spec, context=length).build(0)
    made.load_state_dict(model.state_dict())
    return made.eval()
