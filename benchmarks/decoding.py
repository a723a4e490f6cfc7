"""Decoding speed on a CPU beside transformers and llama.cpp: the same random weights, threads and prompts.

    .venv/bin/python benchmarks/decoding.py --minutes 12 --output benchmarks/decoding.json

A Llama-like model of 430 million parameters (24 layers, 1,024 wide, 16 heads over 4, 4,096 hidden, vocabulary 32,000,
untied) in bfloat16 and GPT-2 124M in both precisions, one row and batches. Programs take turns within a round, and so
does a probe of the memory's bandwidth, so that a change of the machine's speed meets all of them; a ratio is the median
over rounds of the ratio within a round. Rates are end to end: new tokens over the time of the call, prompt and all.
A peer writes in our numbers (alike) and in others that its users may take: on a processor without bfloat16 products
transformers is faster in float32. The claim is told against the fastest of them that rounds no weight further than
ours, ``peer's best``.

The share of the bandwidth counts the bytes of the matrices that a token reads, over the best probe of the same rounds.
"""

import argparse
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from _record import Record, parsed, parser

from orrery.exchange.reading.read import Stored, read
from orrery.studies.bench.generating import closing, step_bytes
from orrery.studies.bench.rounds import Case
from orrery.studies.bench.shapes import make_model
from orrery.studies.bench.subjects import Orrery, PeerProgram, Transformers, open_peer
from orrery.training.machine_rates import BandwidthProbe
from orrery.tuning.quantise import Quantise

PROMPT, NEW = 32, 48
FAILED: dict[str, str] = {}
"""Programs that could not be made or take a turn, and why."""
Contender = Callable[[], float]
"""Takes a turn and returns its new tokens a second."""


def ours(stored: Stored, kernel: str, bits: int | None = None) -> Orrery:
    """This program by one way of computing steps, with weights in whole numbers where bits are given."""
    if bits is not None:
        stored = read(stored.folder)
        Quantise(bits=bits, targets=("*.blocks.*", "head.vocabulary")).apply(stored.model)
    return Orrery(replace(stored, kernel=kernel))


def compiled_transformers(folder: Path, dtype: torch.dtype) -> Transformers:
    """Return transformers with a static cache and ``torch.compile``."""
    import transformers

    config = transformers.CompileConfig(fullgraph=True, dynamic=False)
    config._compile_all_devices = True
    return Transformers(folder, dtype, cache_implementation="static", compile_config=config)


def contender(subject: PeerProgram, rows: int) -> Contender:
    """Return what lets a subject write ``rows`` answers, prompts and all."""
    prompts = Case(rows, PROMPT, NEW).prompts(290)

    def turn() -> float:
        begin = time.perf_counter()
        subject.write(prompts, NEW)
        return rows * NEW / (time.perf_counter() - begin)

    return turn


def race(name: str, contenders: dict[str, Contender], seconds: float, size: dict[str, int]) -> Any:
    """Let programs take turns until the time is over; print and return what they reached."""
    for contender in contenders.values():
        contender()
    begin, rounds, reads, reading = time.perf_counter(), [], [], BandwidthProbe()
    while len(rounds) < 3 or time.perf_counter() - begin < seconds:
        reads.append(max(reading() for _ in range(3)))
        rounds.append({who: contender() for who, contender in contenders.items()})
        if len(rounds) >= 3 and time.perf_counter() - begin > 3 * seconds:
            break
    first = next(iter(contenders))
    measured: dict[str, Any] = {"rounds": len(rounds), "bandwidth_GB_s": round(max(reads), 1), "contenders": {}}
    best, usual = max(reads), statistics.median(reads)
    print(f"\n{name}: {len(rounds)} rounds, bandwidth {best:.1f} GB/s (median {usual:.1f})")
    for who in contenders:
        rates = sorted(one[who] for one in rounds)
        row: dict[str, Any] = {
            "tokens_per_second": round(statistics.median(rates), 1), "range": [round(rates[0], 1), round(rates[-1], 1)],
            f"{first} over it": round(statistics.median(one[first] / one[who] for one in rounds), 2),
        }  # fmt: skip
        if who in size:
            row["share of bandwidth"] = round(statistics.median(rates) * size[who] / 1e9 / max(reads), 3)
        measured["contenders"][who] = row
        print(f"  {who:34s} {row}", flush=True)
    measured["peer's best"] = peers_best(measured)
    print("  beside the best of each peer:", measured["peer's best"], flush=True)
    return measured


def peers_best(measured: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return, by peer, its fastest way whose weights have no fewer bits than ours, and our rate over it."""
    rows: dict[str, dict[str, Any]] = measured["contenders"]
    first, best = next(iter(rows)), dict[str, dict[str, Any]]()
    for name, row in rows.items():
        peer = name.partition(",")[0].partition(" ")[0]
        if name.startswith("orrery") or name.endswith(("q8_0", "q4_0")):
            continue
        if peer not in best or row["tokens_per_second"] > best[peer]["tokens_per_second"]:
            ratio = row[f"{first} over it"]
            best[peer] = {"way": name, "tokens_per_second": row["tokens_per_second"], "ratio": ratio}
    return best


def attempt(contenders: dict[str, Contender], name: str, make: Callable[[], PeerProgram], rows: int = 1) -> None:
    """Add a program if it can be made and takes a first turn; what could not is recorded too."""
    try:
        program = contender(make(), rows)
        program()
        contenders[name] = program
        print(f"  {name} is ready", flush=True)
    except Exception as error:
        FAILED[name] = f"{type(error).__name__}: {str(error)[:200]}"
        print(f"  {name} did not run: {FAILED[name]}", flush=True)


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    record = Record(options, ("transformers", "xllamacpp", "numba"))
    measured: dict[str, Any] = {"prompt": PROMPT, "new": NEW, "races": {}, "did not run": FAILED}
    races = {
        "llama 430M bfloat16": llama_race,
        "gpt2 float32": gpt2_race,
        "gpt2 bfloat16": gpt2_race,
        "gpt2 batches": batches,
    }
    chosen = {name: run for name, run in races.items() if options.only in name}
    with tempfile.TemporaryDirectory() as folder:
        for name, run in chosen.items():
            share = 60 * options.minutes * (0.3 if "llama" in name else 0.15)
            with contextlib.ExitStack() as stack:  # peers of one race end before the next begins
                measured["races"] |= run(Path(folder), name, share, options, stack)
            record.write(measured)


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--minutes", type=float, default=12.0, help="of the races together, about")
    made.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    made.add_argument("--only", default="", help="a race whose name holds this")
    made.add_argument("--gpt2", default="gpt2-124m", help="the shape of the smaller model")
    made.add_argument("--compile", action="store_true", help="also the compiled static cache of transformers")
    return parsed(made, {"minutes": 0.01, "only": "gpt2 bfloat16", "gpt2": "gpt2-tiny"})


def made(folder: Path, shape: str, dtype: torch.dtype) -> Stored:
    """Return a model of a shape with random weights, written into a folder."""
    return read(make_model(shape, folder, dtype, lambda line: None))


def llama_race(folder: Path, name: str, seconds: float, arguments: Any, stack: contextlib.ExitStack) -> Any:
    own = made(folder / "llama", "llama-430m", torch.bfloat16)
    contenders = {"orrery compiled": contender(ours(own, "compiled"), 1)}
    for bits in (8, 4):
        attempt(contenders, f"orrery int{bits}", lambda bits=bits: ours(own, "compiled", bits))
    add_peers(contenders, own, ("bf16", "f16", "q8_0", "q4_0"), folder, arguments, stack)
    contenders["orrery eager"] = contender(ours(own, "eager"), 1)
    plain = ("orrery compiled", "llama.cpp bf16", "transformers", "transformers compiled", "orrery eager")
    size = dict.fromkeys(plain, step_bytes(own.model, Case(1, PROMPT, NEW)))
    return {name: race(name, contenders, seconds, size)}


def gpt2_race(folder: Path, name: str, seconds: float, arguments: Any, stack: contextlib.ExitStack) -> Any:
    dtype, kind = (torch.float32, "f32") if "float32" in name else (torch.bfloat16, "bf16")
    own = made(folder / f"gpt2-{kind}", arguments.gpt2, dtype)
    contenders = {"orrery compiled": contender(ours(own, "compiled"), 1)}
    add_peers(contenders, own, (kind,) if kind == "f32" else (kind, "f16"), folder, arguments, stack)
    contenders["orrery eager"] = contender(ours(own, "eager"), 1)
    alike = [name for name in contenders if not name.endswith(("float32", "f16"))]
    size = dict.fromkeys(alike, step_bytes(own.model, Case(1, PROMPT, NEW)))
    return {name: race(name, contenders, seconds, size)}


def add_peers(
    contenders: dict[str, Contender],
    own: Stored,
    kinds: Sequence[str],
    folder: Path,
    arguments: Any,
    stack: contextlib.ExitStack,
) -> None:
    """Add llama.cpp with each kind of matrices, and transformers."""
    for kind in kinds:
        attempt(
            contenders,
            f"llama.cpp {kind}",
            lambda kind=kind: stack.enter_context(closing(open_peer("llama.cpp", own, kind, 1, own.folder))),
        )
    attempt(contenders, "transformers", lambda: open_peer("transformers", own, "", 1, folder))
    dtype = next(own.model.parameters()).dtype
    if dtype != torch.float32:
        attempt(contenders, "transformers float32", lambda: Transformers(own.folder, torch.float32))
    if arguments.compile:
        attempt(contenders, "transformers compiled", lambda: compiled_transformers(own.folder, dtype))


def batches(folder: Path, name: str, seconds: float, arguments: Any, stack: contextlib.ExitStack) -> Any:
    races = {}
    for dtype in (torch.float32, torch.bfloat16):
        own = made(folder / f"batches-{dtype}", arguments.gpt2, dtype)
        for rows in (8, 32):
            contenders = {
                f"orrery compiled, {rows} rows": contender(ours(own, "compiled"), rows),
                "orrery compiled, 1 row": contender(ours(own, "compiled"), 1),
                f"orrery eager, {rows} rows": contender(ours(own, "eager"), rows),
            }
            peer = lambda own=own: open_peer("transformers", own, "", 1, folder)  # noqa: E731
            attempt(contenders, f"transformers, {rows} rows", peer, rows)
            if dtype != torch.float32:
                wide = lambda own=own: Transformers(own.folder, torch.float32)  # noqa: E731
                attempt(contenders, f"transformers float32, {rows} rows", wide, rows)
            title = f"gpt2 {dtype} batch {rows}".replace("torch.", "")
            races[title] = race(title, contenders, seconds / 3, {})
    return races


if __name__ == "__main__":
    main()
