"""Published runs beside what the model of their machine predicts; no number is fitted to a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from orrery.planning.layouts.layout import FULL, SELECTIVE, ParallelLayout, Recomputation
from orrery.planning.layouts.layout_plan import LayoutPlan
from orrery.planning.layouts.search import LayoutSearch, best
from orrery.planning.layouts.training import EAGER, EAGER_WITHOUT_DROPOUT, Bytes, TrainingStep
from orrery.planning.layouts.work import DecoderWork, work_of
from orrery.planning.machines import load_machine
from orrery.planning.presets import gpt3, preset
from orrery.planning.published.sizes import published

BAR = 0.15
MPT_7B = 6_658_859_008
"""As the benchmark prints it: ALiBi, no biases."""


@dataclass(frozen=True)
class MeasuredLayout:
    """One published run.

    Attributes:
        name: of the model.
        work: the model.
        training: the batch, and how attention was computed.
        layout: as published.
        machine: by its name.
        devices: as published.
        published: the utilisation.
        recomputed: whether it counts recomputed operations too: HFU instead of MFU.
        counted: the share of all keys that it counts.
        source: of the number and of the layout.
        free: degrees that are not published, of which the fastest is taken, with the values tried.
        reason: why the prediction is off, where it is by more than 15 %.
    """

    name: str
    work: DecoderWork
    training: TrainingStep
    layout: ParallelLayout
    machine: str
    devices: int
    published: int | float
    recomputed: bool
    counted: int | float
    source: str
    free: Mapping[str, Sequence[int | bool | Recomputation]] = field(default_factory=dict)
    reason: str = ""

    def plan(self) -> LayoutPlan:
        """Return the plan of the run; of degrees that are not published the fastest, whatever its memory."""
        layout = self.layout
        only: dict[str, Sequence[int | bool | Recomputation]] = {
            name: (getattr(layout, name),) for name in vars(layout) if name not in self.free
        }
        only |= {name: values for name, values in self.free.items() if values}
        if layout.fsdp == 1 and "fsdp" not in self.free:
            only["zero"] = (3,)
        return best(
            LayoutSearch(self.work, self.training, load_machine(self.machine), self.devices, float("inf"), only)
        )


@dataclass(frozen=True)
class PredictedRun:
    """A run beside its prediction.

    Attributes:
        run: as published.
        plan: as predicted.
    """

    run: MeasuredLayout
    plan: LayoutPlan

    @property
    def predicted(self) -> int | float:
        """The utilisation, counted as the run's."""
        return self.plan.hfu(self.run.counted) if self.run.recomputed else self.plan.mfu(self.run.counted)

    @property
    def ratio(self) -> int | float:
        """Predicted over published."""
        return self.predicted / self.run.published

    @property
    def within(self) -> bool:
        """Whether the prediction is within 15 % of what is published."""
        return abs(self.ratio - 1) <= BAR


def megatron(layers: int, width: int, heads: int) -> DecoderWork:
    """Return a GPT of Megatron-LM: 51,200 tokens of vocabulary, 2,048 of context."""
    spec = gpt3(width, layers, heads, vocabulary=51_200)
    return work_of(spec, f"gpt-{width}x{layers}")


def llama_405b() -> DecoderWork:
    """Return Llama 3 405B."""
    return work_of(published("Llama 3.1 405B").spec(), "llama-3-405b")


@cache
def comparisons() -> tuple[PredictedRun, ...]:
    """Return all runs beside their predictions."""
    return tuple(PredictedRun(run, run.plan()) for run in runs())


def runs() -> list[MeasuredLayout]:
    """Return the published runs."""
    return [_gpt3(), *_narayanan(), *_korthikanti(), _palm(), *_llama()]


def benchmarks() -> list[MeasuredLayout]:
    """Return the runs from which the efficiency of a machine's products comes; each is met to the printed digits.

    Of llm-foundry's table they are the fastest runs on one node without recomputation.
    """
    mpt = replace(work_of(gpt3(4_096, 32, 32, vocabulary=50_368), "mpt-7b"), parameters=MPT_7B, active=MPT_7B)
    foundry = TrainingStep(48, 2_048)
    source = "llm-foundry, scripts/train/benchmarking: 7b, 2,048 tokens, eight devices, without recomputation"
    shared = ParallelLayout(fsdp=8, micro=6)
    return [
        MeasuredLayout(
            "MPT-7B", mpt, foundry, shared, "a100-80gb", 8, 0.6423, recomputed=False, counted=1, source=source
        ),
        MeasuredLayout("MPT-7B", mpt, foundry, shared, "h100", 8, 0.4644, recomputed=False, counted=1, source=source),
        MeasuredLayout(
            "GPT-2 1.2B",
            work_of(gpt3(1_536, 40, 16, vocabulary=51_200, context=1_024), "gpt-2-1.2b"),
            TrainingStep(8, 1_024, "fp16", kernel=EAGER, dropout=1),
            ParallelLayout(micro=8, sequence=False, recompute=FULL),
            "v100",
            1,
            62.4 / 125,
            recomputed=True,
            counted=1,
            source="Megatron-LM 1.0, announcement of May 2020: 62.4 teraflop/s on one device; that it counts "
            "recomputed operations is our reading",
        ),
    ]


def _gpt3() -> MeasuredLayout:
    return MeasuredLayout(
        "GPT-3 175B",
        work_of(preset("gpt3-175b"), "gpt3-175b"),
        TrainingStep(1_560, 2_048, "fp16", kernel=EAGER, dropout=1),
        ParallelLayout(tensor=8, sequence=False),
        "v100",
        10_000,
        0.213,
        recomputed=False,
        counted=1,
        source="Brown et al. 2020 (V100, 3.2 million tokens a batch); devices: Patterson et al. 2021, Table 4; 21.3 %: "
        "Chowdhery et al. 2022, Table 3",
        free={"pipeline": (), "data": (), "micro": (1,), "recompute": (FULL,)},
    )


def _narayanan() -> list[MeasuredLayout]:
    rows = (
        ("18.4B", megatron(40, 6_144, 48), 1, 256, 1_024, 135),
        ("39.1B", megatron(48, 8_192, 64), 2, 512, 1_536, 138),
        ("76.1B", megatron(60, 10_240, 80), 4, 1_024, 1_792, 140),
        ("145.6B", megatron(80, 12_288, 96), 8, 1_536, 2_304, 148),
        ("310.1B", megatron(96, 16_384, 128), 16, 1_920, 2_160, 155),
        ("529.6B", megatron(105, 20_480, 128), 35, 2_520, 2_520, 163),
        ("1008B", megatron(128, 25_600, 160), 64, 3_072, 3_072, 163),
        ("174.6B", megatron(96, 12_288, 96), 12, 1_536, 1_536, 141),
    )
    return [
        MeasuredLayout(
            f"Megatron {name}",
            work,
            TrainingStep(batch, 2_048, kernel=EAGER, dropout=1),
            ParallelLayout(devices // (8 * pipeline), tensor=8, pipeline=pipeline, sequence=False, recompute=FULL),
            "a100-80gb",
            devices,
            teraflops / 312,
            recomputed=True,
            counted=1,
            source=f"Narayanan et al. 2021, Table {2 if name == '174.6B' else 1}: {teraflops} teraflop/s a device, "
            "recomputed operations among them",
            free={"micro": (1, 2, 4), "interleave": (1, 2, 3)},
        )
        for name, work, pipeline, devices, batch, teraflops in rows
    ]


def _korthikanti() -> list[MeasuredLayout]:
    rows = (
        ("22B", megatron(48, 6_144, 64), 1, 1, 4, 4, 0.415),
        ("175B", megatron(96, 12_288, 96), 8, 3, 64, 1, 0.514),
        ("530B", megatron(105, 20_480, 128), 35, 3, 280, 1, 0.560),
        ("1T", megatron(128, 25_600, 160), 64, 1, 512, 1, 0.563),
    )
    return [
        MeasuredLayout(
            f"Megatron {name}, selective",
            work,
            TrainingStep(batch, 2_048, kernel=EAGER, dropout=1),
            ParallelLayout(tensor=8, pipeline=pipeline, interleave=chunks, micro=micro, recompute=SELECTIVE),
            "a100-80gb",
            8 * pipeline,
            mfu,
            recomputed=False,
            counted=1,
            source="Korthikanti et al. 2022, Tables 3 and 5",
        )
        for name, work, pipeline, chunks, batch, micro, mfu in rows
    ]


def _palm() -> MeasuredLayout:
    return MeasuredLayout(
        "PaLM 540B",
        work_of(preset("palm-540b"), "palm-540b"),
        TrainingStep(2_048, 2_048, kernel=EAGER_WITHOUT_DROPOUT),
        ParallelLayout(2, 256, tensor=12, zero=3, recompute=FULL),
        "tpu-v4",
        6_144,
        0.462,
        recomputed=False,
        counted=1,
        source="Chowdhery et al. 2022, sections 4 and 4.1",
        free={"micro": (1, 2, 4)},
    )


_LONG = (
    "attention is 44 % of the predicted time, at the 35 % of the rate that FlashAttention-2 is published to reach on "
    "an H100; the run's own kernel is not published: one that reaches 45 % gives 36.0 %"
)


def _llama() -> list[MeasuredLayout]:
    work = llama_405b()
    short = TrainingStep(2_048, 8_192, bytes=Bytes(gradient=4))
    long = replace(short, sequences=128, length=131_072)
    stages = ParallelLayout(fsdp=64, tensor=8, pipeline=16, zero=1)
    rows = (
        (short, stages, 8_192, 0.43),
        (short, replace(stages, fsdp=128), 16_384, 0.41),
        (long, replace(stages, fsdp=8, context=16), 16_384, 0.38),
    )
    return [
        MeasuredLayout(
            "Llama 3 405B" + (", 131k tokens" if training is long else ""),
            work,
            training,
            layout,
            "h100",
            devices,
            mfu,
            recomputed=False,
            counted=0.5,
            source="Dubey et al. 2024, Table 4; how it counts attention is not said: here what the causal mask shows",
            reason=_LONG if training is long else "",
            free={"interleave": (1, 2, 4, 8)},
        )
        for training, layout, devices, mfu in rows
    ]
