"""The comparisons with which the course ends, from the numbers of labs: three tables, and what is good for what.

A cell is a text with a number that a lab measured, the least and the greatest over the seeds; or a text that says that
no lab measures it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from orrery.labs._lab import Numbers

Runs = Mapping[str, Sequence[Numbers]]
"""The numbers of each seed, by lab."""


@dataclass(frozen=True)
class Measured:
    """A text with a place ``{}`` for what a lab measured."""

    lab: str
    text: str
    read: Callable[[Numbers], float]
    form: str = ".2f"

    def shown(self, runs: Runs) -> str:
        """Return the text with the numbers of the seeds, and the lab."""
        if self.lab not in runs:
            return f"not run yet ({self.lab})"
        values = [self.read(numbers) for numbers in runs[self.lab]]
        least, greatest = (format(choose(values), self.form) for choose in (min, max))
        return f"{self.text.format(least if least == greatest else f'{least} to {greatest}')} ({self.lab})"


@dataclass(frozen=True)
class Unmeasured:
    """A text for which there is no number."""

    text: str = ""

    def shown(self, runs: Runs) -> str:
        """Return the text, and that no lab measures it."""
        return f"{self.text}: no lab measures this" if self.text else "no lab measures this"


@dataclass(frozen=True)
class Said:
    """A text that follows from the definition, or that the lecture says, and that no number belongs to."""

    text: str

    def shown(self, runs: Runs) -> str:
        """Return the text."""
        return self.text


Cell = Measured | Unmeasured | Said


@dataclass(frozen=True)
class Table:
    """Rows of a feature and its cells."""

    title: str
    heads: Sequence[str]
    cells: Mapping[str, Sequence[Cell]]

    def rows(self, runs: Runs) -> Iterable[Sequence[str]]:
        """Return the rows as texts."""
        return [(feature, *(cell.shown(runs) for cell in cells)) for feature, cells in self.cells.items()]


def tables() -> tuple[Table, ...]:
    """Return the four tables in the order of the lecture."""
    return (recurrent_or_transformer(), two_attentions(), three_architectures(), good_for())


def recurrent_or_transformer() -> Table:
    """Return what is hard for recurrent networks, beside the same of a Transformer."""
    found = "{} of the words of 16 steps ago are found"
    factor = "the gradient is multiplied by {} a step back"
    chain = "{} operations must wait for each other in 256 words"
    return Table(
        "Recurrent networks and Transformers",
        ("", "recurrent networks", "Transformers"),
        {
            "Dependencies over long distances": (
                Measured("recall", f"LSTM: {found}", lambda n: n["accuracy"]["LSTM"][furthest(n["accuracy"]["LSTM"])]),
                Measured("recall", found, lambda n: n["accuracy"]["Transformer"][furthest(n["accuracy"]["LSTM"])]),
            ),
            "Gradients": (
                Measured(
                    "gradients",
                    f"RNN with small weights: {factor}",
                    lambda n: n["factor a step"]["begin"]["RNN, small weights"],
                ),
                Measured("gradients", factor, lambda n: n["factor a step"]["begin"]["Transformer"]),
            ),
            "Gradients that grow": (
                Measured(
                    "gradients",
                    f"RNN with large weights: {factor}",
                    lambda n: n["factor a step"]["begin"]["RNN, large weights"],
                ),
                Measured(
                    "gradients",
                    f"the same network as above: {factor}",
                    lambda n: n["factor a step"]["begin"]["Transformer"],
                ),
            ),
            "Steps of training": (Unmeasured(), Unmeasured()),
            "In parallel": (
                Measured("bottleneck", f"RNN: {chain}", lambda n: longest(n["chain"]["RNN"]), ",.0f"),
                Measured("bottleneck", chain, lambda n: longest(n["chain"]["Transformer"]), ",.0f"),
            ),
            "Operations of a layer: length n": (
                Measured("complexity", "n to the power of {}", lambda n: n["exponent of n"]["recurrence"]),
                Measured("complexity", "n to the power of {}", lambda n: n["exponent of n"]["attention"]),
            ),
            "Operations of a layer: width d": (
                Measured("complexity", "d to the power of {}", lambda n: n["exponent of d"]["recurrence"]),
                Measured("complexity", "d to the power of {}", lambda n: n["exponent of d"]["attention"]),
            ),
            "Cheaper of the two at width 64": (
                Measured("quadratic", "beyond {} words", lambda n: n["equal at a length of"], ".0f"),
                Measured("quadratic", "below {} words", lambda n: n["equal at a length of"], ".0f"),
            ),
        },
    )


def two_attentions() -> Table:
    """Return attention beside a recurrent network, and attention alone."""
    right = "{} of the words of the longest sentences are right"
    return Table(
        "Attention in a recurrent network and in a Transformer",
        ("", "recurrent network with attention", "Transformer"),
        {
            "Score, its parameters": (
                Measured("scores", "additive: {}", lambda n: n["additive (Bahdanau)"]["parameters"], ",.0f"),
                Measured("scores", "product of two vectors: {}", lambda n: n["dot (Luong)"]["parameters"], ",.0f"),
            ),
            "Score, numbers kept for training": (
                Measured("scores", "{} a step", lambda n: n["additive (Bahdanau)"]["kept"], ",.0f"),
                Measured("scores", "{} a step", lambda n: n["dot (Luong)"]["kept"], ",.0f"),
            ),
            "What is aligned": (
                Measured(
                    "alignment",
                    "decoder state with encoder states: {} of the weight lies where it should",
                    lambda n: n["near the anti-diagonal"],
                ),
                Measured(
                    "forming",
                    "queries with keys: the best induction head puts {} where it should",
                    lambda n: list(n["two layers"]["induction"].values())[-1],
                ),
            ),
            "Efficiency": (
                Measured(
                    "bottleneck",
                    "a step after the other: a chain of {} operations",
                    lambda n: longest(n["chain"]["LSTM"]),
                    ",.0f",
                ),
                Measured(
                    "bottleneck",
                    "all at once: a chain of {} operations",
                    lambda n: longest(n["chain"]["Transformer"]),
                    ",.0f",
                ),
            ),
            "Context": (
                Measured("length", right, lambda n: longest(n["accuracy"]["rnnsearch"])),
                Measured("prefix", right, lambda n: longest(n["accuracy"]["encoder-decoder"])),
            ),
            "Words look at words of their own text": (
                Said("no, by its definition"),
                Measured(
                    "induction",
                    "yes: with the circuit of such edges cut {} of the repeated words are right",
                    lambda n: n["right"]["all but the circuit"],
                ),
            ),
        },
    )


def three_architectures() -> Table:
    """Return the three ways of putting a Transformer together."""
    right, cost = "{} of the words of the longest sentences are right", "{} operations a word"
    return Table(
        "Three architectures",
        ("", "encoder-decoder", "encoder", "decoder"),
        {
            "Parameters of reading and writing": (
                Measured("prefix", "different ones, {} in all", lambda n: n["parameters"]["encoder-decoder"], ",.0f"),
                Said("it does not write"),
                Measured("prefix", "the same, {}", lambda n: n["parameters"]["prefix decoder"], ",.0f"),
            ),
            "Cost": (
                Measured("prefix", cost, lambda n: n["operations a word"]["encoder-decoder"], ",.0f"),
                Unmeasured(),
                Measured("prefix", cost, lambda n: n["operations a word"]["prefix decoder"], ",.0f"),
            ),
            "One translation task": (
                Measured("prefix", right, lambda n: longest(n["accuracy"]["encoder-decoder"])),
                Said("it does not write"),
                Measured("prefix", f"with a prefix mask {right}", lambda n: longest(n["accuracy"]["prefix decoder"])),
            ),
            "Words see what follows them": (
                Said("those of the source, by its mask"),
                Measured(
                    "contextual",
                    "yes: two senses of one word have a cosine of {}",
                    lambda n: n["contextual: apple, apple"],
                ),
                Said("no, by its definition"),
            ),
        },
    )


def good_for() -> Table:
    """Return what the course says each architecture is good for, and what was measured of it here."""
    return Table(
        "What each is good for",
        ("task", "architecture", "measured"),
        {
            "translation": (
                Said("encoder-decoder"),
                Measured("prefix", "{} of the words are right", lambda n: longest(n["accuracy"]["encoder-decoder"])),
            ),
            "summaries": (Said("encoder-decoder"), Unmeasured()),
            "questions about a text": (Said("encoder-decoder"), Unmeasured()),
            "sense of a word": (
                Said("encoder"),
                Measured("contextual", "cosine of an eaten apple with fruits {}", lambda n: n["eaten apple, fruits"]),
            ),
            "classes, tags, sentiment": (Said("encoder"), Unmeasured()),
            "text": (
                Said("decoder"),
                Measured(
                    "scaling",
                    "{} nats a letter of Python's documentation at the largest size",
                    lambda n: longest(n["parameters"]["loss"]),
                ),
            ),
            "conversations": (Said("decoder"), Unmeasured()),
        },
    )


def furthest(curve: Mapping[str, float]) -> str:
    """Return the greatest of the numbers that name the points of a curve."""
    return max(curve, key=int)


def longest(curve: Mapping[str, float]) -> float:
    """Return a curve's value at the greatest of its numbers."""
    return curve[furthest(curve)]
