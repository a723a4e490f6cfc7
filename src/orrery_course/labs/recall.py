"""Who remembers the word of k steps ago?

Whoever carries it through k states must hold all the words in between as well; a Transformer looks it up. All have
about as many parameters, and as many steps to learn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from orrery.models.inputs import Batch
from orrery.models.model import Model
from orrery.nn.cross_entropy import IGNORED
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import line_chart
from orrery.studies.fitting import build, fit, parameters
from orrery_course.labs._lab import Numbers

VOCABULARY, LENGTH, ROWS, RATE = 8, 32, 32, 0.01
DISTANCES, STEPS = (1, 2, 4, 8, 16), 400
QUICK_DISTANCES, QUICK_STEPS = (1, 16), 250
SHARED = {"vocab_size": VOCABULARY, "num_layers": 1, "max_position_embeddings": LENGTH}
TRANSFORMER = {
    "vocab_size": VOCABULARY, "n_embd": 26, "n_layer": 1, "n_head": 2, "n_positions": LENGTH,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip
MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "RNN": ("elman_rnn", {**SHARED, "hidden_size": 64}),
    "LSTM": ("lstm", {**SHARED, "hidden_size": 33}),
    "GRU": ("gru", {**SHARED, "hidden_size": 38}),
    "Transformer": ("gpt2", TRANSFORMER),
}
KNOWN, LOST = 0.9, 0.6


@dataclass(frozen=True)
class Delayed:
    """Random words; at each the one of ``distance`` steps ago is to be said."""

    distance: int
    vocabulary: int = VOCABULARY
    length: int = LENGTH
    rows: int = ROWS

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch."""
        ids_BL = torch.randint(self.vocabulary, (self.rows, self.length), generator=rng)
        targets_BL = torch.full_like(ids_BL, IGNORED)
        targets_BL[:, self.distance :] = ids_BL[:, : self.length - self.distance]
        return {"ids": ids_BL, "targets": targets_BL}


def run(seed: int, quick: bool = False) -> Numbers:
    """Train each model at each distance and return the accuracy on new words."""
    distances, steps = (QUICK_DISTANCES, QUICK_STEPS) if quick else (DISTANCES, STEPS)
    accuracies: dict[str, dict[str, float]] = {}
    sizes = {}
    for name, (family, config) in MODELS.items():
        for distance in distances:
            model = build(family, seed, config)
            fit(model, CausalLanguageModel(), Delayed(distance), steps, RATE, seed)
            accuracies.setdefault(name, {})[str(distance)] = accuracy(model, Delayed(distance), seed + 1000)
            sizes[name] = parameters(model)
    return {"accuracy": accuracies, "parameters": sizes}


@torch.no_grad()
def accuracy(model: Model, task: Delayed, seed: int) -> float:
    """Return the part of the words that the model recalls."""
    batch = task(torch.Generator().manual_seed(seed))
    asked_BL = batch["targets"] != IGNORED
    return float((model.logits(batch["ids"]).argmax(-1) == batch["targets"])[asked_BL].float().mean())


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold the ends of the curves: at the least distance all recall, at the greatest the Transformer alone."""
    accuracies = numbers["accuracy"]
    near, far = min(accuracies["RNN"], key=int), max(accuracies["RNN"], key=int)
    recurrent = [name for name in accuracies if name != "Transformer"]
    return {
        f"at distance {near} every model recalls {KNOWN:.0%}": min(one[near] for one in accuracies.values()) - KNOWN,
        f"at distance {far} the Transformer recalls {KNOWN:.0%}": accuracies["Transformer"][far] - KNOWN,
        f"at distance {far} no recurrent model recalls {LOST:.0%}": LOST
        - max(accuracies[name][far] for name in recurrent),
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the mean over the seeds."""
    series = {
        name: [
            (int(k), sum(numbers["accuracy"][name][k] for numbers in runs) / len(runs))
            for k in runs[0]["accuracy"][name]
        ]
        for name in runs[0]["accuracy"]
    }
    title = "Recall of the word of k steps ago, at equal parameters and steps"
    return line_chart(series, title=title, x_label="k (steps back)", y_label="part recalled", log_x=True)
