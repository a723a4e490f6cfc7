"""The energy of trainings as reported and as recomputed, beside the brain of deck S0."""

from dataclasses import dataclass

from orrery.planning.data_table import NEURONS, SYNAPSES
from orrery.planning.parameters import parameters
from orrery.planning.presets import preset
from orrery.planning.table import PaperTable, large
from orrery.reports.figures import bar_chart


@dataclass(frozen=True)
class TrainingEnergy:
    """The energy of a training: hours of all devices, what one draws, and the overhead of the data centre.

    Attributes:
        name: of the model.
        hours: of all devices together.
        watts: of one device.
        overhead: PUE, the energy of the data centre over that of the devices.
        printed: MWh, as the source prints it; empty where it prints hours and watts alone.
        source: the report.
        rounded: half of what the hours are rounded to.
    """

    name: str
    hours: int | float
    watts: int
    overhead: float
    printed: str
    source: str
    rounded: int | float = 0

    @property
    def megawatt_hours(self) -> float:
        """Hours times watts times the overhead."""
        return self.hours * self.watts * self.overhead / 1e6

    @property
    def said(self) -> str:
        """Whether the printed number follows."""
        if not self.printed:
            return "not printed"
        computed, printed = f"{self.megawatt_hours:,.0f}", float(self.printed.replace(",", ""))
        if computed == self.printed:
            return "agrees"
        if abs(self.megawatt_hours - printed) <= 0.5 + self.megawatt_hours * self.rounded / self.hours:
            return "agrees: the days are rounded"
        return f"paper differs: printed {self.printed}, computed {computed}"


_LLAMA = "Touvron et al. 2023, Table 15"
TRAININGS = (
    TrainingEnergy("GPT-3 175B", 10_000 * 14.8 * 24, 330, 1.10, "1,287",
             "Patterson et al. 2021, Table 4: 10,000 V100, 14.8 days, 330 W", 10_000 * 0.05 * 24),
    TrainingEnergy("OPT-175B", 809_472, 400, 1.1, "356", _LLAMA),
    TrainingEnergy("BLOOM-176B", 1_082_880, 400, 1.1, "475", _LLAMA),
    TrainingEnergy("LLaMA 7B", 82_432, 400, 1.1, "36", _LLAMA),
    TrainingEnergy("LLaMA 13B", 135_168, 400, 1.1, "59", _LLAMA),
    TrainingEnergy("LLaMA 33B", 530_432, 400, 1.1, "233", _LLAMA),
    TrainingEnergy("LLaMA 65B", 1_022_362, 400, 1.1, "449", _LLAMA),
    TrainingEnergy("Llama 3.1 405B", 30.84e6, 700, 1.0, "",
             "model card of Llama 3.1: 30.84 million hours of H100, 700 W; no overhead given"),
)  # fmt: skip

BRAIN_WATTS, YEARS = 20, 20
"""Balasubramanian 2021, Brain power (PNAS): about 20 W."""


def brain_megawatt_hours(years: int = YEARS) -> float:
    """Return what a brain uses in some years."""
    return BRAIN_WATTS * 24 * 365.25 * years / 1e6


def energy_table() -> PaperTable:
    """Return the energy of trainings, recomputed from hours and watts."""
    rows = [
        (one.name, f"{one.hours:,.0f}", str(one.watts), f"{one.overhead:g}", f"{one.megawatt_hours:,.1f}",
         one.printed, one.said, one.source)
        for one in TRAININGS
    ]  # fmt: skip
    brain = f"a brain, {YEARS} years"
    rows.append((brain, f"{24 * 365.25 * YEARS:,.0f}", str(BRAIN_WATTS), "1", f"{brain_megawatt_hours():,.1f}", "",
                 "not printed", "Balasubramanian 2021: about 20 W"))  # fmt: skip
    bars = {one.name: one.megawatt_hours for one in TRAININGS} | {brain: brain_megawatt_hours()}
    return PaperTable(
        "energy",
        "The energy of a training",
        "the report of each row; no deck gives an energy. MWh = device hours x watts x overhead (PUE)",
        ("training", "device hours", "watts", "PUE", "MWh", "printed", "check", "source"),
        rows,
        ("paper differs: LLaMA 65B and BLOOM, printed 449 and 475, where hours x 400 W x 1.1 are 449.8 and 476.5.",),
        bar_chart(bars, title="Energy of a training", x_label="MWh, logarithmic", log_x=True),
        "Device hours x watts x overhead; a brain beside them.",
    )


def brain_table() -> PaperTable:
    """Return the numbers of deck S0 on the brain beside those of models (G21)."""
    gpt3 = parameters(preset("gpt3-175b"))
    rows = (
        ("neurons of a brain", large(NEURONS, 2), "deck S0; 86.1 +- 8.1 billion: Azevedo et al. 2009"),
        ("synapses of a brain", large(SYNAPSES, 3), "deck S0"),
        ("synapses a neuron", f"{SYNAPSES / NEURONS:,.0f}", "their quotient"),
        ("parameters of GPT-3", large(gpt3, 4), "counted on gpt3-175b"),
        ("synapses for each of them", f"{SYNAPSES / gpt3:,.0f}", "their quotient"),
        ("synapses for each parameter of GPT-4", f"{SYNAPSES / 1.76e12:,.0f} or {SYNAPSES / 1.5e12:,.0f}",
         "slide differs: 1.76 trillion in deck S3, 1.5 trillion in deck S0; not published"),
    )  # fmt: skip
    return PaperTable(
        "brain",
        "The brain and language models",
        "deck S0, Text Transformer Model Parameters: about 85 billion neurons and 100 trillion synapses",
        ("", "number", "source"),
        rows,
    )
