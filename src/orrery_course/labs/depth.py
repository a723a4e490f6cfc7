"""Does a deeper network learn more, with residual connections and without?

He et al. 2016, figure 1: deep plain networks are worse than shallow ones on the very rows that they learn from, so it
is no overfitting but training itself that fails. Here the layers of a Transformer, pre-LN, with and without ``x +``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from orrery.families import load_family
from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED
from orrery.nn.residual import NoSkip
from orrery.nn.spec import ModuleSpec
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import line_chart
from orrery.studies.fitting import build_spec, fit
from orrery_course.labs._curves import mean
from orrery_course.labs._lab import Numbers
from orrery_course.labs.recall import Delayed

VOCABULARY, WIDTH, LENGTH, ROWS, BACK, RATE = 8, 24, 16, 32, 2, 3e-3
CONFIG = {
    "vocab_size": VOCABULARY, "n_embd": WIDTH, "n_head": 4, "n_positions": LENGTH,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": False,
}  # fmt: skip
DEPTHS, STEPS, SET = (1, 2, 4, 8, 16), 200, 1024
QUICK_DEPTHS, QUICK_STEPS = (1, 8), 150
PLAIN, RESIDUAL = "plain", "residual"
KNOWN, LOST = 0.9, 0.5


@dataclass(frozen=True)
class Fixed:
    """Draws batches from one fixed set of rows, so that what was learned from and what is new can be told apart."""

    rows: Batch

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch."""
        chosen = torch.randint(len(self.rows["ids"]), (ROWS,), generator=rng)
        return {name: value[chosen] for name, value in self.rows.items()}


def run(seed: int, quick: bool = False) -> Numbers:
    """Train both at every depth and return the error on the rows of the training and on new ones."""
    depths, steps = (QUICK_DEPTHS, QUICK_STEPS) if quick else (DEPTHS, STEPS)
    task = Delayed(BACK, VOCABULARY, LENGTH, SET)
    seen, new = (task(torch.Generator().manual_seed(seed + other)) for other in (0, 1000))
    by_rows: dict[str, dict[str, dict[str, float]]] = {}
    for name, skip in skips().items():
        for depth in depths:
            model = network(depth, skip, seed)
            fit(model, CausalLanguageModel(), Fixed(seen), steps, RATE, seed)
            errors = {"train": error(model, seen), "test": error(model, new)}
            for rows, value in errors.items():
                by_rows.setdefault(rows, {}).setdefault(name, {})[str(depth)] = value
    return by_rows


def skips() -> dict[str, ModuleSpec | None]:
    """Return what stands beside a layer: nothing, or the layer's input."""
    return {PLAIN: NoSkip.Spec(), RESIDUAL: None}


def network(depth: int, skip: ModuleSpec | None, seed: int) -> Any:
    """Return a GPT-2 of this depth whose layers are added to ``skip`` of their input, by default the input itself."""
    spec: Any = load_family("gpt2").spec({**CONFIG, "n_layer": depth})
    fields = {} if skip is None else {"skip": skip}
    blocks = tuple(
        replace(block, residuals={name: replace(one, **fields) for name, one in block.residuals.items()})
        for block in spec.stack.blocks
    )
    return build_spec(replace(spec, stack=replace(spec.stack, blocks=blocks)), seed)


@torch.no_grad()
def error(model: Any, batch: Batch) -> float:
    """Return the part of the words that the model says wrongly."""
    asked_BL = batch["targets"] != IGNORED
    return float((model.logits(batch["ids"]).argmax(-1) != batch["targets"])[asked_BL].double().mean())


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold that depth harms the plain network on both sets of rows, and the residual one on neither."""
    train, test = numbers["train"], numbers["test"]
    deep = max(train[PLAIN], key=int)
    best = min(train[PLAIN].values())
    return {
        f"some plain network gets {KNOWN:.0%} of its own rows right": 1 - KNOWN - best,
        f"that of {deep} layers gets less than {LOST:.0%} of them right": train[PLAIN][deep] - (1 - LOST),
        "and of new ones": test[PLAIN][deep] - (1 - LOST),
        f"the residual network of {deep} layers gets {KNOWN:.0%} of its rows right": 1 - KNOWN - train[RESIDUAL][deep],
        "and of new ones, too": 1 - KNOWN - test[RESIDUAL][deep],
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the mean over the seeds."""
    series = {f"{name}, {rows}": mean(runs, rows, name) for name in (PLAIN, RESIDUAL) for rows in ("train", "test")}
    title = "Error by depth, plain and residual, on rows of the training and on new ones"
    return line_chart(series, title=title, x_label="layers", y_label="part that is wrong", log_x=True)
