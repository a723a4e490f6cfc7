"""The comparisons with which the course ends, from the numbers of labs: three tables, and what is good for what.

A cell is a text with a number that a lab measured, the least and the greatest over the seeds; or a text that says that
no lab measures it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orrery.reports.figures import Number
from orrery_course.labs._lab import Numbers

Runs = Mapping[str, Sequence[Numbers]]
"""The numbers of each seed, by lab."""


@dataclass(frozen=True)
class Shown:
    """What a cell says, and the lab that its number is from."""

    text: str
    lab: str = ""


@dataclass(frozen=True)
class MeasuredCell:
    """A text with a place ``{}`` for what a lab measured, and ``{at}`` for the size at which it did."""

    lab: str
    text: str
    read: Callable[[Numbers], Number]
    form: str = ".2f"
    at: Callable[[Numbers], str] = lambda numbers: ""

    def shown(self, runs: Runs) -> Shown:
        """Return the text with the numbers of the seeds, and the lab."""
        if self.lab not in runs:
            return Shown(f"not run yet ({self.lab})")
        values = [self.read(numbers) for numbers in runs[self.lab]]
        least, greatest = (format(choose(values), self.form) for choose in (min, max))
        range_of_seeds = least if least == greatest else f"{least} to {greatest}"
        return Shown(self.text.format(range_of_seeds, at=self.at(runs[self.lab][0])), self.lab)


@dataclass(frozen=True)
class Unmeasured:
    """A text for which there is no number."""

    text: str = ""

    def shown(self, runs: Runs) -> Shown:
        """Return the text, and that no lab measures it."""
        return Shown(f"{self.text}: no lab measures this" if self.text else "no lab measures this")


@dataclass(frozen=True)
class SaidCell:
    """A text that follows from the definition, or that the lecture says, and that no number belongs to."""

    text: str

    def shown(self, runs: Runs) -> Shown:
        """Return the text."""
        return Shown(self.text)


Cell = MeasuredCell | Unmeasured | SaidCell


@dataclass(frozen=True)
class Table:
    """Rows of a feature and its cells."""

    title: str
    heads: Sequence[str]
    cells: Mapping[str, Sequence[Cell]]

    def rows(self, runs: Runs) -> list[tuple[str, list[Shown]]]:
        """Return each feature and its cells."""
        return [(feature, [cell.shown(runs) for cell in cells]) for feature, cells in self.cells.items()]


def tables() -> tuple[Table, ...]:
    """Return the four tables in the order of the lecture."""
    return (recurrent_or_transformer(), two_attentions(), three_architectures(), good_for())


def of_long_distances() -> Mapping[str, Sequence[Cell]]:
    """Return what reaches over long distances, and what becomes of gradients."""
    clause = "{} of the words of {at} steps ago are found"
    factor = "the gradient is multiplied by {} a step back"
    return {
        "Dependencies over long distances": (
            MeasuredCell("recall", f"LSTM: {clause}", lambda n: longest(n["accuracy"]["LSTM"]), at=furthest_recall),
            MeasuredCell("recall", clause, lambda n: longest(n["accuracy"]["Transformer"]), at=furthest_recall),
        ),
        "Gradients": (
            MeasuredCell(
                "gradients",
                f"RNN with small weights: {factor}",
                lambda n: n["factor a step"]["begin"]["RNN, small weights"],
            ),
            MeasuredCell("gradients", factor, lambda n: n["factor a step"]["begin"]["Transformer"]),
        ),
        "Gradients that grow": (
            MeasuredCell(
                "gradients",
                f"RNN with large weights: {factor}",
                lambda n: n["factor a step"]["begin"]["RNN, large weights"],
            ),
            MeasuredCell(
                "gradients",
                f"the same network as above: {factor}",
                lambda n: n["factor a step"]["begin"]["Transformer"],
            ),
        ),
    }


def recurrent_or_transformer() -> Table:
    """Return what is hard for recurrent networks, beside the same of a Transformer."""
    chain = "{} operations must wait for each other in {at} words"
    cross = "{} words, at {at} channels"
    return Table(
        "Recurrent networks and Transformers",
        ("", "recurrent networks", "Transformers"),
        {
            **of_long_distances(),
            "Steps of training, the word of 4 ago": (
                MeasuredCell("steps", "RNN: {} steps to know 90%", lambda n: n["steps needed"]["4"]["RNN"], ".0f"),
                MeasuredCell("steps", "{} steps to know 90%", lambda n: n["steps needed"]["4"]["Transformer"], ".0f"),
            ),
            "Steps of training, the word of 8 ago": (
                MeasuredCell(
                    "steps",
                    "RNN: {} of them are known after {at} steps",
                    lambda n: longest(n["accuracy"]["8"]["RNN"]),
                    at=lambda n: str(n["steps"]),
                ),
                MeasuredCell("steps", "{} steps to know 90%", lambda n: n["steps needed"]["8"]["Transformer"], ".0f"),
            ),
            "In parallel": (
                MeasuredCell("bottleneck", f"RNN: {chain}", lambda n: longest(n["chain"]["RNN"]), ",.0f", longest_text),
                MeasuredCell("bottleneck", chain, lambda n: longest(n["chain"]["Transformer"]), ",.0f", longest_text),
            ),
            "Operations of a layer: length n": (
                MeasuredCell("complexity", "n to the power of {}", lambda n: n["exponent of n"]["recurrence"]),
                MeasuredCell("complexity", "n to the power of {}", lambda n: n["exponent of n"]["attention"]),
            ),
            "Operations of a layer: width d": (
                MeasuredCell("complexity", "d to the power of {}", lambda n: n["exponent of d"]["recurrence"]),
                MeasuredCell("complexity", "d to the power of {}", lambda n: n["exponent of d"]["attention"]),
            ),
            "The cheaper of the two": (
                MeasuredCell("quadratic", f"in texts of more than {cross}", equal_at, ".0f", layer_width),
                MeasuredCell("quadratic", f"in texts of less than {cross}", equal_at, ".0f", layer_width),
            ),
        },
    )


def of_scores() -> Mapping[str, Sequence[Cell]]:
    """Return what a score costs, and what it aligns."""
    return {
        "Score, its parameters": (
            MeasuredCell("scores", "additive: {}", lambda n: n["additive (Bahdanau)"]["parameters"], ",.0f"),
            MeasuredCell("scores", "product of two vectors: {}", lambda n: n["dot (Luong)"]["parameters"], ",.0f"),
        ),
        "Score, numbers kept for training": (
            MeasuredCell("scores", "{} a step", lambda n: n["additive (Bahdanau)"]["kept"], ",.0f"),
            MeasuredCell("scores", "{} a step", lambda n: n["dot (Luong)"]["kept"], ",.0f"),
        ),
        "What is aligned": (
            MeasuredCell(
                "alignment",
                "decoder state with encoder states: {} of the weight lies where it should",
                lambda n: n["near the anti-diagonal"],
            ),
            MeasuredCell(
                "forming",
                "queries with keys: the best induction head puts {} where it should",
                lambda n: list(n["two layers"]["induction"].values())[-1],
            ),
        ),
    }


def two_attentions() -> Table:
    """Return attention beside a recurrent network, and attention alone."""
    right = "{} of the words of the longest sentences are right"
    return Table(
        "Attention in a recurrent network and in a Transformer",
        ("", "recurrent network with attention", "Transformer"),
        {
            **of_scores(),
            "Efficiency": (
                MeasuredCell(
                    "bottleneck",
                    "a step after the other: a chain of {} operations in {at} words",
                    lambda n: longest(n["chain"]["LSTM"]),
                    ",.0f",
                    longest_text,
                ),
                MeasuredCell(
                    "bottleneck",
                    "all at once: a chain of {} operations in {at} words",
                    lambda n: longest(n["chain"]["Transformer"]),
                    ",.0f",
                    longest_text,
                ),
            ),
            "Context": (
                MeasuredCell("length", right, lambda n: longest(n["accuracy"]["rnnsearch"])),
                MeasuredCell("prefix", right, lambda n: longest(n["accuracy"]["encoder-decoder"])),
            ),
            "Words look at words of their own text": (
                SaidCell("no, by its definition"),
                MeasuredCell(
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
                MeasuredCell(
                    "prefix", "different ones, {} in all", lambda n: n["parameters"]["encoder-decoder"], ",.0f"
                ),
                SaidCell("it does not write"),
                MeasuredCell("prefix", "the same, {}", lambda n: n["parameters"]["prefix decoder"], ",.0f"),
            ),
            "Cost": (
                MeasuredCell("prefix", cost, lambda n: n["operations a word"]["encoder-decoder"], ",.0f"),
                Unmeasured(),
                MeasuredCell("prefix", cost, lambda n: n["operations a word"]["prefix decoder"], ",.0f"),
            ),
            "One translation task": (
                MeasuredCell("prefix", right, lambda n: longest(n["accuracy"]["encoder-decoder"])),
                SaidCell("it does not write"),
                MeasuredCell(
                    "prefix", f"with a prefix mask {right}", lambda n: longest(n["accuracy"]["prefix decoder"])
                ),
            ),
            "Words see what follows them": (
                SaidCell("those of the source, by its mask"),
                MeasuredCell(
                    "contextual",
                    "yes: two senses of one word have a cosine of {}",
                    lambda n: n["contextual: apple, apple"],
                ),
                SaidCell("no, by its definition"),
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
                SaidCell("encoder-decoder"),
                MeasuredCell(
                    "prefix", "{} of the words are right", lambda n: longest(n["accuracy"]["encoder-decoder"])
                ),
            ),
            "summaries": (SaidCell("encoder-decoder"), Unmeasured()),
            "questions about a text": (SaidCell("encoder-decoder"), Unmeasured()),
            "sense of a word": (
                SaidCell("encoder"),
                MeasuredCell(
                    "contextual", "cosine of an eaten apple with fruits {}", lambda n: n["eaten apple, fruits"]
                ),
            ),
            "classes, tags, sentiment": (SaidCell("encoder"), Unmeasured()),
            "text": (
                SaidCell("decoder"),
                MeasuredCell(
                    "scaling",
                    "{} nats a letter of Python's documentation at the largest size",
                    lambda n: longest(n["parameters"]["loss"]),
                ),
            ),
            "conversations": (SaidCell("decoder"), Unmeasured()),
        },
    )


def furthest(curve: Mapping[str, Number]) -> str:
    """Return the greatest of the numbers that name the points of a curve."""
    return max(curve, key=int)


def furthest_recall(numbers: Numbers) -> str:
    """Return the greatest distance of the lab `recall`."""
    return furthest(numbers["accuracy"]["LSTM"])


def longest_text(numbers: Numbers) -> str:
    """Return the words of the longest text of the lab `bottleneck`."""
    return furthest(numbers["chain"]["RNN"])


def equal_at(numbers: Numbers) -> float:
    """Return the length at which the lab `quadratic` finds that both layers cost the same."""
    return float(numbers["equal at a length of"])


def layer_width(numbers: Numbers) -> str:
    """Return the channels of the layers of the lab `quadratic`."""
    return str(numbers["width"])


def longest(curve: Mapping[str, Number]) -> float:
    """Return a curve's value at the greatest of its numbers."""
    return float(curve[furthest(curve)])
