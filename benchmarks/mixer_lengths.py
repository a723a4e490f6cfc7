"""Attention and the mixers after it by the length of the row: time forward, time of a training step, decoding memory.

    python benchmarks/mixer_lengths.py --threads 1 --output benchmarks/mixer_lengths.json
    python benchmarks/mixer_lengths.py --mixers gla mamba --lengths 1024 4096 --rounds 3

One block with one branch of the same width each, one row. Attention runs through torch's fused kernel with the causal
mask, every other in its chunked form. A round times all mixers at one length, one after the other, and a ratio is
the median over rounds of what attention took in that round by what the mixer took: so what else the machine does
meets all of them alike. The memory is what a session says that it holds, and what the process gained (``VmRSS``).
"""

import gc
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from _record import Record, parsed, parser
from torch import Tensor

from orrery.families import load_family
from orrery.models.decoder import Decoder
from orrery.models.initialise import initialise
from orrery.nn.attention.kernels import sdpa
from orrery.nn.block import Block

WIDTH, HEADS, VOCABULARY, LONGEST = 256, 4, 16, 2**17
HEADED = {"hidden_size": WIDTH, "num_heads": HEADS}
SQUARE = {**HEADED, "key_head_dim": WIDTH // HEADS, "value_head_dim": WIDTH // HEADS}
STATES: Mapping[str, Mapping[str, Any]] = {
    "linear_transformer": SQUARE,
    "retnet": SQUARE,
    "gla": {**SQUARE, "key_head_dim": WIDTH // HEADS // 2},
    "gated_deltanet": SQUARE,
    "based": HEADED,
    "mamba": {"hidden_size": WIDTH, "expand": 1},
    "mamba2": {
        "hidden_size": WIDTH,
        "expand": 1,
        "num_heads": HEADS,
        "head_dim": WIDTH // HEADS,
        "state_size": 64,
        "n_groups": 1,
    },
    "s4d": {"hidden_size": WIDTH},
    "s4": {"hidden_size": WIDTH},
    "hyena": {"hidden_size": WIDTH},
    "rwkv": {"hidden_size": WIDTH},
}
ATTENTION = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "num_key_value_heads": HEADS}
"""As wide as the attention: heads of 64 channels, in GLA with keys of half as many, as its paper has them."""
LENGTHS = tuple(1024 * 2**n for n in range(6))
REMEMBERED = (1024, 8192, 65536)


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--mixers", nargs="+", default=list(STATES))
    made.add_argument("--lengths", nargs="+", type=int, default=LENGTHS)
    made.add_argument("--remembered", nargs="*", type=int, default=REMEMBERED)
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--threads", type=int, default=torch.get_num_threads())
    small = {"mixers": ["gla", "rwkv"], "lengths": [64], "remembered": [64], "rounds": 1}
    options = parsed(made, small)
    torch.set_num_threads(options.threads)
    record = Record(options)
    models = {
        "attention": one_block("llama", ATTENTION),
        **{name: one_block(name, STATES[name]) for name in options.mixers},
    }
    times = [row for length in options.lengths for row in timed(models, length, options.rounds)]
    memories = [row for name, model in models.items() for row in remembered(name, model, options.remembered)]
    sizes = {"width": WIDTH, "heads": HEADS, "threads": options.threads, "rounds": options.rounds}
    record.write({**sizes, "times": times, "memory": memories})


def one_block(family: str, config: Mapping[str, Any]) -> Decoder:
    """Return a language model of one block that has the family's first mixer for its only branch."""
    rules = load_family(family)
    layers = {"num_hidden_layers": 1, "max_position_embeddings": LONGEST, "vocab_size": VOCABULARY}
    spec = rules.spec({**config, **layers})
    role, residual = next(iter(spec.stack.blocks[0].residuals.items()))
    block = Block.Spec(residuals={role: residual})
    masks = {residual.branch.mask: spec.stack.masks[residual.branch.mask]}
    model = replace(spec, stack=replace(spec.stack, blocks=(block,), masks=masks)).build(0)
    initialise(model, 1, seed=0)
    return model


def timed(models: Mapping[str, Decoder], length: int, rounds: int) -> list[dict[str, Any]]:
    """Return each mixer's seconds at one length, and how often faster than attention it was."""
    ids = torch.randint(VOCABULARY, (1, length), generator=torch.Generator().manual_seed(0))
    ways = {"forward": forward, "training": training}
    seen: dict[tuple[str, str], list[float]] = {(way, name): [] for way in ways for name in models}
    for turn in range(rounds + 1):
        for way, run in ways.items():
            for name, model in models.items():
                begin = time.perf_counter()
                run(model, ids)
                if turn:  # the first round warms up
                    seen[way, name].append(time.perf_counter() - begin)
    rows = []
    for (way, name), seconds in seen.items():
        ratio = statistics.median(a / b for a, b in zip(seen[way, "attention"], seconds, strict=True))
        took = statistics.median(seconds)
        rows.append({"length": length, "way": way, "mixer": name, "seconds": took, "faster": ratio})
        print(f"{length:7,} {way:9} {name:19} {1000 * took:10.1f} ms  {ratio:7.2f} of attention's speed", flush=True)
    return rows


@torch.no_grad()
def forward(model: Decoder, ids: Tensor) -> None:
    model.hidden(ids, kernel=sdpa)


def training(model: Decoder, ids: Tensor) -> None:
    model.hidden(ids, kernel=sdpa).square().mean().backward()
    model.zero_grad()


@torch.no_grad()
def remembered(name: str, model: Decoder, lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return what a session holds after so many tokens, and what the process gained since its first token."""
    rows: list[dict[str, Any]] = []
    if not lengths:
        return rows
    ids = torch.randint(VOCABULARY, (1, max(lengths)), generator=torch.Generator().manual_seed(0))
    _, session = model.start(ids[:, :1], capacity=max(lengths))
    gc.collect()
    taken, before = 1, resident()
    for length in sorted(lengths):
        while taken < length:
            piece = ids[:, taken : min(length, taken + 512)]
            model.step(piece, session)
            taken += piece.shape[1]
        gc.collect()
        rows.append({"mixer": name, "tokens": length, "bytes": session.bytes(), "gained": resident() - before})
        print(
            f"{length:7,} tokens {name:19} {session.bytes():12,} bytes held, {rows[-1]['gained']:12,} gained",
            flush=True,
        )
    return rows


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
