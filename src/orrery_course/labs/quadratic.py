"""How do the operations of attention and of a recurrence grow with the length of the text?

Attention compares all with all: four times as many for twice the words; a recurrence's are twice as many, and so are
those of gated linear attention, whose memory has one size. They are counted while the layers run, and exponents fitted.
Where the words are as many as the channels attention and a recurrence cost the same.
Times depend on the machine and are only drawn.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from orrery.nn.attention.kernels import eager
from orrery.reports.figures import Number, line_chart
from orrery.reports.stack import stacked
from orrery.studies.fitting import build
from orrery_course.labs._curves import equal_at, exponent, mean
from orrery_course.labs._lab import Numbers
from orrery_course.labs._operations import attend, counted, operations, recur, remember, words

WIDTH, REPEATS = 64, 5
LENGTHS, QUICK_LENGTHS = (16, 32, 64, 128, 256, 512, 1024), (16, 64, 256)
LAYERS = {"attention": attend, "recurrence": recur, "GLA": remember}
VOCABULARY = 32
GLA_HEADS = {"num_heads": 4, "key_head_dim": WIDTH // 8, "value_head_dim": WIDTH // 4}
MODELS = {
    "RNN": ("elman_rnn", {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_layers": 1}),
    "Transformer": ("gpt2", {"vocab_size": VOCABULARY, "n_embd": WIDTH, "n_layer": 1, "n_head": 4}),
    "GLA": ("gla", {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": 1, **GLA_HEADS}),
}
REACH = {"RNN": "max_position_embeddings", "Transformer": "n_positions", "GLA": "max_position_embeddings"}
NEAR = 0.02
Curves = dict[str, Sequence[tuple[Number, Number]]]


def run(seed: int, quick: bool = False) -> Numbers:
    """Count the operations, the numbers kept for the backward pass and the seconds of each layer by length."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    numbers: Numbers = {"width": WIDTH, "operations": {}, "kept": {}, "milliseconds": {}, "whole models": {}}
    for name, layer in LAYERS.items():
        numbers["operations"][name] = {str(n): operations(layer, n, WIDTH) for n in lengths}
        numbers["kept"][name] = {str(n): kept(name, n) for n in lengths}
        numbers["milliseconds"][name] = {str(n): 1000 * seconds(name, n) for n in lengths}
    for name, (family, config) in MODELS.items():
        model = build(family, seed, {**config, REACH[name]: lengths[-1]}).eval()
        numbers["whole models"][name] = {str(n): counted(partial(logits, model, n)) for n in lengths}
    numbers["exponent"] = {name: exponent(curve) for name, curve in numbers["operations"].items()}
    numbers["exponent of what is kept"] = {name: exponent(curve) for name, curve in numbers["kept"].items()}
    numbers["equal at a length of"] = equal_at(numbers["operations"]["attention"], numbers["operations"]["recurrence"])
    return numbers


def logits(model: torch.nn.Module, length: int) -> Tensor:
    """Run a language model, by its definition, on one row."""
    ids_1L = torch.zeros(1, length, dtype=torch.long)
    logits_BLV: Tensor = model.logits(ids_1L, kernel=eager, scan="step")  # type: ignore[operator]
    return logits_BLV


def kept(layer: str, length: int) -> int:
    """Return how many numbers a layer keeps for the backward pass, each storage once."""
    x_LD, stored = words(length, WIDTH).requires_grad_(), {}

    def keep(value: Tensor) -> Tensor:
        stored[value.untyped_storage().data_ptr()] = value
        return value

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        LAYERS[layer](x_LD)
    return sum(value.untyped_storage().nbytes() // value.element_size() for value in stored.values())


@torch.no_grad()
def seconds(layer: str, length: int) -> float:
    """Return the median time of a forward pass."""
    x_LD, taken = words(length, WIDTH), []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        LAYERS[layer](x_LD)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def last_exponent(curve: Mapping[str, Number]) -> float:
    """Return the exponent between the two greatest lengths, where what grows slowest no longer counts."""
    return exponent({n: curve[n] for n in sorted(curve, key=int)[-2:]})


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold the exponents of what was counted, and where the two cross."""
    layer, cross = numbers["exponent"], numbers["equal at a length of"]
    kept_at_last = {name: last_exponent(curve) for name, curve in numbers["kept"].items()}
    whole = {name: last_exponent(curve) for name, curve in numbers["whole models"].items()}
    return {
        f"the operations of attention grow with the exponent 2, within {NEAR}": NEAR - abs(layer["attention"] - 2),
        f"those of a recurrence with 1, within {NEAR}": NEAR - abs(layer["recurrence"] - 1),
        f"those of GLA with 1, within {NEAR}": NEAR - abs(layer["GLA"] - 1),
        f"attention and a recurrence cost the same at {WIDTH} words, as many as channels, within one": 1
        - abs(cross - WIDTH),
        "what attention keeps for the backward pass grows at last with 1.5 or more": kept_at_last["attention"] - 1.5,
        f"what a recurrence or GLA keeps with 1 at most, within {NEAR}": 1
        + NEAR
        - max(kept_at_last["recurrence"], kept_at_last["GLA"]),
        f"the operations of a whole RNN grow with 1, within {NEAR}": NEAR - abs(whole["RNN"] - 1),
        f"those of a whole GLA with 1, within {NEAR}": NEAR - abs(whole["GLA"] - 1),
        "those of a whole Transformer at last with 1.2 or more": whole["Transformer"] - 1.2,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the counts, which are the same for all seeds, and below them the median times."""
    counts: Curves = {name: scaled(mean(runs, "operations", name), 1e-6) for name in LAYERS}
    times: Curves = {
        name: [(int(n), statistics.median(numbers["milliseconds"][name][n] for numbers in runs)) for n in counted_at]
        for name, counted_at in runs[0]["milliseconds"].items()
    }
    parts = [
        line_chart(series, title=title, x_label="words", y_label=title, log_x=True, log_y=True)
        for title, series in {"million operations": counts, "milliseconds, on this machine": times}.items()
    ]
    return stacked(parts, title=f"One layer of {WIDTH} channels by the length of the text")


def scaled(points: Sequence[tuple[float, float]], factor: float) -> list[tuple[float, float]]:
    """Return the points with y in another unit."""
    return [(x, factor * y) for x, y in points]
