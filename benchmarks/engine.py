"""What the batching engine gains and what it costs, with random weights of GPT-2's shape (124M).

    python benchmarks/engine.py --kernel compiled --output benchmarks/engine.json
    python benchmarks/engine.py --parts streams overhead --kernel compiled

Timings are medians of ratios over interleaved rounds: what is compared runs in turns, in one process.

- streams: tokens a second of eight streams beside one, and beside the fastest way to write a single stream
- overhead: the share of a round that is not the model's step, and where samplers put it
- prompts: eight prompts of 32 tokens, read in one call and one by one
- pages: a step over pages beside one over slots, and what a fork of a long beginning costs
- fairness: the waits of seven streams for a token before a prompt of 6,000 tokens comes and while it is read, by the
  size of the pieces in which it is read, and how long the prompt itself waits for its first token
"""

import argparse
import json
import statistics
from collections.abc import Callable
from itertools import pairwise
from time import perf_counter
from typing import Any

import torch
from _record import Record, parsed, parser

from orrery.families import load_family
from orrery.generation.compiled_step import stepping
from orrery.generation.engine import Engine
from orrery.generation.requests import Request
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from orrery.nn.cache.kinds import cache_for
from orrery.nn.cache.pages import PagePool
from orrery.text.train import train_tokenizer

SHAPES = {
    "gpt2": {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257},
    "small": {"n_embd": 128, "n_layer": 4, "n_head": 4, "vocab_size": 5000},
    "tiny": {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 300},
}
PROMPT = 32
CHUNKS = (256, 64)
"""Tokens of a prompt that are read in one round; the first is the engine's own."""


class Bench:
    """A model, what writes with it, and a tokenizer whose pieces stand for its ids."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, family = options, load_family("gpt2")
        config = {**SHAPES[options.shape], "n_positions": 8192}
        torch.manual_seed(0)
        self.model = family.spec(config).build(0).eval()
        self.writer = stepping(self.model, options.kernel)
        self.tokenizer = train_tokenizer("byte_bpe", ["the cat sat on the mat"], 270)
        self.size = self.tokenizer.size  # of the ids that are written, whose text is decoded

    def prompt(self, size: int, seed: int) -> list[int]:
        rng = torch.Generator().manual_seed(seed)
        return torch.randint(0, self.size, (size,), generator=rng).tolist()

    def engine(self, context: int, **settings: Any) -> Engine:
        return Engine(settings.pop("model", self.writer), self.tokenizer, context, **settings)

    def request(self, size: int, seed: int, new: int, context: int, **how: Any) -> Request:
        how.setdefault("sampler", sampler(vocabulary=self.size))
        return Request(self.prompt(size, seed), Limits(new, context), seed=seed, **how)


def streams(bench: Bench) -> dict[str, Any]:
    """Return tokens a second while rows are written, without the reading of prompts."""
    new, context = bench.options.tokens, 1024

    def written(rows: int) -> float:
        engine = bench.engine(context, most_rows=rows, kept_tokens=0)
        answers = [engine.add(bench.request(PROMPT, seed, new, context)) for seed in range(rows)]
        while not all(own.written for own in answers):
            engine.advance()
        before, began = sum(len(own.written) for own in answers), perf_counter()
        while engine.advance():
            pass
        return (sum(len(own.written) for own in answers) - before) / (perf_counter() - began)

    @torch.no_grad()
    def single() -> float:
        logits, session = bench.writer.start(torch.tensor([bench.prompt(PROMPT, 0)]), context)
        began = perf_counter()
        for _ in range(new):
            logits = bench.writer.step(logits[:, : bench.size].argmax(-1, keepdim=True), session)[:, -1]
        return new / (perf_counter() - began)

    rates = in_turns({"eight": lambda: written(8), "one": lambda: written(1), "single": single}, bench.options.rounds)
    return {
        "tokens_per_second": {name: statistics.median(values) for name, values in rates.items()},
        "eight_over_one": ratio(rates["eight"], rates["one"]),
        "eight_over_single": ratio(rates["eight"], rates["single"]),
    }


def overhead(bench: Bench) -> dict[str, Any]:
    """Return milliseconds of a round of eight rows beside those of the model's step in it, by sampler."""
    context, new = 1024, bench.options.tokens
    kinds = {
        "greedy": sampler(vocabulary=bench.size),
        "top_p": sampler(temperature=0.8, top_p=0.95, vocabulary=bench.size),
        "top_k": sampler(temperature=0.8, top_k=50, vocabulary=bench.size),
        "penalties": sampler(temperature=0.8, frequency_penalty=0.3, vocabulary=bench.size),
    }
    rows = {}
    for name, chosen in kinds.items():
        watched = Watched(bench.writer)
        engine = bench.engine(context, most_rows=8, kept_tokens=0, model=watched)
        answers = [engine.add(bench.request(PROMPT, seed, new, context, sampler=chosen)) for seed in range(8)]
        while not all(own.written for own in answers):
            engine.advance()
        rounds, watched.seconds, began = 0, 0.0, perf_counter()
        while engine.advance():
            rounds += 1
        spent = perf_counter() - began
        milliseconds = {"round": 1e3 * spent / rounds, "step": 1e3 * watched.seconds / rounds}
        rows[name] = {**milliseconds, "share": 1 - watched.seconds / spent}
    return rows


class Watched:
    """A model that counts the seconds of its steps."""

    def __init__(self, model: Any) -> None:
        self._model, self.seconds = model, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def step(self, *given: Any, **how: Any) -> torch.Tensor:
        began = perf_counter()
        try:
            return self._model.step(*given, **how)
        finally:
            self.seconds += perf_counter() - began


def prompts(bench: Bench) -> dict[str, Any]:
    """Return seconds until eight short prompts are read."""
    context = 1024

    def read(deterministic: bool) -> float:
        engine = bench.engine(context, most_rows=8, kept_tokens=0, deterministic=deterministic)
        for seed in range(8):
            engine.add(bench.request(PROMPT - seed % 4, seed, 1, context))
        began = perf_counter()
        while engine.advance():
            pass
        return perf_counter() - began

    seconds_of_rounds = in_turns({"together": lambda: read(False), "alone": lambda: read(True)}, bench.options.rounds)
    seconds = {name: statistics.median(values) for name, values in seconds_of_rounds.items()}
    return {"seconds": seconds, "alone_over_together": ratio(seconds_of_rounds["alone"], seconds_of_rounds["together"])}


def pages(bench: Bench) -> dict[str, Any]:
    """Return the eager step of eight rows by the kind of their memory, and the cost of a fork."""
    rows = {}
    for length in (64, 1024):
        prompt = torch.tensor([bench.prompt(length, 0)])
        sessions = {}
        with torch.no_grad():
            for name, pool in (("slots", None), ("pages", PagePool(16))):
                cache = cache_for(bench.model.stack.masks, 1, 2048, pool=pool)
                sessions[name] = bench.model.start(prompt, 2048, cache=cache)[1].select([0] * 8)
        token = torch.zeros(8, 1, dtype=torch.long)

        @torch.no_grad()
        def step(session: Any) -> float:
            began = perf_counter()
            bench.model.step(token, session)  # noqa: B023
            return perf_counter() - began

        def fork(session: Any) -> float:
            began = perf_counter()
            session.fork([0])
            return perf_counter() - began

        does = {name: lambda own=own: step(own) for name, own in sessions.items()}
        steps = in_turns(does, 4 * bench.options.rounds)
        forks = in_turns({name: lambda own=own: fork(own) for name, own in sessions.items()}, bench.options.rounds)
        rows[str(length)] = {
            "step_pages_over_slots": ratio(steps["pages"], steps["slots"]),
            "fork_milliseconds": {name: 1e3 * statistics.median(values) for name, values in forks.items()},
        }
    return rows


def fairness(bench: Bench) -> dict[str, Any]:
    """Return the waits of seven streams for a token, without and with a long prompt beside them, by its pieces."""
    return {f"pieces of {chunk} tokens": waits(bench, chunk) for chunk in CHUNKS}


def waits(bench: Bench, chunk: int) -> dict[str, Any]:
    """Return milliseconds between tokens before a long prompt comes and until it has its first token.

    Nothing is divided by the time of a round while the prompt is read, which the prompt makes long.
    """
    size, context = bench.options.prompt, 2048 * -(-(bench.options.prompt + 200) // 2048)
    told: list[list[float]] = [[] for _ in range(7)]
    engine = bench.engine(context, most_rows=8, chunk=chunk, kept_tokens=0)
    for seed, times in enumerate(told):
        listen = lambda written, times=times: times.append(perf_counter())  # noqa: E731
        engine.add(bench.request(PROMPT, seed, 200, context, told=listen))
    for _ in range(40):
        engine.advance()
    counts = [len(times) for times in told]
    long, began, missed, rounds = engine.add(bench.request(size, 99, 2, context)), perf_counter(), 0, 0
    while not long.written:
        engine.advance()
        rounds += 1
        missed += sum(len(times) - count != min(rounds, 200 - count) for times, count in zip(told, counts, strict=True))
    first = perf_counter() - began
    before = [gap for times, count in zip(told, counts, strict=True) for gap in gaps(times[5:count])]
    beside = [gap for times, count in zip(told, counts, strict=True) for gap in gaps(times[count - 1 :])]
    return {
        "prompt": size,
        "milliseconds between tokens before": spread(before),
        "milliseconds between tokens beside the prompt": spread(beside),
        "longest beside over median before": round(max(beside) / statistics.median(before), 2),
        "seconds until the prompt's first token": round(first, 3),
        "rounds": rounds,
        "rounds without a token of a stream": missed,
    }


def spread(seconds: list[float]) -> dict[str, float]:
    """Return the median and the longest, in milliseconds."""
    return {"median": round(1e3 * statistics.median(seconds), 2), "longest": round(1e3 * max(seconds), 2)}


def gaps(times: list[float]) -> list[float]:
    """Return the seconds between neighbours of these."""
    return [later - earlier for earlier, later in pairwise(times)]


def in_turns(does: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return what each of several functions measures, one after the other in every round; the first is not counted."""
    by_name: dict[str, list[float]] = {name: [] for name in does}
    for number in range(rounds + 1):
        for name, do in does.items():
            value = do()
            if number:
                by_name[name].append(value)
    return by_name


def ratio(one: list[float], other: list[float]) -> float:
    """Return the median of the ratios of pairs that ran side by side."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


PARTS = {"streams": streams, "overhead": overhead, "prompts": prompts, "pages": pages, "fairness": fairness}


def main() -> None:
    options = parse()
    if options.threads:
        torch.set_num_threads(options.threads)
    record = Record(options, ["numba"])
    bench = Bench(options)
    measured: dict[str, Any] = {"shape": options.shape, "kernel": options.kernel, "rounds": options.rounds}
    for name in options.parts:
        measured[name] = PARTS[name](bench)
        print(f"{name}: {json.dumps(measured[name], indent=1)}", flush=True)
        record.write(measured)


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    made.add_argument("--shape", choices=SHAPES, default="gpt2")
    made.add_argument("--kernel", default="auto", help="of the steps: auto, eager, compiled")
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--tokens", type=int, default=64, help="of each answer")
    made.add_argument("--prompt", type=int, default=6000, help="tokens of the long prompt")
    made.add_argument("--threads", type=int, help="of torch")
    small = {"shape": "tiny", "kernel": "eager", "rounds": 1, "tokens": 8, "prompt": 600}
    return parsed(made, small)


if __name__ == "__main__":
    main()
