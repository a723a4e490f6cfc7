"""How much data a training sees: the mixture of a run with its epochs elapsed, and the published models' tokens."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orrery.data.batches.mixtures import normalised


@dataclass(frozen=True)
class MixtureRow:
    """One corpus: its size in tokens, its weight, and the epochs elapsed that someone printed, as printed.

    ``weight_step`` and ``token_step`` are what the printed numbers are rounded to; 0 is exact.
    """

    name: str
    tokens: int | float
    weight: int | float
    printed: str | None = None
    weight_step: int | float = 0
    token_step: int | float = 0


BILLION = 1e9
GPT3_TRAINING = 300 * BILLION
GPT3 = tuple(
    MixtureRow(name, billions * BILLION, percent, printed, weight_step=1, token_step=BILLION)
    for name, billions, percent, printed in (
        ("Common Crawl (filtered)", 410, 60, "0.44"),
        ("WebText2", 19, 22, "2.9"),
        ("Books1", 12, 8, "1.9"),
        ("Books2", 55, 8, "0.43"),
        ("Wikipedia", 3, 3, "3.4"),
    )
)
"""Deck S3, from Brown et al. 2020, Table 2.2: weights in percent, which add to 101, and tokens, to 499 billion."""


def epochs(weight: int | float, training: int | float, tokens: int | float) -> float:
    """Return how often a corpus is gone through: its share of the training tokens over its own."""
    return weight * training / tokens


def gpt3_epochs(row: MixtureRow) -> float:
    """Return the epochs elapsed of a row of GPT-3's table: the percentage as it is printed, though all add to 101."""
    return epochs(row.weight / 100, GPT3_TRAINING, row.tokens)


def agrees(row: MixtureRow) -> bool:
    """Tell whether the computed epochs, rounded like the printed ones, are the printed ones."""
    assert row.printed is not None
    decimals = len(row.printed.partition(".")[2])
    return f"{gpt3_epochs(row):.{decimals}f}" == row.printed


def rounding_explains(row: MixtureRow) -> bool:
    """Tell whether some weight and size that round to the printed ones give the printed epochs."""
    assert row.printed is not None
    half = 0.5 * 10 ** -len(row.printed.partition(".")[2])
    low = epochs((row.weight - row.weight_step / 2) / 100, GPT3_TRAINING, row.tokens + row.token_step / 2)
    high = epochs((row.weight + row.weight_step / 2) / 100, GPT3_TRAINING, row.tokens - row.token_step / 2)
    return low <= float(row.printed) + half and high >= float(row.printed) - half


def gpt3_table() -> list[tuple[str, ...]]:
    """Return the rows of GPT-3's mixture: corpus, tokens, weight, epochs at 300 billion tokens, slide, verdict."""
    rows = []
    for row in GPT3:
        epochs, printed = gpt3_epochs(row), str(row.printed)
        verdict = "agrees"
        if not agrees(row):
            why = "rounding explains it" if rounding_explains(row) else "more than rounding"
            verdict = f"slide differs by {float(printed) - epochs:+.3f}: {why}"
        size = f"{row.tokens / BILLION:,.0f} billion"
        rows.append((row.name, size, f"{row.weight:g} %", f"{epochs:.3f}", printed, verdict))
    total = sum(row.tokens for row in GPT3) / BILLION
    weights = sum(row.weight for row in GPT3)
    return [*rows, ("all", f"{total:,.0f} billion", f"{weights:g} %", "", "", "the printed weights are rounded")]


def mixture_table(rows: Sequence[MixtureRow], training: int | float) -> list[tuple[str, ...]]:
    """Return the rows of a user's mixture: corpus, tokens, weight as a share, and epochs elapsed after ``training``.

    Raises `UsageError` for a weight that is not a positive finite number.
    """
    shares = normalised([row.weight for row in rows])
    table = [
        (
            row.name,
            f"{row.tokens:,.0f}",
            f"{float(100 * share):.2f} %",
            _elapsed(epochs(float(share), training, row.tokens)),
        )
        for row, share in zip(rows, shares, strict=True)
    ]
    total = sum(row.tokens for row in rows)
    return [*table, ("all", f"{total:,.0f}", "100.00 %", _elapsed(training / total))]


def _elapsed(count: int | float) -> str:
    return f"{count:.3f}"


@dataclass(frozen=True)
class Published:
    """A language model of the course's table; None is what its makers have not said."""

    name: str
    makers: str
    year: int
    tokens: int | float | None
    parameters: int | float | None
    rumoured: int | float | None = None

    @property
    def tokens_per_parameter(self) -> float | None:
        """Training tokens over parameters; about 20 is best for a budget of compute (Hoffmann et al. 2022)."""
        return self.tokens / self.parameters if self.tokens and self.parameters else None


PUBLISHED = (
    Published("GPT-2", "OpenAI", 2019, 10e9, 1.5e9),
    Published("GPT-3", "OpenAI", 2020, 300e9, 175e9),
    Published("PaLM", "Google", 2022, 780e9, 540e9),
    Published("Chinchilla", "DeepMind", 2022, 1.4e12, 70e9),
    Published("LaMDA", "Google", 2022, 1.56e12, 137e9),
    Published("LLaMA", "Meta", 2023, 1.4e12, 65e9),
    Published("LLaMA-2", "Meta", 2023, 2e12, 70e9),
    Published("GPT-4", "OpenAI", 2023, None, None, rumoured=1.76e12),
    Published("Gemini (Ultra)", "Google", 2023, None, None, rumoured=1.5e12),
    Published("LLaMA-3", "Meta", 2024, 15e12, 405e9),
)
"""Deck S3. Of GPT-4's size deck S3 says 1.76 trillion, deck S0 1.5 trillion; neither is published."""

NEURONS, SYNAPSES = 85e9, 1e14
"""The human brain, deck S0."""


def published_table(models: Iterable[Published] = PUBLISHED) -> list[tuple[str, ...]]:
    """Return the rows of the table: model, makers, year, training tokens, parameters, tokens a parameter."""
    return [
        (
            model.name,
            model.makers,
            str(model.year),
            _large(model.tokens),
            f"? ({_large(model.rumoured)})" if model.rumoured else _large(model.parameters),
            f"{model.tokens_per_parameter:.1f}" if model.tokens_per_parameter else "?",
        )
        for model in models
    ]


def _large(number: int | float | None) -> str:
    if number is None:
        return "?"
    return f"{number / 1e12:g} trillion" if number >= 1e12 else f"{number / BILLION:g} billion"
