"""What the training of published language models took, by the formula of each report, and how far from optimal."""

from dataclasses import dataclass

from orrery.planning.data_table import PUBLISHED, published_table
from orrery.planning.parameters import parameters
from orrery.planning.presets import PRESETS, preset
from orrery.planning.published.sizes import published
from orrery.planning.table import PaperTable, large, plain, scientific, verdict
from orrery.planning.training_compute import attention_flops, petaflop_days, training_flops
from orrery_course.papers.chinchilla import law


@dataclass(frozen=True)
class PublishedRun:
    """A training as its report describes it.

    Attributes:
        name: of the model.
        model: the preset or published size that is counted.
        tokens: that it was trained on.
        printed: its operations, as printed somewhere; empty where they are not.
        source: the report.
        shape: layers, heads, channels of a head and length, where attention between tokens is counted too.
    """

    name: str
    model: str
    tokens: int | float
    printed: str
    source: str
    shape: tuple[int, int, int, int] | None = None

    @property
    def parameters(self) -> int:
        """The parameters of the model, counted."""
        return parameters(preset(self.model) if self.model in PRESETS else published(self.model).spec())

    @property
    def flops(self) -> int | float:
        """``6 N D``, and ``12 L H Q T`` a token where the shape is given."""
        attention = attention_flops(*self.shape) * self.tokens if self.shape else 0
        return training_flops(self.parameters, self.tokens) + attention


_PALM = "Chowdhery et al. 2022, appendix B: 6 N + 12 L H Q T a token"
RUNS = (
    PublishedRun("GPT-3 175B", "gpt3-175b", 300e9, "3.14e23", "Brown et al. 2020, Table D.1"),
    PublishedRun("Gopher 280B", "gopher-280b", 300e9, "5.76e23", "Rae et al. 2021"),
    PublishedRun("Chinchilla 70B", "chinchilla-70b", 1.4e12, "5.76e23", "Hoffmann et al. 2022: the budget of Gopher"),
    PublishedRun("PaLM 540B, with attention", "palm-540b", 780e9, "2.56e24", _PALM, (118, 48, 256, 2048)),
    PublishedRun("PaLM 540B, without", "palm-540b", 780e9, "2.53e24", "Chowdhery et al. 2022: 6 N a token"),
    PublishedRun("Llama 3.1 405B", "Llama 3.1 405B", 15.6e12, "3.8e25", "Dubey et al. 2024"),
)


def runs_table() -> PaperTable:
    """Return the operations of published trainings, and the best size for each budget by approach 1."""
    rows = []
    for run in RUNS:
        digits = len(run.printed.partition("e")[0]) - 1
        computed, best = scientific(run.flops, digits), law(1).best(run.flops)
        rows.append(
            (run.name, f"{run.parameters:,}", large(run.tokens), computed, run.printed,
             verdict(computed == run.printed, "paper", run.printed, computed), f"{plain(petaflop_days(run.flops))}",
             f"{run.tokens / run.parameters:.1f}", large(best.parameters), run.source)
        )  # fmt: skip
    return PaperTable(
        "training-runs",
        "The compute of published trainings",
        "the report of each row. 6 N D (Kaplan et al. 2020, section 2.1) on parameters that we count",
        ("training", "parameters", "tokens", "FLOPs", "printed", "check", "PF-days", "tokens a parameter",
         "best size, approach 1", "source"),
        rows,
        (
            "Gopher and Chinchilla: both papers use 5.76e23 for the two, and 6 N D of their sizes and tokens is less "
            "for the one and more for the other; Hoffmann et al. 2022, appendix F, count 6.3e23 exactly.",
        ),
    )  # fmt: skip


def models_table() -> PaperTable:
    """Return the table of language models of deck S3 (G21)."""
    return PaperTable(
        "language-models",
        "Published language models",
        "deck S3, Comparison of some recent large language models",
        ("model", "makers", "year", "training tokens", "parameters", "tokens a parameter"),
        published_table(PUBLISHED),
        (
            "slide differs: GPT-4 has 1.76 trillion parameters in deck S3, 1.5 trillion in deck S0; neither is "
            "published.",
            "slide differs: LaMDA's 1.56 trillion are words; Thoppilan et al. 2022, section 3, cut them into 2.81 "
            "trillion tokens.",
            "slide differs: LLaMA-3 of 405 billion parameters was trained on 15.6 trillion tokens (Dubey et al. 2024), "
            "where the slide has 15.",
        ),
    )
