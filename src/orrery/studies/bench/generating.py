"""Writing measured against what the machine can do at most, and against named peers on the same weights."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from orrery.errors import UsageError
from orrery.exchange.reading.placement import place
from orrery.exchange.reading.read import Stored, read
from orrery.exchange.saving.import_model import import_model
from orrery.generation.compiled_step import described, why_not
from orrery.models.decoding_memory import cache_bytes
from orrery.models.model import Model
from orrery.settings import step_kernel
from orrery.studies.bench.machine import MachineLimits
from orrery.studies.bench.rounds import Case, Series, agreement, measure
from orrery.studies.bench.shapes import make_model
from orrery.studies.bench.subjects import FILE, Orrery, PeerProgram, open_peer
from orrery.studies.kept import Say
from orrery.training.machine_rates import BandwidthProbe
from orrery.tuning import BlockEmbedding, TransformedLinear

KINDS = {torch.float32: "f32", torch.bfloat16: "bf16"}
TABLES, MATRICES = (nn.Embedding, BlockEmbedding), (nn.Linear, TransformedLinear)
CHECKED = 16
"""Tokens that are compared in float32."""


@dataclass(frozen=True)
class GenerationSpeed:
    """What came out.

    Attributes:
        model: its name and dtype.
        steps: how Orrery writes, in words.
        machine: its limits.
        read: gigabytes a second that the memory gave in these minutes: the median, and the best.
        series: by case, ours first.
        bytes_per_step: by case: weights, and keys and values in the middle of an answer, that a step reads.
        equal: by peer, of the tokens in float32: how many are equal, and of how many.
    """

    model: str
    steps: str
    machine: MachineLimits
    read: tuple[float, float]
    series: list[list[Series]]
    bytes_per_step: list[int]
    equal: dict[str, tuple[int, int]]

    def share_of_bandwidth(self, case: int, series: Series) -> float | None:
        """Return the share of the best read rate that decoding reaches; only who reads the same bytes has one."""
        if "decode" not in series.rates:
            return None
        steps = series.median("decode") / series.case.rows
        return steps * self.bytes_per_step[case] / 1e9 / self.read[1]

    def state(self) -> dict[str, Any]:
        """Return JSON values."""
        cases = []
        for number, several in enumerate(self.series):
            ours = several[0]
            rows: list[dict[str, Any]] = [
                {
                    "subject": one.subject,
                    "rounds": {name: list(values) for name, values in one.rates.items()},
                    "median": {name: one.median(name) for name in one.rates},
                    "ours_faster": {name: ours.faster_than(one, name) for name in one.rates},
                }
                for one in several
            ]
            rows[0]["share_of_bandwidth"] = self.share_of_bandwidth(number, ours)
            cases.append({**vars(ours.case), "bytes_per_step": self.bytes_per_step[number], "subjects": rows})
        return {
            "model": self.model,
            "steps": self.steps,
            "machine": self.machine.state(),
            "read_in_the_same_minutes": list(self.read),
            "equal_tokens_in_float32": {name: list(agreed) for name, agreed in self.equal.items()},
            "cases": cases,
        }


def bench_generate(
    model: str,
    dtype: str,
    cases: Sequence[Case],
    peers: Sequence[str],
    kinds: Sequence[str],
    rounds: int,
    limits: Callable[[Say], MachineLimits],
    say: Say,
) -> GenerationSpeed:
    """Measure a model, a folder's or one of a known shape, beside peers.

    Args:
        model: a folder in the Hugging Face layout, a GGUF file, or a name of ``shapes.SHAPES``.
        dtype: of the weights; matrices in the blocks of a file stay so, with us and in llama.cpp.
        cases: what is written.
        peers: names of ``subjects.PEERS``.
        kinds: how llama.cpp's files store matrices, one peer each; none is that of the dtype, or of the file.
        rounds: how many are counted.
        limits: measures those of the machine, once it is known that the cases can be written.
        say: told what is going on.

    Raises:
        UsageError: a case does not fit the context, or another peer's file cannot hold the model.
    """
    with TemporaryDirectory(prefix="orrery-bench-") as folder, ExitStack() as held:
        aside = Path(folder)
        numbers = torch.float32 if dtype == "float32" else torch.bfloat16
        given = Path(model) if Path(model).exists() else make_model(model, aside / "model", numbers, say)
        stored = _read(given, dtype)
        check_cases(cases, stored.model)
        machine = limits(say)
        opened: list[PeerProgram] = [Orrery(stored)]
        plain = _unpacked(given, dtype, aside, say) if given.is_file() and peers else stored
        most, files = max(case.rows for case in cases), kinds or [FILE if given.is_file() else KINDS[numbers]]
        for name, kind in _named(peers, files):
            say(f"{name} {kind} loads")
            theirs = stored if kind == FILE else plain
            opened.append(held.enter_context(closing(open_peer(name, theirs, kind, most, aside))))
        rates, series = list[float](), list[list[Series]]()
        probe = partial(_note_rate, BandwidthProbe(), rates)
        for case in cases:
            series.append(measure(opened, case, stored.model.spec.vocabulary or 1, rounds, say, probe))
            say(f"{case.name}: {', '.join(map(_told, series[-1]))}")
        held.close()  # one program after another holds the weights from here on
        equal = equal_tokens(model, given, peers, aside, say)
    return GenerationSpeed(
        f"{model} {dtype}",
        described(stored.model, stored.kernel),
        machine,
        (statistics.median(rates), max(rates)),
        series,
        [step_bytes(stored.model, case) for case in cases],
        equal,
    )


def _read(folder: Path, dtype: str) -> Stored:
    """Return the model in a folder on the CPU, with the step that it will write by."""
    stored = read(folder)
    place(stored.model, torch.device("cpu"), dtype)
    return replace(stored, kernel=kernel_of(stored.model))


def _unpacked(file: Path, dtype: str, aside: Path, say: Say) -> Stored:
    """Return the model of a GGUF file as a Hugging Face folder, its matrices unpacked: what other peers can read."""
    folder = aside / "unpacked"
    if not folder.exists():
        import_model(file, folder, say=say)
    return _read(folder, dtype)


def _named(peers: Sequence[str], kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Return each peer with how its file stores matrices; only llama.cpp has a choice."""
    return [(peer, kind) for peer in peers for kind in (kinds if peer == "llama.cpp" else [""])]


def _note_rate(reading: BandwidthProbe, rates: list[float]) -> None:
    """Note how fast memory is read in these minutes."""
    rates.append(max(reading() for _ in range(3)))


def _told(one: Series) -> str:
    measure = "whole" if "whole" in one.rates else "prefill"
    return f"{one.subject} {one.median(measure):,.1f} tokens/s"


def kernel_of(model: Model) -> str:
    """Return how the model will write: as ``ORRERY_KERNEL`` says, else compiled where that can be."""
    kernel = step_kernel()
    return kernel if kernel != "auto" else "eager" if why_not(model) else "compiled"


def check_cases(cases: Sequence[Case], model: Model) -> None:
    """Refuse what the model cannot write.

    Raises:
        UsageError: it writes nothing from left to right, or a case is longer than its context.
    """
    if not model.spec.writes or model.spec.reads_source or model.spec.vocabulary is None:
        raise UsageError("only a decoder's writing is measured here", "give a decoder")
    for case in cases:
        if case.prompt + case.new > model.spec.context:
            raise UsageError(
                f"{case.prompt} + {case.new} tokens are more than this model's context of {model.spec.context:,}",
                "take fewer tokens",
            )


def step_bytes(model: Model, case: Case) -> int:
    """Return the bytes that a step reads: every weight but tables of rows, and each row's keys and values."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, TABLES)}
    others = {id(module.weight) for module in model.modules() if isinstance(module, MATRICES)}
    weights = sum(p.nbytes for p in model.parameters() if id(p) not in tables - others)
    held = case.prompt + case.new // 2
    return weights + case.rows * cache_bytes(model.spec, model.dtype, held)


def equal_tokens(model: str, given: Path, peers: Sequence[str], aside: Path, say: Say) -> dict[str, tuple[int, int]]:
    """Return by peer how many greedy tokens in float32 are ours; ours are those of the matrices as they are stored."""
    if not peers:
        return {}
    agreed, exact = {}, aside / "float32"
    exact.mkdir()
    if aside in given.parents:  # random weights, which may have been made in another dtype
        given = make_model(model, exact / "model", torch.float32, say)
    stored = _read(given, "float32")
    prompts = Case(1, 32, CHECKED).prompts(stored.model.spec.vocabulary or 1)
    ours = Orrery(stored).write(prompts, CHECKED)
    plain = _unpacked(given, "float32", aside, say) if given.is_file() else stored
    for peer in peers:
        say(f"{peer}: the same tokens in float32?")
        with closing(open_peer(peer, plain, "f32", 1, exact)) as other:
            agreed[peer] = agreement(ours, other.write(prompts, CHECKED))
    return agreed


@contextmanager
def closing(subject: PeerProgram) -> Iterator[PeerProgram]:
    """Give back what a subject holds, whatever happens."""
    try:
        yield subject
    finally:
        subject.close()
