"""How large language models have become: sizes over years, most of them counted on our specs."""

from dataclasses import dataclass

from orrery.planning.parameters import parameters
from orrery.planning.presets import PRESETS, preset
from orrery.planning.published.sizes import published
from orrery.planning.table import PaperTable
from orrery.reports.figures import scatter


@dataclass(frozen=True)
class PublishedModel:
    """A language model, when its report appeared, and its size.

    Attributes:
        name: as its makers call it.
        year: of the report.
        month: of the report.
        source: the report.
        counted: a published size or a preset of ours; nothing where the architecture was not published.
        said: the size that somebody gives where we cannot count.
    """

    name: str
    year: int
    month: int
    source: str
    counted: str = ""
    said: int | float = 0

    @property
    def parameters(self) -> int | float:
        """The parameters, counted where they can be; what no gradient changes (corrections of a router) is none."""
        if not self.counted:
            return self.said
        spec = preset(self.counted) if self.counted in PRESETS else published(self.counted).spec()
        return parameters(spec, trained=True)

    @property
    def how(self) -> str:
        """Where the number is from."""
        return f"counted: {self.counted}" if self.counted else "as said there"


MODELS = (
    PublishedModel("Transformer big", 2017, 6, "Vaswani et al. 2017", "transformer-big"),
    PublishedModel("GPT", 2018, 6, "Radford et al. 2018", "GPT (2018)"),
    PublishedModel("BERT large", 2018, 10, "Devlin et al. 2018", "BERT large, uncased"),
    PublishedModel("GPT-2 XL", 2019, 2, "Radford et al. 2019", "GPT-2 XL"),
    PublishedModel("T5 11B", 2019, 10, "Raffel et al. 2019", "T5 11B"),
    PublishedModel("GPT-3", 2020, 5, "Brown et al. 2020", "gpt3-175b"),
    PublishedModel(
        "Switch-C", 2021, 1, "Fedus et al. 2021: a mixture, of which a token meets a small part", said=1571e9
    ),
    PublishedModel("Gopher", 2021, 12, "Rae et al. 2021", "gopher-280b"),
    PublishedModel("LaMDA", 2022, 1, "Thoppilan et al. 2022", "lamda-137b"),
    PublishedModel("Chinchilla", 2022, 3, "Hoffmann et al. 2022", "chinchilla-70b"),
    PublishedModel("PaLM", 2022, 4, "Chowdhery et al. 2022", "palm-540b"),
    PublishedModel("BLOOM", 2022, 11, "BigScience 2022", "BLOOM 176B"),
    PublishedModel("LLaMA 65B", 2023, 2, "Touvron et al. 2023", "Llama 65B"),
    PublishedModel("GPT-4 (S3)", 2023, 3, "deck S3: a rumour, not published", said=1.76e12),
    PublishedModel("GPT-4 (S0)", 2023, 3, "deck S0: a report, not published", said=1.5e12),
    PublishedModel("Llama 2 70B", 2023, 7, "Touvron et al. 2023b", "Llama 2 70B"),
    PublishedModel("Llama 3.1 405B", 2024, 7, "Dubey et al. 2024", "Llama 3.1 405B"),
    PublishedModel("DeepSeek-V3", 2024, 12, "DeepSeek-AI 2024: a mixture, 37.6 billion meet a token", "DeepSeek-V3"),
)


def model_sizes_table() -> PaperTable:
    """Return the sizes over years with the chart of deck S0."""
    rows = [
        (model.name, f"{model.year}-{model.month:02}", f"{model.parameters:,.0f}", model.how, model.source)
        for model in MODELS
    ]  # fmt: skip
    return PaperTable(
        "model-sizes",
        "Parameters of language models by year",
        "deck S0, Text Transformer Model Parameters; the numbers are ours, from the reports named",
        ("model", "report", "parameters", "how", "source"),
        rows,
        (
            "slide differs: GPT-4 has 1.5 trillion parameters in deck S0 and 1.76 trillion in deck S3; its makers have "
            "published neither.",
        ),
        sizes_chart(),
        "Mixtures are drawn with all their experts.",
    )


def sizes_chart() -> str:
    """Draw the sizes by year, on a logarithmic axis."""
    groups: dict[str, dict[str, tuple[int | float, int | float]]] = {"counted": {}, "as said": {}}
    for model in MODELS:
        group = groups["counted" if model.counted else "as said"]
        group[model.name] = (model.year + (model.month - 1) / 12, model.parameters)
    title = "Parameters of language models by year"
    return scatter(groups, title=title, x_label="year of the report", y_label="parameters", log_y=True)


GPTS = (
    ("GPT (2018)", 12, 768, 3072, 12, "117M", "GPT (2018)"),
    ("GPT-2 (2019)", 48, 1600, 6400, 25, "1542M", "GPT-2 XL"),
    ("GPT-3 (2020)", 96, 12_288, 49_152, 96, "175000M", "gpt3-175b"),
)
"""Deck S3, the table of GPT, GPT-2 and GPT-3; the slide leaves the inner states and heads of GPT-2 empty."""


def gpt_table() -> PaperTable:
    """Return the three GPTs of deck S3 with their exact sizes (G7)."""
    rows = []
    for name, layers, width, hidden, heads, printed, counted in GPTS:
        parameters = PublishedModel(name, 0, 0, "", counted).parameters
        off = parameters / (int(printed.removesuffix("M")) * 1e6) - 1
        agrees = abs(off) < 5e-3
        said = "agrees" if agrees else f"slide differs: {printed} printed, {100 * off:+.1f} %"
        rows.append((name, str(layers), f"{width:,}", f"{hidden:,}", str(heads), printed, f"{parameters:,.0f}", said))
    return PaperTable(
        "gpts",
        "GPT, GPT-2 and GPT-3",
        "deck S3, GPT: Generative Pre-trained Transformer (Radford et al. 2018, 2019; Brown et al. 2020)",
        ("model", "layers", "states", "inner states", "heads", "slide", "parameters", "check"),
        rows,
        (
            "GPT: 40,478 tokens, 512 positions. GPT-2: 50,257 tokens, 1,024 positions; 6,400 inner states and 25 "
            "heads, which the slide leaves empty, are those of its published weights.",
        ),
    )
