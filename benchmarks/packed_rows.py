"""Memory of mixers with a state over packed rows, forward and backward, at lengths that double.

    python benchmarks/packed_rows.py --output benchmarks/packed_rows.json
    python benchmarks/packed_rows.py --families lstm --tokens 2048 4096 --longest 4096

One row holds documents of drawn lengths. Counted is the most that torch's allocator held at once, what the model holds
aside; it is the same at every run, where resident memory is not.
"""

import contextlib
import os
import sys
from collections.abc import Callable

import torch
from _record import Record, parsed, parser
from torch.profiler import ProfilerActivity, profile

from orrery.families import load_family

FAMILIES = ("elman_rnn", "lstm", "gru", "nplm")
TOKENS = (8192, 16384, 32768)
VOCABULARY = 16


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--families", nargs="+", default=FAMILIES)
    made.add_argument("--tokens", nargs="+", type=int, default=TOKENS)
    made.add_argument("--longest", type=int, default=128, help="of a document")
    options = parsed(made, {"families": ["elman_rnn"], "tokens": [256, 512], "longest": 32})
    record = Record(options)
    rows = []
    for family in options.families:
        model = tiny(family)
        for tokens in options.tokens:
            counted = peak(model, documents(tokens, options.longest))
            rows.append({"family": family, "tokens": tokens, "counted": counted, "per_token": counted / tokens})
            print(f"{family:10} {tokens:7,} tokens  {counted / 2**20:8.2f} MiB  {counted / tokens:8.0f} bytes a token")
    record.write({"longest": options.longest, "rows": rows})


def tiny(family: str) -> torch.nn.Module:
    """Return a model of two layers of eight channels."""
    rules = load_family(family)
    return rules.spec({**rules.TINY, "hidden_size": 8, "vocab_size": VOCABULARY}).build(0)


def documents(tokens: int, longest: int) -> torch.Tensor:
    """Return the numbers of documents of 1 to ``longest`` tokens that fill one row."""
    rng = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, longest + 1, (tokens,), generator=rng)
    return torch.repeat_interleave(torch.arange(tokens), lengths)[None, :tokens]


def peak(model: torch.nn.Module, documents_BL: torch.Tensor) -> int:
    """Return the most bytes that one forward and backward pass holds at once."""
    ids_BL = torch.randint(VOCABULARY, documents_BL.shape, generator=torch.Generator().manual_seed(1))

    def run() -> None:
        model.logits(ids_BL, documents=documents_BL).logsumexp(-1).mean().backward()
        model.zero_grad()

    return held_at_most(run)


def held_at_most(run: Callable[[], None]) -> int:
    """Return the most bytes that torch's allocator held at once beyond what it held before."""
    with quiet(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        run()
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]  # type: ignore[union-attr]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


@contextlib.contextmanager
def quiet():
    """Keep the profiler's own lines off the terminal: it writes past Python."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


if __name__ == "__main__":
    main()
