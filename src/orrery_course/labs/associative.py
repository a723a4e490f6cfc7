"""How many pairs can a model recall at once, of which it is asked for each?

Multi-query associative recall (Arora et al. 2024, "Zoology", section 4): keys and their values come in pairs, then each
key again, in any order, to which the value is to be said. All have about as many parameters and as many steps to learn.
Attention, a window and a short convolution see at once which key stood before a value; a memory without them must learn
to. So Gated DeltaNet is measured without its convolution as well: the rule of a memory alone does not decide here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from orrery.models.inputs import Batch
from orrery.models.model import Model
from orrery.nn.cross_entropy import IGNORED
from orrery.nn.initialisation import Draw, SelfInitialised
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import bar_chart
from orrery.studies.fitting import build, fit, parameters, warmed_up
from orrery_course.labs._curves import mean
from orrery_course.labs._lab import Numbers

KEYS, VALUES, ROWS, RATE, TESTED = 16, 16, 32, 0.01, 256
PAIRS, STEPS, QUICK_STEPS = (2, 4, 8), 500, 220
WIDTH, CONTEXT, DEPTH = 32, 3 * max(PAIRS), 2
SHARED = {"vocab_size": KEYS + VALUES, "num_hidden_layers": DEPTH, "max_position_embeddings": CONTEXT}
BLOCK = {**SHARED, "hidden_size": WIDTH, "intermediate_size": 64}
LINEAR = {**BLOCK, "num_heads": 1, "key_head_dim": 32, "value_head_dim": 32, "chunk_size": 32}
ATTENTION, BASED, DELTA, GLA = "attention (Llama)", "Based", "Gated DeltaNet", "GLA"
ALONE = "Gated DeltaNet, no conv."
MAMBA, RETNET, LINEAR_TRANSFORMER, LSTM = "Mamba", "RetNet", "linear Transformer", "LSTM"
MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    ATTENTION: ("llama", {**BLOCK, "num_attention_heads": 2, "intermediate_size": 80}),
    BASED: ("based", {
        **BLOCK, "num_hidden_layers": 3, "intermediate_size": 48, "num_heads": 2, "feature_dim": 8,
        "sliding_window": 8, "chunk_size": 32,
    }),
    DELTA: ("gated_deltanet", LINEAR),
    ALONE: ("gated_deltanet", {**LINEAR, "conv_size": 1}),
    GLA: ("gla", {**LINEAR, "gate_low_rank_dim": 8}),
    MAMBA: ("mamba", {**SHARED, "hidden_size": 36, "state_size": 16, "tie_word_embeddings": False}),
    RETNET: ("retnet", LINEAR),
    LINEAR_TRANSFORMER: ("linear_transformer", {**LINEAR, "intermediate_size": 80}),
    LSTM: ("lstm", {
        "vocab_size": KEYS + VALUES, "num_layers": DEPTH, "hidden_size": 38, "max_position_embeddings": CONTEXT,
    }),
}  # fmt: skip
QUICK = (ATTENTION, LSTM)
KNOWN = {ATTENTION: 0.95, BASED: 0.7, DELTA: 0.8}
FORGETFUL, LOST = (RETNET, GLA, LSTM, ALONE), 0.5


@dataclass(frozen=True)
class Associations:
    """Different keys, each followed by a value at random; then the same keys in another order, to be answered."""

    pairs: Sequence[int]
    """A batch has as many pairs a row as one of these says, drawn at random."""
    rows: int = ROWS

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch."""
        pairs = self.pairs[int(torch.randint(len(self.pairs), (), generator=rng))]
        keys_BN = torch.rand(self.rows, KEYS, generator=rng).argsort(1)[:, :pairs]
        values_BN = KEYS + torch.randint(VALUES, (self.rows, pairs), generator=rng)
        order_BN = torch.rand(self.rows, pairs, generator=rng).argsort(1)
        told_BL = torch.stack([keys_BN, values_BN], 2).flatten(1)
        nothing_BL = torch.full_like(told_BL, IGNORED)
        return {
            "ids": torch.cat([told_BL, keys_BN.gather(1, order_BN)], 1),
            "targets": torch.cat([nothing_BL, values_BN.gather(1, order_BN)], 1),
        }


def run(seed: int, quick: bool = False) -> Numbers:
    """Train each model on all numbers of pairs and return the part of new values that it recalls, by that number."""
    names, steps = (QUICK, QUICK_STEPS) if quick else (tuple(MODELS), STEPS)
    rng = torch.Generator().manual_seed(seed + 1000)
    tests = {str(pairs): Associations((pairs,), TESTED)(rng) for pairs in PAIRS}
    accuracies, sizes = {}, {}
    for name in names:
        model = network(name, seed)
        fit(model, CausalLanguageModel(), Associations(PAIRS), steps, RATE, seed, schedule=warmed_up(0.1))
        accuracies[name] = {pairs: accuracy(model, batch) for pairs, batch in tests.items()}
        sizes[name] = parameters(model)
    return {
        "accuracy": accuracies,
        "parameters": sizes,
        "guess": {pairs: guess(batch) for pairs, batch in tests.items()},
    }


@torch.no_grad()
def network(name: str, seed: int) -> Any:
    """Return a model with torch's initial weights, but for parts that draw their own, such as paces."""
    family, config = MODELS[name]
    model = build(family, seed, config)
    draw = Draw(torch.Generator().manual_seed(seed), WIDTH**-0.5, DEPTH, tables={})
    for part in model.modules():
        if isinstance(part, SelfInitialised):
            part.initialise(draw)
    return model


@torch.no_grad()
def accuracy(model: Model, batch: Batch) -> float:
    """Return the part of the values that the model recalls."""
    asked_BL: Tensor = batch["targets"] != IGNORED
    return float((model.logits(batch["ids"]).argmax(-1) == batch["targets"])[asked_BL].double().mean())


def guess(batch: Batch) -> float:
    """Return how often the value that was told most often in its row is right: all that can be had without its key."""
    pairs = batch["ids"].shape[1] // 3
    values_BN = batch["ids"][:, 1 : 2 * pairs : 2]
    return float((values_BN[:, :, None] == values_BN[:, None]).sum(2).amax(1).double().mean() / pairs)


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold what each recalls of the most pairs."""
    accuracies = numbers["accuracy"]
    most = max(accuracies[ATTENTION], key=int)
    all_of = {name: one[most] for name, one in accuracies.items()}
    claims = {
        f"{name} recalls {part:.0%} of {most} pairs": all_of[name] - part
        for name, part in KNOWN.items()
        if name in all_of
    }
    return claims | {
        f"{name} recalls less than {LOST:.0%}": LOST - all_of[name] for name in FORGETFUL if name in all_of
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw what is recalled of the most pairs, the mean over the seeds; as curves many would lie on each other."""
    most = max(runs[0]["guess"], key=int)
    bars = {name: dict(mean(runs, "accuracy", name))[float(most)] for name in runs[0]["accuracy"]}
    bars["the commonest value told"] = dict(mean(runs, "guess"))[float(most)]
    return bar_chart(
        bars, title=f"Values recalled of {most} pairs, at equal parameters and steps", x_label="part recalled"
    )
