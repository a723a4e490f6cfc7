"""Where each word of a caption looked in its picture: the attention of the writer over the patches."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.data.pictures.preparing import resized
from orrery.inspection.alignment import words_of

if TYPE_CHECKING:
    from orrery.data.rows.pictures import LabelledPicture
    from orrery.language_model.model import LanguageModel

DIMMED = 0.2
"""How bright a place is at which a word did not look."""
SIDE = 96
"""Pixels of a drawn picture, at least: a patch is then seen."""


def word_patterns(lm: "LanguageModel", picture: Any, caption: str) -> tuple[list[str], Float[Tensor, "layers N P"]]:
    """Return the words of a caption, and how much of its weight each gave to each patch in each block of the writer.

    The mean over the heads and over the tokens of a word; the row of a token is that of the step that predicts it, as
    in ``lm.align``. What went to the class token and others beside the patches is left out, so that a row sums to less
    than one.
    """
    trace, ids = lm.trace(picture, target=caption, keep=("*.cross.pattern",)), lm.tokenizer.encode(caption)
    words, word_T = words_of(lm.tokenizer, ids)
    patterns = torch.stack([trace[key][0].double().mean(0).cpu() for key in trace if key.endswith(".cross.pattern")])
    to_word = torch.nn.functional.one_hot(torch.tensor(word_T), len(words)).double()
    pooled = torch.einsum("tn,lts->lns", to_word / to_word.sum(0), patterns[:, : len(ids)])
    spec: Any = lm.model.spec
    grid = spec.reader.embed.grid
    return list(words), pooled[..., grid.before : grid.places - grid.after]


def looked_at(lm: "LanguageModel", row: "LabelledPicture", caption: str) -> list[tuple[str, Tensor]]:
    """Return each word of a caption with its picture, bright where the word looked, the mean over the blocks."""
    pixels = row.pixels()
    if not caption.strip():
        return []
    words, patterns = word_patterns(lm, pixels.permute(1, 2, 0), caption)
    spec: Any = lm.model.spec
    grid = spec.reader.embed.grid
    scale = max(1, -(-SIDE // max(pixels.shape[1:])))
    size = (pixels.shape[1] * scale, pixels.shape[2] * scale)
    large = resized(pixels, size, 0)
    return [(word, lit(large, weights.unflatten(0, (grid.rows, grid.columns)))) for word, weights in
            zip(words, patterns.mean(0), strict=True)]  # fmt: skip


def lit(pixels: Tensor, weights: Float[Tensor, "rows columns"]) -> Tensor:
    """Return a picture that is bright where weights are large, in shares of the largest."""
    most = float(weights.max())
    share = (weights / most if most > 0 else weights)[None, None].float()
    spread = torch.nn.functional.interpolate(share, tuple(pixels.shape[1:]), mode="nearest")[0]
    return (pixels * (DIMMED + (1 - DIMMED) * spread)).round().to(torch.uint8)


def inside_share(weights: Float[Tensor, "rows columns"], box: Sequence[int | float], size: tuple[int, int]) -> float:
    """Return which share of its weight a word gave to the patches that a box touches.

    Args:
        weights: of each patch.
        box: left, top, width and height in pixels.
        size: rows and columns of the picture in pixels.
    """
    rows, columns = weights.shape
    high, wide = size[0] / rows, size[1] / columns
    left, top, width, height = box
    across, down = torch.arange(columns), torch.arange(rows)
    touched = ((down * high < top + height) & ((down + 1) * high > top))[:, None]
    touched = touched & ((across * wide < left + width) & ((across + 1) * wide > left))
    return float(weights[touched].sum() / weights.sum().clamp(min=1e-12))
