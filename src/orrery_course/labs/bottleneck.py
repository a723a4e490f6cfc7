"""How many operations must wait for each other as the text gets longer?

A recurrence takes one word after the other, so the longest chain of operations grows with the text; a Transformer's
chain is its layers (Vaswani et al. 2017, table 1). The chain is counted and held; the time depends on the machine and
is only drawn.
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from orrery.nn.attention.kernels import eager
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import line_chart
from orrery.studies.fitting import build
from orrery_course.labs._lab import Numbers

VOCABULARY, WIDTH, ROWS = 32, 64, 8
LENGTHS, REPEATS = (16, 32, 64, 128, 256), 7
QUICK_LENGTHS, QUICK_REPEATS = (8, 16, 32), 1
RECURRENT = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_layers": 2, "max_position_embeddings": LENGTHS[-1]}
TRANSFORMER = {
    "vocab_size": VOCABULARY, "n_embd": WIDTH, "n_layer": 2, "n_head": 4, "n_positions": LENGTHS[-1],
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip
MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "RNN": ("elman_rnn", RECURRENT),
    "LSTM": ("lstm", RECURRENT),
    "Transformer": ("gpt2", TRANSFORMER),
}


def run(seed: int, quick: bool = False) -> Numbers:
    """Return the longest chain and the seconds of a training step of each model by length."""
    lengths, repeats = (QUICK_LENGTHS, QUICK_REPEATS) if quick else (LENGTHS, REPEATS)
    chains: dict[str, dict[str, int]] = {}
    seconds: dict[str, dict[str, float]] = {}
    for name, (family, config) in MODELS.items():
        model = build(family, seed, config)
        for length in lengths:
            ids_BL = torch.randint(VOCABULARY, (ROWS, length), generator=torch.Generator().manual_seed(seed))
            # The definition, word by word: torch's engine is one node of the graph, however many steps it hides.
            chains.setdefault(name, {})[str(length)] = longest_chain(
                model.logits(ids_BL[:1], kernel=eager, scan="step")
            )
            seconds.setdefault(name, {})[str(length)] = step_time(model, ids_BL, repeats)
    return {"chain": chains, "seconds": seconds}


def longest_chain(output: Tensor) -> int:
    """Return the operations on the longest path through the autograd graph: none can start before the one below."""
    depths: dict[Any, int] = {}
    stack: list[tuple[Any, Iterator[Any]]] = [(output.grad_fn, _before(output.grad_fn))]
    while stack:  # a recursion would be as deep as the chain is long
        node, waiting = stack[-1]
        below = next((other for other in waiting if other not in depths), None)
        if below is None:
            depths[node] = 1 + max((depths[other] for other in _before(node)), default=0)
            stack.pop()
        else:
            stack.append((below, _before(below)))
    return depths[output.grad_fn]


def _before(node: Any) -> Iterator[Any]:
    return (other for other, _ in node.next_functions if other is not None)


def step_time(model: Any, ids_BL: Tensor, repeats: int) -> float:
    """Return the median seconds of a forward and a backward pass by the fastest kernels."""
    taken = []
    for _ in range(repeats + 1):
        begun = time.perf_counter()
        term = CausalLanguageModel().loss(model, {"ids": ids_BL, "targets": ids_BL})["next_token"]
        (term.sum / term.count).backward()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[1:])


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold the chains: of a recurrence one more for every word at least, of the Transformer none."""
    chains = {name: {int(length): chain for length, chain in one.items()} for name, one in numbers["chain"].items()}
    growth = {name: (one[max(one)] - one[min(one)]) / (max(one) - min(one)) for name, one in chains.items()}
    return {
        "the RNN's chain grows by an operation a word or more": growth["RNN"] - 1,
        "the LSTM's chain grows by an operation a word or more": growth["LSTM"] - 1,
        "the Transformer's chain is the same for every length": 0.0 - abs(growth["Transformer"]),
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the chains by length, those of the first seed: they are the same for all."""
    series = {
        f"{name}: operations": [(int(length), chain) for length, chain in one.items()]
        for name, one in runs[0]["chain"].items()
    }
    series |= {
        f"{name}: milliseconds": [
            (int(length), 1000 * statistics.median(numbers["seconds"][name][length] for numbers in runs))
            for length in one
        ]
        for name, one in runs[0]["seconds"].items()
    }
    title = "Operations that wait for each other, and the time of a training step"
    label = "operations; milliseconds"
    return line_chart(series, title=title, x_label="length in words", y_label=label, log_x=True, log_y=True)
