"""Does a translation get worse as the sentence gets longer, without and with attention?

The task is to write sentences backwards. RNNenc reads a sentence into one vector and gets worse with every word of it,
within the lengths that it was trained on already; RNNsearch of equal size looks back and stays level there. Beyond them
it gets worse too, though less. Bahdanau et al. 2015, figure 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from orrery.figures import line_chart
from orrery.labs.fit import build, fit, parameters
from orrery.labs.lab import Numbers
from orrery.labs.pairs import Backwards, accuracy, translator
from orrery.objectives.seq2seq import TeacherForced

TESTED, RATE = 256, 0.01
WIDTHS = {"rnnenc": 39, "rnnsearch": 32}
NAMES = {"rnnenc": "RNNenc", "rnnsearch": "RNNsearch"}
KNOWN, LEVEL, FALL, BETTER = 0.9, 0.05, 0.15, 0.2
TASK, STEPS, LENGTHS = Backwards(16, 64, 2, 8), 500, (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
QUICK_TASK, QUICK_STEPS, QUICK_LENGTHS = Backwards(12, 64, 2, 6), 300, (2, 4, 6, 7, 9, 12)


def run(seed: int, quick: bool = False) -> Numbers:
    """Train both and return the part of the words that they write in their places, by length."""
    task, steps, lengths = (QUICK_TASK, QUICK_STEPS, QUICK_LENGTHS) if quick else (TASK, STEPS, LENGTHS)
    found, sizes = {}, {}
    for family, width in WIDTHS.items():
        model = build(family, seed, translator(family, task.vocabulary, width))
        fit(model, TeacherForced(), task, steps, RATE, seed)
        test, rng = replace(task, rows=TESTED), torch.Generator().manual_seed(seed + 1000)
        found[family] = {str(length): accuracy(model, test.of_length(length, rng)) for length in lengths}
        sizes[family] = parameters(model)
    return {"accuracy": found, "parameters": sizes, "longest trained": task.longest, "beyond": beyond(task)}


def beyond(task: Backwards) -> int:
    """Return a length beyond the longest of the training, by at most a quarter."""
    return task.longest * 5 // 4


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold what each loses within the lengths of the training, and who is better beyond them."""
    enc, search = numbers["accuracy"]["rnnenc"], numbers["accuracy"]["rnnsearch"]
    shortest, longest, far = min(enc, key=int), str(numbers["longest trained"]), str(numbers["beyond"])
    return {
        f"RNNenc writes {KNOWN:.0%} right at {shortest} words": enc[shortest] - KNOWN,
        f"from {shortest} to {longest} words, the longest of its training, it loses more than {FALL}": enc[shortest]
        - enc[longest]
        - FALL,
        f"RNNsearch loses less than {LEVEL} there": LEVEL - (search[shortest] - search[longest]),
        f"at {far} words, longer than any of the training, it is better by {BETTER}": search[far] - enc[far] - BETTER,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the mean over the seeds."""
    series = {
        f"{NAMES[family]}, {runs[0]['parameters'][family]:,} parameters": [
            (int(length), sum(numbers["accuracy"][family][length] for numbers in runs) / len(runs)) for length in one
        ]
        for family, one in runs[0]["accuracy"].items()
    }
    title = f"Accuracy by length; trained on sentences of 2 to {runs[0]['longest trained']} words"
    return line_chart(series, title=title, x_label="words of the source", y_label="part of the words right")
