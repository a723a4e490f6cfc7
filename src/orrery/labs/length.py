"""Does a translation get worse as the sentence gets longer, without and with attention?

From a language whose words stand in any order, their endings saying which part of the sentence they are, into one whose
order is fixed. RNNenc reads all of it into one vector, RNNsearch of equal size looks back. Bahdanau et al. 2015,
figure 2. Much longer than any sentence of the training RNNsearch gets worse too; the figure shows it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from orrery.figures import line_chart
from orrery.labs.fit import build, fit, parameters
from orrery.labs.lab import Numbers
from orrery.labs.pairs import END, FIRST, START, accuracy, translator
from orrery.objectives.protocols import Batch
from orrery.objectives.seq2seq import TeacherForced

ROWS, TESTED, RATE = 64, 256, 0.005
WIDTHS = {"rnnenc": 56, "rnnsearch": 48}
NAMES = {"rnnenc": "RNNenc", "rnnsearch": "RNNsearch"}
LEVEL, FALL = 0.1, 0.3


@dataclass(frozen=True)
class FreeOrder:
    """Pairs of a sentence whose words stand in any order and the sentence in order, each word of another role."""

    roles: int
    words: int
    longest: int
    rows: int = ROWS

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return FIRST + self.roles * self.words

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch of sentences of one length, from 2 to the longest."""
        return self.of_length(int(torch.randint(2, self.longest + 1, (), generator=rng)), rng)

    def of_length(self, length: int, rng: torch.Generator) -> Batch:
        """Draw a batch of sentences of this length."""
        role_BS = torch.rand(self.rows, self.roles, generator=rng).argsort(1)[:, :length]
        source_BS = FIRST + role_BS * self.words + torch.randint(self.words, role_BS.shape, generator=rng)
        target_BL = source_BS.sort(1).values
        start_B1, end_B1 = (torch.full((self.rows, 1), token) for token in (START, END))
        return {
            "source": source_BS,
            "source_real": torch.ones_like(source_BS, dtype=torch.bool),
            "ids": torch.cat([start_B1, target_BL], 1),
            "targets": torch.cat([target_BL, end_B1], 1),
        }


TASK, STEPS, LENGTHS = FreeOrder(roles=16, words=2, longest=8), 1200, (2, 4, 6, 8, 10, 12, 14, 16)
QUICK_TASK, QUICK_STEPS, QUICK_LENGTHS = FreeOrder(roles=8, words=2, longest=4), 400, (2, 4, 5, 6)


def run(seed: int, quick: bool = False) -> Numbers:
    """Train both and return the part of the words that they write in their places, by length."""
    task, steps, lengths = (QUICK_TASK, QUICK_STEPS, QUICK_LENGTHS) if quick else (TASK, STEPS, LENGTHS)
    found, sizes = {}, {}
    for family, width in WIDTHS.items():
        model = build(family, seed, translator(family, task.vocabulary, width))
        fit(model, TeacherForced(), task, steps, RATE, seed)
        test, rng = FreeOrder(task.roles, task.words, task.longest, TESTED), torch.Generator().manual_seed(seed + 1000)
        found[family] = {str(length): accuracy(model, test.of_length(length, rng)) for length in lengths}
        sizes[family] = parameters(model)
    return {"accuracy": found, "parameters": sizes, "longest trained": task.longest, "beyond": beyond(task)}


def beyond(task: FreeOrder) -> int:
    """Return a length a quarter beyond the longest of the training."""
    return task.longest * 5 // 4


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold what each loses from the shortest sentences to some that are longer than any of the training."""
    found, longest, far = numbers["accuracy"], str(numbers["longest trained"]), str(numbers["beyond"])
    shortest = min(found["rnnsearch"], key=int)
    loss = {family: one[shortest] - one[far] for family, one in found.items()}
    return {
        f"RNNsearch writes {1 - LEVEL:.0%} of the words of the longest sentences it was trained on": found["rnnsearch"][
            longest
        ]
        - (1 - LEVEL),
        f"to sentences a quarter longer it loses less than {LEVEL}": LEVEL - loss["rnnsearch"],
        f"RNNenc loses more than {FALL}": loss["rnnenc"] - FALL,
        f"RNNenc writes {1 - LEVEL:.0%} of the words of the shortest": found["rnnenc"][shortest] - (1 - LEVEL),
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
