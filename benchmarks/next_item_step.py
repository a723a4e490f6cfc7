"""A step of SASRec beside RecBole's: 2 layers, 64 wide, 2,000 items, histories of 40, batch 128, full softmax.

    pip install --target ../recbole --no-deps recbole colorlog colorama thop plotly texttable pandas
    .venv/bin/python benchmarks/next_item_step.py --recbole ../recbole --output benchmarks/next_item_step.json

Both take one step in turn on the same rows, so that a change of the machine's speed meets both; a ratio is the median
over rounds of the ratio within a round, in seconds of the processor, since others may use it too. RecBole learns the
last item of a row alone and makes a row of every beginning of a history; our model learns the item behind each place,
so that a row teaches it forty times as much. ``every place`` is the step that our recipes take; ``the last place``
is our model with RecBole's loss, the logits of one place a row, which no recipe takes.
"""

import argparse
import statistics
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _record import Record, parsed, parser
from torch import Tensor, nn

from orrery.families import load_family
from orrery.kernels.processor import this_processor
from orrery.models.model import LANGUAGE_MODEL
from orrery.nn.cross_entropy import IGNORED
from orrery.nn.joined_linear import join_layers
from orrery.objectives._masking import fill_in
from orrery.objectives.causal import CausalLanguageModel
from orrery.runs.building import training_kernel
from orrery.training.distributed import Alone
from orrery.training.precision import choose_precision
from orrery.training.step import accumulate

ITEMS, WIDTH, LAYERS, HEADS, LENGTH, DROPOUT = 2_000, 64, 2, 2, 40, 0.2
RATE = 3e-3
Step = Callable[[Tensor, Tensor], float]


def ours(*, every: bool) -> Step:
    """The step of our training loop in float32, or that of our model with the last place as the only target."""
    family = load_family("gpt2")
    config = {
        "vocab_size": ITEMS, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": LENGTH,
        "resid_pdrop": DROPOUT, "embd_pdrop": DROPOUT, "attn_pdrop": 0.0,
    }  # fmt: skip
    spec = family.spec(config)
    model = spec.build(0).train()
    model.kernel = training_kernel(spec, "cpu")
    join_layers(model, "cpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    precision = choose_precision("float32", "cpu", this_processor(), torch.get_num_threads())
    objective, calls = CausalLanguageModel(), [0]

    def step(ids: Tensor, targets: Tensor) -> float:
        calls[0] += 1
        optimizer.zero_grad(set_to_none=True)
        batch = {"ids": ids, "targets": targets}
        if every:
            found = accumulate(
                model, objective, batch, micro_batch=None, seed=(1, calls[0]), ranks=Alone(), precision=precision
            ).loss
        else:
            wanted = targets.where(torch.arange(targets.shape[1]) == targets.shape[1] - 1, IGNORED)
            (total,) = model(batch, {LANGUAGE_MODEL: lambda head, x, real: fill_in(head, x, wanted)}).values()
            loss = total / len(ids)
            loss.backward()
            found = float(loss.detach())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return found

    return step


def recbole(folder: Path) -> Step:
    """The model of RecBole with its loss over all items, and the optimizer that its trainer makes, Adam."""
    sys.path.append(str(folder))
    writer = types.ModuleType("torch.utils.tensorboard")  # its trainer imports one, its model needs none
    vars(writer)["SummaryWriter"] = object
    sys.modules.setdefault("torch.utils.tensorboard", writer)
    from recbole.model.sequential_recommender.sasrec import SASRec

    config: dict[str, Any] = {
        "USER_ID_FIELD": "user", "ITEM_ID_FIELD": "item", "LIST_SUFFIX": "_list", "ITEM_LIST_LENGTH_FIELD": "length",
        "NEG_PREFIX": "neg_", "MAX_ITEM_LIST_LENGTH": LENGTH, "device": "cpu", "n_layers": LAYERS, "n_heads": HEADS,
        "hidden_size": WIDTH, "inner_size": 4 * WIDTH, "hidden_dropout_prob": DROPOUT, "attn_dropout_prob": 0.0,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "initializer_range": 0.02, "loss_type": "CE",
    }  # fmt: skip
    model = SASRec(config, types.SimpleNamespace(num=lambda field: ITEMS)).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)

    def step(ids: Tensor, targets: Tensor) -> float:
        optimizer.zero_grad()
        lengths = torch.full((len(ids),), LENGTH)
        loss = model.calculate_loss({"item_list": ids, "length": lengths, "item": targets[:, -1]})
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return float(loss.detach())

    return step


def compared(steps: dict[str, Step], rounds: int, rows: int) -> dict[str, list[float]]:
    """Return the processor seconds of each step, one of each in every round; the first two rounds warm up."""
    rng, times = torch.Generator().manual_seed(1), {name: list[float]() for name in steps}
    for number in range(rounds + 2):
        whole = torch.randint(1, ITEMS, (rows, LENGTH + 1), generator=rng)
        for name, step in steps.items():
            began = time.process_time()
            step(whole[:, :-1].contiguous(), whole[:, 1:].contiguous())
            if number > 1:
                times[name].append(time.process_time() - began)
    return times


def found_in(times: dict[str, list[float]], options: argparse.Namespace) -> dict[str, Any]:
    """Return milliseconds, and how many times as fast ours is."""
    found: dict[str, Any] = {"rounds": options.rounds, "rows": options.rows, "length": LENGTH, "items": ITEMS}
    found["milliseconds"] = {name: 1000 * statistics.median(each) for name, each in times.items()}
    found["ratios"] = {}
    for name in times:
        if name != "recbole" and "recbole" in times:
            ratios = sorted(b / a for a, b in zip(times[name], times["recbole"], strict=True))
            found["ratios"][name] = {"ratio": statistics.median(ratios), "lowest": ratios[0], "highest": ratios[-1]}
    return found


def main() -> None:
    """Measure, print, and keep."""
    made = parser(__doc__)
    made.add_argument("--recbole", type=Path, help="a folder that it is installed into")
    made.add_argument("--rounds", type=int, default=40)
    made.add_argument("--rows", type=int, default=128)
    options = parsed(made, {"rounds": 2, "rows": 4}, needs=["recbole"])
    record = Record(options, elsewhere={} if options.recbole is None else {"recbole": version(options.recbole)})
    steps = {"every place": ours(every=True), "the last place": ours(every=False)}
    if options.recbole is not None:
        steps["recbole"] = recbole(options.recbole)
    found = found_in(compared(steps, options.rounds, options.rows), options)
    for name, spent in found["milliseconds"].items():
        told = found["ratios"].get(name)
        beside = "" if told is None else f"   {told['ratio']:.2f} times as fast as RecBole"
        print(f"{name:18}{spent:8.1f} ms{beside}")
    record.write(found)


def version(folder: Path) -> str:
    """Return the version of RecBole in a folder."""
    return next(folder.glob("recbole-*.dist-info")).name.removeprefix("recbole-").removesuffix(".dist-info")


if __name__ == "__main__":
    main()
