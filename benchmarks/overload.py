"""What a server does under more clients than it has room for: figures, of one run on one machine.

.venv/bin/python benchmarks/overload.py [--rounds 5] [--requests 10000] [--leaving 100] [--output FILE]

`orrery serve` serves a tiny Llama in a process of its own; clients are threads of this one, on 127.0.0.1, and share
the processors with it. 64 clients ask at once (4 rows, a queue of 16): answers that are not those of the same prompt
alone, seconds of refusals, of accepted answers and of /health meanwhile. Then requests one after another over four
connections: resident memory after each thousand, and its slope. Then clients that leave a stream after some tokens,
with a deeper model whose tokens take some milliseconds: tokens written after the connection was closed.
"""

import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _record import Record, parsed, parser

from http_wire import Wire
from served_models import chat_folder
from server_load import Stream, Watch, all_at_once, ask, outcome, percentile, until
from server_process import ServerProcess, metrics

CLIENTS, ROWS, QUEUE = 64, 4, 16


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--requests", type=int, default=10_000)
    made.add_argument("--leaving", type=int, default=100)
    given = parsed(made, {"rounds": 1, "requests": 40, "leaving": 3})
    record = Record(given, ("fastapi", "uvicorn"))
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        small, deep = chat_folder(Path(place) / "small"), chat_folder(Path(place) / "deep", layers=24)
        with ServerProcess(small, "--most-rows", str(ROWS), "--queue", str(QUEUE)) as server:
            result["64 clients at once"] = storm(server, given.rounds)
            result["memory"] = memory(server, given.requests)
        with ServerProcess(deep, "--most-rows", str(ROWS)) as server:
            result["leaving"] = leaving(server, given.leaving)
            result["stop"] = stop(server)
    print(json.dumps(result, indent=1))
    record.write(result)


def body(model: str, number: int, tokens: int) -> dict[str, Any]:
    """Return a request that no other client sends."""
    prompt = f"the cat {number} sat"
    return {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 1, "seed": number}


def times(values: Sequence[float]) -> dict[str, float]:
    """Return how such times are distributed, in milliseconds."""
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(1000 * percentile(values, share), 2) for name, share in shares.items()} | {"count": len(values)}


def storm(server: ServerProcess, rounds: int) -> dict[str, Any]:
    """Return what 64 clients at once got."""
    bodies = [body(server.model, number, 64) for number in range(CLIENTS)]
    alone = [ask(server.port, one) for one in bodies]
    outcomes, health = [], []
    for _ in range(rounds):
        with Watch(server.port) as watch:
            outcomes.append(all_at_once(server.port, bodies))
        health += watch.seconds
    flat = [(number, one) for own in outcomes for number, one in enumerate(own)]
    answered = [(number, one) for number, one in flat if one.status == 200]
    refused = [one for _, one in flat if one.status == 429]
    return {
        "rounds": rounds,
        "requests": len(flat),
        "answered": len(answered),
        "refused with 429": len(refused),
        "of these with Retry-After": sum(one.retry_after for one in refused),
        "anything else": len(flat) - len(answered) - len(refused),
        "answers that differ from the same alone": sum(one.text != alone[number].text for number, one in answered),
        "ms of one alone": times([one.seconds for one in alone]),
        "ms of those answered": times([one.seconds for _, one in answered]),
        "ms of a refusal": times([one.seconds for one in refused]),
        "ms of /health meanwhile": times(health),
    }


def memory(server: ServerProcess, requests: int) -> dict[str, Any]:
    """Return the resident memory after each tenth of so many requests, and its slope over the second half."""
    step, points = max(1, requests // 10), [(0, server.memory())]
    began = time.perf_counter()
    for done in range(step, requests + 1, step):
        statuses: list[int] = []

        def some(first: int, collected: list[int] = statuses) -> None:
            with Wire(server.port) as wire:
                for number in range(first, first + step // 4):
                    collected.append(outcome(wire, body(server.model, number % 500, 4)).status)

        threads = [threading.Thread(target=some, args=(done + part * step,)) for part in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if set(statuses) != {200}:
            raise RuntimeError(f"statuses {set(statuses)}")
        points.append((done, server.memory()))
    half = points[len(points) // 2 :]
    slope = statistics.linear_regression([n for n, _ in half], [size for _, size in half]).slope
    return {
        "requests": requests,
        "requests a second": round(requests / (time.perf_counter() - began), 1),
        "MiB": [round(size / 2**20, 1) for _, size in points],
        "bytes a request over the second half": round(slope, 1),
    }


def leaving(server: ServerProcess, rounds: int) -> dict[str, Any]:
    """Return how many tokens were written after a client had closed its stream."""
    beyond, seconds_a_token, free = [], [], []
    for number in range(rounds):
        before = written(server)
        stream = Stream(server.port, body(server.model, number, 400))
        began = time.perf_counter()
        read = len(stream.texts(10 + number % 20))
        seconds_a_token.append((time.perf_counter() - began) / read)
        stream.leave()
        left = time.perf_counter()
        if not until(lambda: metrics(server.get("/metrics").decode())["orrery_rows"] == 0, every=0.0005):
            raise RuntimeError("the row was not freed")
        free.append(time.perf_counter() - left)
        beyond.append(int(written(server) - before) - read)
    return {
        "rounds": rounds,
        "ms a token": round(1000 * statistics.median(seconds_a_token), 2),
        "tokens written beyond those whose text was read": {
            "median": statistics.median(beyond),
            "max": max(beyond),
            "counts": {str(n): beyond.count(n) for n in sorted(set(beyond))},
        },
        "ms until the row was seen free": times(free),
    }


def stop(server: ServerProcess) -> dict[str, Any]:
    """Return how a server ends under load."""
    streams = [Stream(server.port, body(server.model, number, 100)) for number in range(ROWS)]
    for stream in streams:
        stream.texts(1)
    began = time.perf_counter()
    server.process.terminate()
    ends = [list(stream.events())[-1] for stream in streams]
    code = server.process.wait(60)
    return {
        "streams": len(streams),
        "that came to their end": ends.count("[DONE]"),
        "exit code": code,
        "seconds": round(time.perf_counter() - began, 2),
    }


def written(server: ServerProcess) -> float:
    """Return how many tokens the server has written."""
    return metrics(server.get("/metrics").decode()).get("orrery_generation_tokens_total", 0)


if __name__ == "__main__":
    main()
