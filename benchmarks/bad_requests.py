"""The bad requests of tests/http_battery.py on `orrery serve`, `transformers serve` and llama.cpp's server.

.venv/bin/python benchmarks/bad_requests.py [--peer PYTHON] [--llama-cpp] [--show] [--output FILE]

All serve the same weights, a tiny Llama with Qwen's chat template, one after the other, on 127.0.0.1. PYTHON is an
interpreter with `transformers[serving]`; llama.cpp is the package `xllamacpp`, beside Orrery. Those that are not named
are not asked. A request is refused when it gets a status
of the client's fault, proper when that is the one the case names, named when the error object says which parameter,
and survived when the connection answers the next request. Peers are asked only for routes that all have. Counted
apart is what OpenAI's API knows and a server may do (``valid``): there a peer that does it is not at fault.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _record import Record, parsed, parser, versions

from http_battery import CASES, SHARED, Case, judge
from http_wire import Wire
from served_models import chat_folder
from server_process import ServerProcess

PATIENCE = 10.0
"""Seconds in which an answer of two tokens, or a refusal, must come."""
COUNTED = ("refused", "expected", "named", "survived", "good")


def main() -> None:
    given = parse()
    peers = {} if given.peer is None else versions(("transformers",), given.peer)
    record = Record(given, ("xllamacpp", "fastapi", "uvicorn"), {"peer": peers})
    cases = CASES[:: len(CASES) // 12] if given.small else CASES
    shared = [case for case in cases if case.path in SHARED]
    verdicts_by_server: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = chat_folder(Path(place) / "tiny-llama")
        if not given.only_peer:
            verdicts_by_server["orrery"] = battery(lambda: orrery(folder), cases, PATIENCE)
        if given.peer:
            verdicts_by_server["transformers"] = battery(lambda: transformers(given.peer, folder), shared, PATIENCE)
        if given.llama_cpp:
            verdicts_by_server["llama.cpp"] = battery(lambda: llama_cpp(folder), shared, PATIENCE)
    wrong = [case.name for case in shared if not case.valid]
    told = {name: told_of(verdicts, wrong) for name, verdicts in verdicts_by_server.items()}
    for name, own in told.items():
        print(name, json.dumps(own["summary"]))
        print(f"{name}, the {len(wrong)} that are wrong anywhere:", json.dumps(own["wrong anywhere"]))
    if given.show:
        for name, verdicts in verdicts_by_server.items():
            show(name, verdicts)
    valid = [case.name for case in cases if case.valid]
    record.write({"valid, if not for this model": valid, "on routes of all": wrong, "servers": told})


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--peer", type=Path, metavar="PYTHON")
    made.add_argument("--llama-cpp", action="store_true")
    made.add_argument("--show", action="store_true")
    made.add_argument("--only-peer", action="store_true")
    return parsed(made, {})


def told_of(verdicts: dict[str, Any], wrong: Sequence[str]) -> dict[str, Any]:
    """Return the verdicts, counted over all and over those that no server of this kind may grant."""
    own = {name: verdicts[name] for name in wrong}
    return {"summary": summary(verdicts), "wrong anywhere": summary(own), "cases": recorded(verdicts)}


def battery(
    start: Callable[[], AbstractContextManager[tuple[int, str]]], cases: Sequence[Case], patience: float
) -> dict[str, Any]:
    """Return how a server answered each case; one that has not answered in time is started again, and that is counted.

    ``start`` begins a server and yields its port and the name of its model.
    """
    by_case: dict[str, Any] = {}
    left = list(cases)
    while left:
        with start() as (port, model):
            wire = Wire(port, patience)
            while left:
                case = left.pop(0)
                verdict, wire = judge(case, wire, model)
                by_case[case.name] = {**{name: getattr(verdict, name) for name in COUNTED}, "said": verdict.said}
                print(f"{case.name}: {verdict.said[:80]}", file=sys.stderr, flush=True)
                # One that no longer writes may well say that it is in good health.
                if verdict.said.startswith("0 ") or wire.ask("GET", "/health").status != 200:
                    by_case[case.name]["stuck"] = True
                    break
            wire.close()
    return by_case


def summary(verdicts: dict[str, Any]) -> dict[str, int]:
    """Return how many there are of each verdict, and how many answers were a fault of the server or were given."""
    counts = {name: sum(one[name] for one in verdicts.values()) for name in COUNTED}
    statuses = [int(one["said"].split()[0]) for one in verdicts.values()]
    return {
        "cases": len(verdicts),
        **counts,
        "accepted": sum(200 <= status < 400 for status in statuses),
        "server errors": sum(status >= 500 for status in statuses),
        "no answer": statuses.count(0),
        "started anew": sum("stuck" in one for one in verdicts.values()),
    }


def recorded(verdicts: dict[str, Any]) -> dict[str, Any]:
    """Return the verdicts with the status alone of what was said."""
    return {
        case: {**{key: value for key, value in one.items() if key != "said"}, "status": int(one["said"].split()[0])}
        for case, one in verdicts.items()
    }


def show(name: str, verdicts: dict[str, Any]) -> None:
    """Print what is wrong with each answer that is not good."""
    for case, one in verdicts.items():
        if not one["good"]:
            print(f"{name}: {case}: {' '.join(word for word in COUNTED[:4] if not one[word])} missing: {one['said']}")


@contextmanager
def orrery(folder: Path) -> Iterator[tuple[int, str]]:
    """Serve a folder with Orrery."""
    with ServerProcess(folder) as server:
        yield server.port, server.model


@contextmanager
def transformers(python: Path, folder: Path) -> Iterator[tuple[int, str]]:
    """Serve a folder with `transformers serve`; the interpreter is one that has it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = [str(python), "-m", "transformers.cli.transformers", "serve", str(folder)]
    command += ["--device", "cpu", "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONPATH", None)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        wait_for(port, process)
        yield port, str(folder)
    finally:
        process.kill()
        process.wait()


@contextmanager
def llama_cpp(folder: Path) -> Iterator[tuple[int, str]]:
    """Serve the same weights with llama.cpp's server, in float32.

    Its file knows the tokenizers of published models alone, so that GPT-2's rule cuts the texts into as many pieces.
    """
    from orrery.exchange.exporting.export import export_gguf
    from orrery.exchange.reading.read import read
    from orrery.exchange.saving.save import save_model
    from orrery.studies.bench.llama_cpp import LlamaCpp
    from orrery.studies.bench.shapes import placeholder_tokenizer
    from orrery.text.chat.folder import FILE

    with tempfile.TemporaryDirectory() as place:
        copy, file = Path(place) / "copy", Path(place) / "tiny-llama.gguf"
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        save_model(copy, read(folder).model, "llama", config, placeholder_tokenizer(config["vocab_size"]))
        (copy / FILE).write_text((folder / FILE).read_text(encoding="utf-8"), encoding="utf-8")
        export_gguf(read(copy), file, "f32")
        server = LlamaCpp(file, "f32", 4, 512, 1, exact=True)
        try:
            yield int(server.address.rpartition(":")[2]), "tiny-llama"
        finally:
            server.close()


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 180) -> None:
    """Return once a server answers."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            with Wire(port) as wire:
                if wire.ask("GET", "/health").status == 200:
                    return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"transformers serve does not answer; exit code {process.poll()}")


if __name__ == "__main__":
    main()
