"""What the training of GPT-3 and of the models beside it took: Table D.1, Figure 2.2, and what the slide says of it."""

from dataclasses import dataclass
from fractions import Fraction

from orrery.planning.parameters import parameters
from orrery.planning.presets import preset
from orrery.planning.published.sizes import published
from orrery.planning.table import PaperTable, plain, scientific, verdict
from orrery.planning.training_compute import DENSE, ENCODER_DECODER, PETAFLOP_DAY, petaflop_days, training_flops
from orrery.reports.figures import bar_chart

MILLION, BILLION = 10**6, 10**9


@dataclass(frozen=True)
class Gpt3ComputeRow:
    """A row of Table D.1: its own rounded counts, in millions and billions, and what it prints of them."""

    name: str
    millions: int
    billions: int
    printed_days: str
    printed_flops: str
    each: int = DENSE

    @property
    def flops(self) -> int:
        """The operations from the row's own counts."""
        return int(training_flops(self.millions * MILLION, self.billions * BILLION, self.each))

    @property
    def days(self) -> Fraction:
        """The same in petaflop/s-days."""
        return petaflop_days(self.flops)

    @property
    def agrees(self) -> bool:
        """Whether both are the printed ones, to the printed digits."""
        return (plain(self.days), scientific(self.flops)) == (self.printed_days, self.printed_flops)


ROWS = (
    Gpt3ComputeRow("T5-Small", 60, 1000, "2.08", "1.80e20", ENCODER_DECODER),
    Gpt3ComputeRow("T5-Base", 220, 1000, "7.64", "6.60e20", ENCODER_DECODER),
    Gpt3ComputeRow("T5-Large", 770, 1000, "26.7", "2.31e21", ENCODER_DECODER),
    Gpt3ComputeRow("T5-3B", 3000, 1000, "104", "9.00e21", ENCODER_DECODER),
    Gpt3ComputeRow("T5-11B", 11_000, 1000, "382", "3.30e22", ENCODER_DECODER),
    Gpt3ComputeRow("BERT-Base", 109, 250, "1.89", "1.64e20"),
    Gpt3ComputeRow("BERT-Large", 355, 250, "6.16", "5.33e20"),
    Gpt3ComputeRow("RoBERTa-Base", 125, 2000, "17.4", "1.50e21"),
    Gpt3ComputeRow("RoBERTa-Large", 355, 2000, "49.3", "4.26e21"),
    Gpt3ComputeRow("GPT-3 Small", 125, 300, "2.60", "2.25e20"),
    Gpt3ComputeRow("GPT-3 Medium", 356, 300, "7.42", "6.41e20"),
    Gpt3ComputeRow("GPT-3 Large", 760, 300, "15.8", "1.37e21"),
    Gpt3ComputeRow("GPT-3 XL", 1320, 300, "27.5", "2.38e21"),
    Gpt3ComputeRow("GPT-3 2.7B", 2650, 300, "55.2", "4.77e21"),
    Gpt3ComputeRow("GPT-3 6.7B", 6660, 300, "139", "1.20e22"),
    Gpt3ComputeRow("GPT-3 13B", 12_850, 300, "268", "2.31e22"),
    Gpt3ComputeRow("GPT-3 175B", 174_600, 300, "3,640", "3.14e23"),
)
"""Brown et al. 2020, appendix D, Table D.1: every row to three digits."""


def compute_table() -> PaperTable:
    """Return Table D.1 recomputed from its own rounded counts, with Figure 2.2."""
    rows = [
        (
            row.name, f"{row.millions:,}", f"{row.billions:,}", str(row.each), scientific(row.flops),
            row.printed_flops, plain(row.days), row.printed_days,
            verdict(row.agrees, "paper", f"{row.printed_days} and {row.printed_flops}",
                    f"{plain(row.days)} and {scientific(row.flops)}"),
        )
        for row in ROWS
    ]  # fmt: skip
    bert = parameters(published("BERT large, uncased").spec())
    corrected = training_flops(bert, 250 * BILLION)
    columns = (
        "model",
        "million parameters",
        "billion tokens",
        "each",
        "FLOPs",
        "printed",
        "PF-days",
        "printed",
        "check",
    )
    return PaperTable(
        "gpt3-compute",
        "The compute of GPT-3 and of the models beside it",
        "Brown et al. 2020, Table D.1; deck S3 shows its Figure 2.2. FLOPs = each x parameters x tokens; a "
        f"petaflop/s-day is {scientific(PETAFLOP_DAY)} FLOPs (G8)",
        columns,
        rows,
        (
            f"paper differs, BERT-Large: printed 355 million parameters (RoBERTa-Large's), and the model has {bert:,}, "
            f"which make {scientific(corrected)} FLOPs, {plain(petaflop_days(corrected))} PF-days.",
        ),
        compute_chart(),
        "Figure 2.2 of Brown et al. 2020, drawn from Table D.1.",
    )


def compute_chart() -> str:
    """Draw Figure 2.2: the compute of each training, on a logarithmic axis."""
    title = "Total compute used during training"
    days = {row.name: float(row.days) for row in ROWS}
    ordered = {name: days[name] for group in GROUPS for name in days if name.startswith(group)}
    return bar_chart(ordered, title=title, x_label="petaflop/s-days, logarithmic", log_x=True)


GROUPS = ("BERT", "RoBERTa", "T5", "GPT-3")
"""The order of Figure 2.2."""

CASES = (
    ("GPT-3, 175 billion parameters x 300 billion tokens", 175 * BILLION, 300 * BILLION),
    ("the same x 500 billion tokens, as the slide says", 175 * BILLION, 500 * BILLION),
    ("GPT-3 3B: 2.65 billion parameters x 300 billion", 2650 * MILLION, 300 * BILLION),
    ("RoBERTa-Large: 355 million parameters x 2 trillion", 355 * MILLION, 2000 * BILLION),
)


def case_study_table() -> PaperTable:
    """Return the case study of deck S3: 6 N D in petaflop/s-days, beside the 50 of the slide (G9)."""
    rows = [
        (name, scientific(training_flops(n, d)), f"{float(petaflop_days(training_flops(n, d))):,.1f}")
        for name, n, d in CASES
    ]
    return PaperTable(
        "gpt3-case-study",
        "Why does efficiency matter? Case study: GPT-3",
        "deck S3, Case Study: GPT-3: 500 billion training tokens, 175 billion parameters, 50 petaflop/s-days",
        ("training", "6 N D", "PF-days"),
        rows,
        (
            "slide differs: 50 petaflop/s-days for 175 billion parameters, where 6 N D is 6,076.4 at its 500 billion "
            "tokens and 3,645.8 at the 300 billion of the paper. About 50 is what the paper's caption of Figure 2.2 "
            "says of GPT-3 3B (55.2) and RoBERTa-Large (49.3).",
            f"slide differs: 500 billion tokens were trained on, where Brown et al. 2020, Table 2.1, has 300 billion; "
            f"499 billion is what Table 2.2 has in all. Our count of 175B is {parameters(preset('gpt3-175b')):,}.",
        ),
    )
