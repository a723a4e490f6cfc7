"""What it costs to serve with ``--inspect`` where nobody looks: tokens a second, and every bit of the answers.

    python benchmarks/looking_cost.py --output benchmarks/looking_cost.json

The same random model of GPT-2's kind is served by four processes, two with inspection and two without, each a process
of its own, so that none shares a heap, a lock or a garbage collector with another. They take turns in every round, in
an order that is drawn: a greedy and a sampled completion with log probabilities each. Before the rounds a pass is
opened on the servers that can be looked into, so that what it holds is part of the comparison. A rate is in tokens a
second of the processor's time of the server's process. Told are the median over rounds of the ratio of with to without,
and the same of the two that are alike, with and with, without and without: what those differ by is chance. The answers
are compared as JSON, texts and log probabilities, bit for bit.
"""

import argparse
import contextlib
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _record import Record, parsed, parser

BAR = 0.97
"""The least that the rate with inspection may be, in units of that without."""
SERVERS = {"with": True, "with again": True, "without": False, "without again": False}
PAIRS = {
    "with over without": ("with", "without"),
    "with again over without again": ("with again", "without again"),
    "with again over with": ("with again", "with"),
    "without again over without": ("without again", "without"),
}
SIZES = ("layers", "heads", "width", "new")


def main() -> None:
    options = parse()
    if options.child:
        serve(options)
        return
    record = Record(options)
    measured = measure(options)
    for name, row in measured["ratios"].items():
        print(f"tokens/s {name}: {row['median']:.3f} [{row['lower quartile']:.3f} to {row['upper quartile']:.3f}]")
    print(f"answers that differ: {measured['different']} of {measured['answers']}", flush=True)
    record.write(measured)
    ratio = measured["ratios"]["with over without"]["median"]
    sys.exit(int(not (ratio >= BAR and measured["different"] == 0)))


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--layers", type=int, default=4)
    made.add_argument("--heads", type=int, default=8)
    made.add_argument("--width", type=int, default=256)
    made.add_argument("--new", type=int, default=64, help="tokens of an answer")
    made.add_argument("--rounds", type=int, default=30)
    made.add_argument("--child", choices=("with", "without"), help=argparse.SUPPRESS)
    return parsed(made, {"layers": 1, "heads": 2, "width": 32, "new": 8, "rounds": 3})


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Serve four times, let the servers take turns, and return rates and differences."""
    dice = random.Random(0)
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(server(options, inspect)) for name, inspect in SERVERS.items()}
        for name, one in servers.items():
            if SERVERS[name]:
                post(one.url, "/inspect/traces", {"text": "the cat sat on the mat"})
            answer(one, options, 0)  # the first call warms up
        rates: dict[str, list[float]] = {name: [] for name in servers}
        different = 0
        for number in range(options.rounds):
            now = {}
            for name in dice.sample(list(servers), len(servers)):
                now[name], rate = answer(servers[name], options, number)
                rates[name].append(rate)
            different += sum(now[name] != now["without"] for name in now)
    return {
        **{name: getattr(options, name) for name in (*SIZES, "rounds")},
        "ratios": {title: ratios(rates[one], rates[other]) for title, (one, other) in PAIRS.items()},
        "tokens_per_second": {name: round(statistics.median(own), 1) for name, own in rates.items()},
        "answers": 3 * 2 * options.rounds,
        "different": different,
    }


def ratios(one: list[float], other: list[float]) -> dict[str, float]:
    """Return how the ratios within the rounds are distributed."""
    quotients = [a / b for a, b in zip(one, other, strict=True)]
    lower, median, upper = statistics.quantiles(quotients, n=4)
    return {"median": round(median, 4), "lower quartile": round(lower, 4), "upper quartile": round(upper, 4)}


class Served:
    """A server in a process of its own, which says on a pipe what it has used."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.url = self._line("")
        if not self.url.startswith("http"):
            raise RuntimeError(f"a server did not start: {self.url}")

    def seconds(self) -> float:
        """Return what its threads have used of processors."""
        return float(self._line("\n"))

    def _line(self, ask: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(ask)
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextlib.contextmanager
def server(options: argparse.Namespace, inspect: bool) -> Iterator[Served]:
    """Serve the model in a process of its own until the block ends."""
    words = [f"--{name}={getattr(options, name)}" for name in SIZES]
    command = [sys.executable, __file__, "--child", "with" if inspect else "without", *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Served(process)
    finally:
        process.kill()
        process.wait()


def serve(options: argparse.Namespace) -> None:
    """Serve in this process, say where, and then at each line that comes what of processors is used."""
    from orrery.serving.background import serving

    with tempfile.TemporaryDirectory() as folder:
        lm = made(options, Path(folder))
        with serving(lm, "m", inspect=options.child == "with", grace=5) as running:
            print(running.url, flush=True)
            for _ in sys.stdin:
                print(time.process_time(), flush=True)


def made(options: argparse.Namespace, folder: Path) -> Any:
    """Return the model; the same each time."""
    import torch

    from orrery.exchange.saving.save import save_model
    from orrery.families import load_family
    from orrery.language_model.load import load
    from orrery.text.train import train_tokenizer

    if not (folder / "m").exists():
        tokenizer = train_tokenizer("byte_bpe", ["the cat sat on the mat\n"] * 3, 290)
        config = {"vocab_size": tokenizer.size, "n_positions": 512, "n_embd": options.width}
        config |= {"n_layer": options.layers, "n_head": options.heads, "eos_token_id": None, "bos_token_id": None}
        torch.manual_seed(0)
        save_model(folder / "m", load_family("gpt2").spec(config).build(0).eval(), "gpt2", config, tokenizer)
    return load(folder / "m", "cpu", "float32", say=lambda line: None)


def answer(one: Served, options: argparse.Namespace, seed: int) -> tuple[list[Any], float]:
    """Return two answers without what differs from call to call, and tokens a second of the server's processor."""
    body = {"prompt": "the cat sat", "max_tokens": options.new, "logprobs": 3, "seed": seed}
    used = one.seconds()
    answers = [post(one.url, "/v1/completions", {**body, "temperature": temperature}) for temperature in (0, 1)]
    used = one.seconds() - used
    written = sum(each["usage"]["completion_tokens"] for each in answers)
    return [[each["choices"], each["usage"]] for each in answers], written / used


def post(url: str, path: str, body: dict[str, Any]) -> Any:
    """Return the JSON of an answer."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = json.loads(response.read())
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"{path}: {content}")
    return content


if __name__ == "__main__":
    main()
