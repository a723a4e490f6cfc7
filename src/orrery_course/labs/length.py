"""Does a translation get worse as the sentence gets longer, without and with attention?

The task is to translate from a language of free word order into one of fixed order. RNNenc reads a sentence into one
vector: it loses words within the lengths of its training and more beyond them. RNNsearch of equal size looks back, and
stays level in sentences half as long again as any that it has seen. Bahdanau et al. 2015, figure 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from orrery.objectives.seq2seq import SequenceToSequence
from orrery.reports.figures import line_chart
from orrery.studies.fitting import build, fit, parameters
from orrery_course.labs._lab import Numbers
from orrery_course.labs._pairs import FreeOrder, accuracy, translator

TESTED, RATE, DROPOUT = 256, 0.01, 0.1
WIDTHS = {"rnnenc": 39, "rnnsearch": 32}
NAMES = {"rnnenc": "RNNenc", "rnnsearch": "RNNsearch"}
KNOWN, LEVEL, FALL = 0.9, 0.05, 0.1
TASK, STEPS, LENGTHS = FreeOrder(80, 64, 2, 12, parts=20), 2400, (2, 4, 6, 8, 10, 12, 14, 16, 18)
QUICK_TASK, QUICK_STEPS, QUICK_LENGTHS = FreeOrder(64, 64, 2, 10, parts=16), 1000, (2, 4, 6, 8, 10, 12)


def run(seed: int, quick: bool = False) -> Numbers:
    """Train both and return the part of the words that they write in their places, by length."""
    task, steps, lengths = (QUICK_TASK, QUICK_STEPS, QUICK_LENGTHS) if quick else (TASK, STEPS, LENGTHS)
    accuracies, sizes = {}, {}
    for family, width in WIDTHS.items():
        model = build(family, seed, translator(family, task.vocabulary, width, dropout=DROPOUT))
        fit(model, SequenceToSequence(), task, steps, RATE, seed)
        test, rng = replace(task, rows=TESTED), torch.Generator().manual_seed(seed + 1000)
        accuracies[family] = {str(length): accuracy(model, test.of_length(length, rng)) for length in lengths}
        sizes[family] = parameters(model)
    return {"accuracy": accuracies, "parameters": sizes, "longest trained": task.longest}


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold what each loses within the lengths of the training and beyond them."""
    enc, search = numbers["accuracy"]["rnnenc"], numbers["accuracy"]["rnnsearch"]
    shortest, longest, beyond = min(enc, key=int), str(numbers["longest trained"]), max(enc, key=int)
    return {
        f"RNNenc writes {KNOWN:.0%} right at {shortest} words": enc[shortest] - KNOWN,
        f"from {shortest} to {longest} words, the longest of its training, it loses more than {FALL}": enc[shortest]
        - enc[longest]
        - FALL,
        f"from {longest} to {beyond} words it loses more than {FALL} again": enc[longest] - enc[beyond] - FALL,
        f"RNNsearch writes {KNOWN:.0%} right at {shortest} words": search[shortest] - KNOWN,
        f"from {shortest} to {beyond} words it loses less than {LEVEL}": LEVEL - (search[shortest] - search[beyond]),
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
