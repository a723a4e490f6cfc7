"""Chinchilla's tables of compute-optimal sizes, checked by 6 N D, and its three approaches side by side."""

from collections.abc import Mapping
from dataclasses import dataclass

from orrery.planning.compute_optimal import (
    CHINCHILLA,
    CHINCHILLA_UNROUNDED,
    REFITTED,
    LossLaw,
    PowerLaw,
    through,
)
from orrery.planning.table import PaperTable, large, scientific, verdict
from orrery.planning.training_compute import training_flops
from orrery.reports.figures import line_chart

UNITS = {"M": 10**6, "B": 10**9, "T": 10**12}


@dataclass(frozen=True)
class ChinchillaRow:
    """A size, the operations and the tokens for which it is the best, as printed."""

    parameters: str
    flops: str
    tokens: str

    @property
    def computed(self) -> int | float:
        """``6 N D`` of the printed N and D."""
        return training_flops(count(self.parameters), count(self.tokens))

    @property
    def agrees(self) -> bool:
        """Whether some N and D that round to the printed ones make the printed operations."""
        (low_n, high_n), (low_d, high_d) = interval(self.parameters), interval(self.tokens)
        low, high = interval(self.flops)
        return training_flops(low_n, low_d) <= high and training_flops(high_n, high_d) >= low


def count(printed: str) -> float:
    """Return ``205.1B`` as a number."""
    return float(printed[:-1]) * UNITS[printed[-1]] if printed[-1] in UNITS else float(printed)


def interval(printed: str) -> tuple[float, float]:
    """Return the least and the greatest number that is rounded to the printed one."""
    digits, _, power = printed.rstrip("MBT").partition("e")
    half = 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2])) * UNITS.get(printed[-1], 1)
    return count(printed) - half, count(printed) + half


def _rows(text: str) -> tuple[ChinchillaRow, ...]:
    return tuple(ChinchillaRow(*line.split()) for line in text.strip().splitlines())


APPROACHES: Mapping[int, tuple[ChinchillaRow, ...]] = {
    1: _rows("""
        400M 1.92e19 8.0B
        1B 1.21e20 20.2B
        10B 1.23e22 205.1B
        67B 5.76e23 1.5T
        175B 3.85e24 3.7T
        280B 9.90e24 5.9T
        520B 3.43e25 11.0T
        1T 1.27e26 21.2T
        10T 1.30e28 216.2T
    """),
    2: _rows("""
        400M 1.84e19 7.7B
        1B 1.20e20 20.0B
        10B 1.32e22 219.5B
        67B 6.88e23 1.7T
        175B 4.54e24 4.3T
        280B 1.18e25 7.1T
        520B 4.19e25 13.4T
        1T 1.59e26 26.5T
        10T 1.75e28 292.0T
    """),
    3: _rows("""
        400M 2.21e19 9.2B
        1B 1.62e20 27.1B
        10B 2.46e22 410.1B
        67B 1.71e24 4.1T
        175B 1.26e24 12.0T
        280B 3.52e25 20.1T
        520B 1.36e26 43.5T
        1T 5.65e26 94.1T
        10T 8.55e28 1425.5T
    """),
}
"""Hoffmann et al. 2022: approach 1 in Table 3, approaches 2 and 3 in Table A3."""

EXPONENTS = {
    1: ("minimum over training curves", "0.50 (0.488, 0.502)", "0.50 (0.501, 0.512)"),
    2: ("profiles of equal compute", "0.49 (0.462, 0.534)", "0.51 (0.483, 0.529)"),
    3: ("loss law", "0.46 (0.454, 0.455)", "0.54 (0.542, 0.543)"),
}
"""Hoffmann et al. 2022, Table 2: a and b with their 10th and 90th percentiles."""

GOPHER_BUDGET = 5.76e23
"""Rae et al. 2021: the operations of Gopher, and so of Chinchilla."""


def law(approach: int) -> PowerLaw:
    """Return the power law of approach 1 or 2: through the sizes that the paper prints of it.

    Table 2 prints the exponents to two digits, and no factor. The row of Table 3 that does not agree is left out.
    """
    return through([(count(row.parameters), count(row.flops)) for row in APPROACHES[approach] if row.agrees])


def sizes_table(approach: int) -> PaperTable:
    """Return the printed sizes of an approach, each checked by 6 N D of its own printed numbers."""
    rows = []
    for row in APPROACHES[approach]:
        computed = scientific(row.computed)
        said = verdict(row.agrees, "paper", row.flops, computed)
        rows.append((row.parameters, row.tokens, row.flops, computed, said))
    table = "Table 3" if approach == 1 else "Table A3"
    notes = {
        1: "5.76e23 is what Rae et al. 2021 say of Gopher. Hoffmann et al. 2022, appendix F, count 6.3e23 for it.",
        2: "each row agrees within what its numbers are rounded to.",
        3: "175B: 12.0 trillion tokens make 1.26e25, ten times what is printed. 67B and 280B: 4 % more is printed than "
        "the sizes and tokens make, which their rounding does not explain.",
    }
    return PaperTable(
        f"chinchilla-{approach}",
        f"Compute-optimal sizes, approach {approach}: {EXPONENTS[approach][0]}",
        f"Hoffmann et al. 2022, {table}",
        ("parameters", "tokens", "FLOPs, printed", "6 N D", "check"),
        rows,
        (notes[approach],),
    )


LAWS: Mapping[str, LossLaw | PowerLaw] = {
    "approach 1": law(1),
    "approach 2": law(2),
    "approach 3, as printed": CHINCHILLA,
    "approach 3, more digits": CHINCHILLA_UNROUNDED,
    "refitted, Besiroglu 2024": REFITTED,
}
BUDGETS = (1e19, 1e21, GOPHER_BUDGET, 1e25, 1e27)


COLUMNS = ("estimate", "parameters", "tokens", "tokens a parameter", "loss, law as printed")


def budget_rows(flops: int | float) -> list[tuple[str, ...]]:
    """Return the best size for a budget by each approach, and the loss of each choice by the printed law.

    Raises:
        UsageError: a budget that is not a positive finite number.
    """
    rows: list[tuple[str, ...]] = []
    for name, one in LAWS.items():
        best = one.best(flops)
        loss = CHINCHILLA.loss(best.parameters, best.tokens)
        rows.append(
            (name, large(best.parameters), large(best.tokens), f"{best.tokens_per_parameter:.1f}", f"{loss:.3f}")
        )
    return rows


def approaches_table() -> PaperTable:
    """Return what each approach says for some budgets."""
    rows = [(scientific(flops), *row) for flops in BUDGETS for row in budget_rows(flops)]
    printed = "; ".join(f"approach {i}: N ~ C^{a}, D ~ C^{b}" for i, (_, a, b) in EXPONENTS.items())
    return PaperTable(
        "compute-optimal",
        "The compute-optimal size by each approach",
        "Hoffmann et al. 2022, Tables 2, 3 and A3, appendix D.2; Besiroglu et al. 2024. Approaches 1 and 2: power laws "
        "through the printed sizes; the others: the closed form of the loss law L = E + A / N^alpha + B / D^beta",
        ("FLOPs", *COLUMNS),
        rows,
        (
            f"printed exponents: {printed}.",
            "approaches 1 and 2 keep about 20 tokens a parameter at every budget; approach 3 wants ever more text and "
            "smaller models: its fit weighs the large runs most.",
            f"paper differs: the printed exponents 0.34 and 0.28 make a = {CHINCHILLA.exponent:.4f}, printed 0.46; "
            f"with more digits, 0.3392 and 0.2849, it is {CHINCHILLA_UNROUNDED.exponent:.4f}. For Gopher's budget that "
            f"is {large(CHINCHILLA.best(GOPHER_BUDGET).parameters)} against "
            f"{large(CHINCHILLA_UNROUNDED.best(GOPHER_BUDGET).parameters)} parameters.",
            "for the sizes of Table A3 the law with more digits wants the printed tokens within 20 %, the law as "
            "printed 1.6 to 2.2 times as many: two digits of an exponent are too few to plan with.",
            "refitted, the exponents are nearly equal, and the third approach agrees with the first two.",
            "the loss is flat around its least: choices that differ threefold in size differ by little in loss.",
        ),
        approaches_chart(),
        "The best number of parameters for a budget; the lines of approaches 1 and 2 lie on each other.",
    )


def approaches_chart() -> str:
    """Draw the best size by budget, one line an approach."""
    budgets = [10.0**power for power in range(18, 29)]
    series = {name: [(flops, one.best(flops).parameters) for flops in budgets] for name, one in LAWS.items()}
    title = "Compute-optimal parameters by budget"
    return line_chart(series, title=title, x_label="FLOPs", y_label="parameters", log_x=True, log_y=True)
