"""Vectors of texts by a model that compares them with pictures."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.language_model.model import LanguageModel
from orrery.tasks.pipelines._rows import batch_of, whole

BATCH = 64
"""Texts read at once."""


@torch.no_grad()
def text_vectors(lm: LanguageModel, texts: Sequence[str], *, truncation: bool) -> Float[Tensor, "N E"]:
    """Return the vector of each text, of length one; texts are filled up where the model was trained on such.

    Raises:
        UsageError: a text is longer than the model reads, and ``truncation`` is off.
    """
    model: Any = lm.model
    rows = [whole(lm, text, truncation=truncation) for text in texts]
    parts = (batch_of(lm, rows[first : first + BATCH])[0] for first in range(0, len(rows), BATCH))
    return torch.cat([model.vectors(model.reads, _framed(lm, part)) for part in parts])


def _framed(lm: LanguageModel, part: dict[str, Any]) -> dict[str, Any]:
    """Return texts as the model read them in training."""
    spec: Any = lm.model.spec
    if spec.fill is None:
        return part
    return {"ids": spec.fill.of(part["ids"], part.get("real"), spec.fill.padding(lm.stored.tokenizer))}
