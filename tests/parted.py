"""One of several processes that compute small models together: ``python parted.py tensor=2 [only=WORDS]``.

The first prints, for every family, how far loss and gradients are from those of one process in float64, or how the
family is refused, with the tokens between the bricks shared and not.
"""

import copy
import json
import re
import sys
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.families import load_family, names, spec_of
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.heads import Headless
from orrery.nn.inputs import Tokens
from orrery.nn.residual import Dropout
from orrery.recipes.parallel import ParallelSettings
from orrery.training.distributed import Ranks
from orrery.training.parallel import messages, tensor_parallel
from orrery.training.parallel.joining import find_ranks
from orrery.training.parallel.placement import place
from orrery.training.parallel.shards import whole

ROWS, LENGTH = 4, 7
"""An odd number of tokens: the last process has one less of its own."""


def even(config: dict[str, Any]) -> dict[str, Any]:
    """Return a small configuration with four heads where it has three, so that processes divide it."""
    if not any("head" in name and value == 3 for name, value in config.items()):
        return config
    other = {24: 32, 48: 64}
    changed = {name: 4 if value == 3 and "head" in name else value for name, value in config.items()}
    widths = ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "emb_dim")
    return {name: other.get(value, value) if name in widths else value for name, value in changed.items()}


def without_dropout(model: nn.Module) -> None:
    """Have nothing drop out: each of the processes that compute a layer together draws for its own heads and tokens."""
    for module in model.modules():
        if isinstance(module, Dropout):
            module.rate, module.threshold = 0.0, -(2**15)
        elif isinstance(module, MultiHeadAttention):
            module.dropout = 0.0


def built(family: str, **more: Any) -> tuple[nn.Module, dict[str, Tensor]]:
    """Return a small model of a family, with parameters at random, and a batch."""
    rules = load_family(family)
    spec = spec_of(rules, even({**rules.TINY, **more}))
    torch.manual_seed(0)
    model = spec.build().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(torch.randn_like(parameter) * 0.1)
    rng = torch.Generator().manual_seed(1)
    batch = {}
    for field, read in spec.inputs.items():
        if isinstance(read, Tokens):
            batch[field] = torch.randint(1, read.vocabulary, (ROWS, LENGTH), generator=rng)
        else:
            batch[field] = torch.randn(ROWS, *read.shape, generator=rng, dtype=torch.float64)
    return model, batch


def learned(model: Any, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return what all heads say, and the gradients of all parameters from random ones of that."""
    headless = isinstance(getattr(model, "head", None), Headless)
    answers = model(batch, heads=["hidden"] if headless else list(model.spec.head_names) or ["hidden"])
    rng = torch.Generator().manual_seed(2)
    said = {f"says {name}": each for name, each in answers.items() if isinstance(each, Tensor)}
    total = sum((each * torch.randn(each.shape, generator=rng, dtype=each.dtype)).sum() for each in said.values())
    total.backward()
    gradients = {name: whole(each.grad) for name, each in model.named_parameters() if each.grad is not None}
    return {**{name: each.detach() for name, each in said.items()}, **gradients}


def apart(family: str, ranks: Ranks, degrees: ParallelSettings, **more: Any) -> float:
    """Return the largest difference of a family, by the largest number of its tensor or 1."""
    model, batch = built(family, **more)
    expected = learned(copy.deepcopy(model), batch)
    place(model, ranks, degrees)
    found = learned(model, batch)
    assert expected.keys() == found.keys(), expected.keys() ^ found.keys()
    assert len(found) > 5
    return max(
        float((expected[name] - found[name]).abs().max() / expected[name].abs().max().clamp(min=1)) for name in found
    )


def kept(kernel: Any, mesh: Any, q_BHLC: Tensor, kv: Any, operands: Any) -> Tensor:
    """Attend by the biases of the first heads, whichever this process has."""
    bias = operands.bias_BHLS
    return kernel(q_BHLC, kv, operands if bias is None else operands._replace(bias_BHLS=bias[:, : q_BHLC.shape[1]]))


def counted(last: Any, mesh: Any, leave: Any, x: Tensor) -> Tensor:
    """Have every process add the bias of the last matrix."""
    return leave(nn.functional.linear(x, last.weight, last.bias), mesh)


FAULTS: dict[str, tuple[str, str, Any]] = {
    "no gradient is summed before a brick": ("gpt2", "entered", lambda x, mesh: x),
    "no output is summed behind a brick": ("gpt2", "left", lambda x, mesh: x),
    "each process adds the bias": ("gpt2", "summed", counted),
    "the biases of other heads": ("t5", "own_heads", kept),
    "gradients of joined tokens are summed": (
        "gpt2",
        "all_tokens",
        lambda x, mesh, length: messages.entered_by_tokens(x, mesh, length),
    ),
    "the logits in another order": (
        "llama",
        "joined",
        lambda x, mesh, count: messages.joined(x, mesh, count).roll(1, -1),
    ),
}
"""Places in which a part may be wrong: the family that shows it, a function, and what stands there instead."""


def faults(ranks: Ranks, tensor: int) -> dict[str, float]:
    """Return how far parted models are from whole ones with each of the faults."""
    told = {}
    for what, (family, name, wrong) in FAULTS.items():
        with patch.object(tensor_parallel, name, wrong):
            degrees = ParallelSettings(tensor=tensor, sequence=name in {"all_tokens", "own_heads"})
            told[what] = apart(family, ranks, degrees)
    return told


def main() -> int:
    """Compare parted models with whole ones."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    words = dict(word.split("=", 1) for word in sys.argv[1:])
    tensor, told = int(words.get("tensor", "2")), {}
    ranks = find_ranks("cpu", ParallelSettings(tensor=tensor))
    told |= {f"wrong: {what}": far for what, far in faults(ranks, tensor).items()} if "faults" in words else {}
    for family in names():
        if not re.fullmatch(words.get("only", ".*"), family):
            continue
        try:
            for sequence in (False, True):
                how = "own tokens" if sequence else "all tokens"
                degrees = ParallelSettings(tensor=tensor, sequence=sequence)
                told[f"{family}, {how}"] = apart(family, ranks, degrees)
        except UsageError as error:  # every process says the same
            told[f"{family} is refused: {error.message}"] = 0.0
    if ranks.rank == 0:
        print(json.dumps(told))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
