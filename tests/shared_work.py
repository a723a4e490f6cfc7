"""One of several processes that share rows, experts or stages: ``python shared_work.py context=2 [only=WORDS]``.

The first prints, for every family, how far loss and gradients of a step are from those of one process in float64, or
how the family is refused; of rows that are whole, padded, and packed with several texts.
"""

import copy
import json
import re
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from orrery.errors import UsageError
from orrery.families import load_family, names
from orrery.objectives import OBJECTIVES
from orrery.recipes.parallel import ParallelSettings
from orrery.training.distributed import Alone
from orrery.training.parallel.joining import find_ranks
from orrery.training.parallel.placement import place
from orrery.training.parallel.recomputation import recompute
from orrery.training.parallel.shards import whole
from orrery.training.precision import Precision
from orrery.training.step import accumulate
from parted import LENGTH, built

LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
"""What configurations call the number of blocks."""


def batches() -> dict[str, dict[str, Tensor]]:
    """Return what says how rows are to be read, beside their tokens: whole ones, padded ones, and packed texts."""
    places = torch.arange(LENGTH)
    real = places < torch.tensor([7, 4, 6, 1])[:, None]
    documents = torch.stack([(places >= 3).long() + (places >= 5).long(), places // 4, 0 * places, places // 6])
    documents[1, 6:] = -1
    return {"whole": {}, "padded": {"real": real}, "packed": {"documents": documents}}


def learned(model: Any, batch: dict[str, Tensor], compute: Any, ranks: Any) -> dict[str, Tensor]:
    """Return the loss of a step in pieces of one row, and the whole gradients."""
    objective = OBJECTIVES.find("causal")()
    how = {"micro_batch": 1, "seed": (0, 0), "precision": Precision("float32", "plain", "cpu", 1), "ranks": ranks}
    loss = compute(model, objective, batch, **how).loss
    gradients = {name: whole(each.grad) for name, each in model.named_parameters() if each.grad is not None}
    return {"loss": torch.tensor(loss), **gradients}


def apart(family: str, kind: str, ranks: Any, degrees: ParallelSettings) -> float:
    """Return the largest difference of a family, by the largest number of its tensor or 1."""
    rules = load_family(family)
    layers = {name: 4 for name in LAYERS if name in rules.TINY and degrees.interleave > 1}
    model, batch = built(family, **layers)
    ids = batch["ids"]
    targets = torch.randint(1, 20, ids.shape, generator=torch.Generator().manual_seed(3))
    how = batches()[kind]
    hidden = ~how["real"] if "real" in how else how.get("documents", ids) < 0
    batch |= {"targets": targets.masked_fill(hidden, -100), **how}
    expected = learned(copy.deepcopy(model), batch, accumulate, Alone())
    recompute(model, degrees.recompute)
    found = learned(model, batch, place(model, ranks, degrees).accumulate, ranks)
    assert expected.keys() == found.keys(), expected.keys() ^ found.keys()
    assert len(found) > 5
    return max(
        float((expected[name] - found[name]).abs().max() / expected[name].abs().max().clamp(min=1)) for name in found
    )


def reads_texts(family: str) -> bool:
    """Say whether a family reads texts and writes on."""
    model, batch = built(family)
    described: Any = model
    return "ids" in batch and len(batch) == 1 and described.spec.writes


def main() -> int:
    """Compare steps whose work is shared with those of one process."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    words = dict(word.split("=", 1) for word in sys.argv[1:])
    only, kinds = words.pop("only", ".*"), words.pop("kinds", "whole,padded,packed").split(",")
    settings: dict[str, Any] = {name: int(value) if value.isdigit() else value for name, value in words.items()}
    degrees = ParallelSettings(**settings)
    ranks, told = find_ranks("cpu", degrees), {}
    for family in names():
        if not re.fullmatch(only, family) or not reads_texts(family):
            continue
        for kind in kinds:
            try:
                told[f"{family}, {kind}"] = apart(family, kind, ranks, degrees)
            except UsageError as error:  # every process says the same
                told[f"{family} is refused: {error.message}"] = 0.0
                break
    if ranks.rank == 0:
        print(json.dumps(told))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
