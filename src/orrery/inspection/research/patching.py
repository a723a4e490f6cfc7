"""Activation patching: parts of a clean run are put into a corrupted one, and what that restores is measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.recorder import Recorder
from orrery.inspection.research.measures import Measure, measure_of
from orrery.inspection.research.variants import ROWS, Done, check_reader, last_logits, put, run_variants
from orrery.models.model import Model
from orrery.nn.attention.kernels import eager
from orrery.reports.figures import signed_map


class Site(NamedTuple):
    """What is patched: the name of a tensor in each block, and the axes of the grid beside that of the blocks."""

    name: str
    by_position: bool
    by_head: bool
    is_attention: bool = False


SITES: Mapping[str, Site] = {
    "residual": Site("resid_pre", True, False),
    "residual_post": Site("resid_post", True, False),
    "attention": Site("attention.added", True, False),
    "feed_forward": Site("feed_forward.added", True, False),
    "heads": Site("attention.mixed", False, True),
    "heads_by_position": Site("attention.mixed", True, True),
    "queries": Site("attention.q", False, True),
    "keys": Site("attention.k", False, True),
    "values": Site("attention.v", False, True),
    "patterns": Site("attention.pattern", False, True, True),
}
"""What can be patched: the stream before and after a block, what its parts add, heads, and parts of heads."""


@final
@dataclass(frozen=True)
class Patching:
    """What each patch restores.

    Attributes:
        at: a name of ``SITES``.
        grid: by block, by head and by position, as far as the site has them: 0 is the corrupted run, 1 the clean.
        clean: the measure of the clean run, the mean over texts.
        corrupted: that of the corrupted run.
        blocks: the numbers of the blocks that have such a tensor: the rows of the grid.
    """

    at: str
    grid: Float[Tensor, "..."]
    clean: float
    corrupted: float
    blocks: Sequence[int]

    def table(self, tokens: Sequence[str]) -> tuple[list[str], list[str], Float[Tensor, "rows columns"]]:
        """Return the grid flat: the names of its rows, those of its columns, and the numbers.

        Rows are blocks, or heads where there are positions beside them; columns are tokens, or heads.
        """
        site, blocks = SITES[self.at], [f"block {number}" for number in self.blocks]
        if not site.by_position:
            return blocks, [f"head {head}" for head in range(self.grid.shape[1])], self.grid
        if not site.by_head:
            return blocks, list(tokens), self.grid
        heads = [f"{number}.{head}" for number in self.blocks for head in range(self.grid.shape[1])]
        return heads, list(tokens), self.grid.flatten(0, 1)

    def top(self, tokens: Sequence[str], k: int = 10) -> list[tuple[str, str, float]]:
        """Return the row, the column and the number of the places that restore most."""
        rows, columns, grid = self.table(tokens)
        order = grid.flatten().argsort(descending=True, stable=True)[:k].tolist()
        places = [divmod(place, len(columns)) for place in order]
        return [(rows[row], columns[column], float(grid[row, column])) for row, column in places]

    def figure(self, tokens: Sequence[str], title: str = "") -> str:
        """Return the grid as an SVG element: blue restores the clean answer, orange leads further from it."""
        rows, columns, grid = self.table(tokens)
        title = title or f"Activation patching by {self.at.replace('_', ' ')}"
        largest = max(1.0, float(grid.abs().max()))
        return signed_map(grid.tolist(), rows=rows, columns=columns, title=title, largest=largest)


@torch.no_grad()
def activation_patching(
    model: Model,
    clean_BL: Int[Tensor, "B L"],
    corrupted_BL: Int[Tensor, "B S"],
    answer: int | Sequence[int],
    against: int | Sequence[int] | None = None,
    *,
    at: str = "residual",
    position: int = -1,
    rows: int = ROWS,
    done: Done | None = None,
) -> Patching:
    """Run the corrupted text once for each part of the clean run that can be put into it.

    ``grid = (m(patched) - m(corrupted)) / (m(clean) - m(corrupted))``, where m is the difference of two logits, or
    log p of the answer. Papers: Vig et al. 2020; Meng et al. 2022; Wang et al. 2022.

    Args:
        model: a decoder, or an encoder that scores tokens, in eval mode.
        clean_BL: the texts whose answer is right.
        corrupted_BL: texts of the same length with another answer.
        answer: the right token, one for all texts or one for each.
        against: the token of the other text; without one, log p of the answer is measured.
        at: what is patched, a name of ``SITES``.
        position: whose next token is measured.
        rows: the most rows of one forward pass.
        done: told after each pass how many of how many patches have run.

    Raises:
        UsageError: texts of several lengths, a site that the model lacks, or runs that measure the same.
    """
    if at not in SITES:
        raise UsageError(f"nothing to patch is called {at!r}", f"there is: {', '.join(SITES)}")
    check_reader(model, clean_BL, corrupted_BL, position=position)
    site, measure = SITES[at], measure_of(answer, against)
    kernel = eager if site.is_attention else None
    recorder = Recorder(keep=(f"blocks.*.{site.name}",))
    clean_BV = last_logits(model, clean_BL, position, taps=recorder, kernel=kernel)
    if not recorder.values:
        raise UsageError(f"no block of this model has {site.name!r}", f"it has: {', '.join(_names(recorder))}")
    ends = [_mean(measure, x_BV) for x_BV in (clean_BV, last_logits(model, corrupted_BL, position, kernel=kernel))]
    if ends[0] == ends[1]:
        message = f"clean and corrupted measure the same, {ends[0]:.4g}: there is nothing to restore"
        raise UsageError(message, "choose texts and answers that the model tells apart")
    places = _places(site, recorder.values, clean_BL.shape[1])
    variants = [[put(key, part, recorder.values[key])] for key, part in places]
    logits_of_runs = run_variants(model, corrupted_BL, variants, position=position, rows=rows, done=done, kernel=kernel)
    patched_N = torch.cat([measure(logits_NBV).double().mean(-1) for logits_NBV in logits_of_runs])
    grid_N = (patched_N - ends[1]) / (ends[0] - ends[1])
    blocks = [int(key.split(".")[1]) for key in recorder.values]
    return Patching(at, grid_N.view(_shape(site, recorder.values, clean_BL.shape[1])).cpu(), ends[0], ends[1], blocks)


def _mean(measure: Measure, logits_BV: Tensor) -> float:
    return float(measure(logits_BV).double().mean())


def _places(site: Site, values: Mapping[str, Tensor], length: int) -> list[tuple[str, tuple[int | slice, ...]]]:
    """Return the tensors and the parts of them, in the order of the grid."""
    places: list[tuple[str, tuple[int | slice, ...]]] = []
    for key, value in values.items():
        positions = [*range(length)] if site.by_position else [slice(None)]
        heads = [[head] for head in range(value.shape[1])] if site.by_head else [[]]
        places += [(key, (*head, position)) for head in heads for position in positions]
    return places


def _shape(site: Site, values: Mapping[str, Tensor], length: int) -> list[int]:
    heads = {value.shape[1] for value in values.values()} if site.by_head else set[int]()
    if len(heads) > 1:
        raise UsageError(f"blocks have {sorted(heads)} heads, which make no grid", "patch what the attention adds")
    return [len(values), *heads, *([length] if site.by_position else [])]


def _names(recorder: Recorder) -> list[str]:
    return list(dict.fromkeys(key.split(".", 2)[2] for key in recorder.keys if key.startswith("blocks.")))
