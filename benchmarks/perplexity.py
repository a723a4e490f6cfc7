"""Perplexity of a text beside transformers: the same windows of the same tokens, in float32, and the memory of each.

    python benchmarks/perplexity.py --model MODEL --text FILE --output benchmarks/perplexity.json

MODEL is a Hugging Face folder, or a GGUF file, which transformers gets unpacked. The text is read in windows without
overlap, in rounds; in each round one program reads the round's part and then the other, in turns which is first, each
in a process of its own that keeps its model. Orrery's is `evaluate_perplexity`; transformers is called as its
documentation does, window by window, and in batches of as many windows as ours. A ratio is the median over rounds of
the ratio within a round. Memory is the most that a process has had less what it had with its model loaded.
Without --model a tiny random Llama reads words of three letters.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _record import Record, parsed, parser

from served_models import chat_folder

PROGRAMS = ("orrery", "transformers, window by window", "transformers, in batches")
Measured = Callable[[str], tuple[float, int]]
"""Of a text the sum of its nats, and how many tokens were scored."""


def main() -> None:
    options = parse()
    if options.child:
        child(options)
        return
    record = Record(options, ["transformers"])
    if not options.small:  # no program waits for machine code, so that the first one on a machine does without
        subprocess.run([sys.executable, "-m", "orrery.kernels.step.build"], check=True)
    with tempfile.TemporaryDirectory() as place:
        model, text = inputs(options, Path(place))
        measured = compared(options, model, unpacked(model, Path(place)), text)
    for name in PROGRAMS:
        one = measured["programs"][name]
        print(
            f"{name:32} {one['seconds']:8.1f} s, perplexity {one['perplexity']:.5f}, {one['memory'] / 2**20:,.0f} MiB"
        )
    print(", ".join(f"{ratio:.2f} times as fast as {name}" for name, ratio in measured["ratios"].items()))
    record.write(measured)


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--model", type=Path)
    made.add_argument("--text", type=Path)
    made.add_argument("--length", type=int, default=512, help="tokens of a window")
    made.add_argument("--batch", type=int, default=8, help="windows read together")
    made.add_argument("--rounds", type=int, default=8, help="parts of the text")
    made.add_argument("--bytes", type=int, default=1_000_000, help="of the text")
    made.add_argument("--child", help=argparse.SUPPRESS)
    return parsed(made, {"length": 24, "batch": 2, "rounds": 2, "bytes": 2000}, needs=["model", "text"])


def inputs(options: argparse.Namespace, place: Path) -> tuple[Path, str]:
    """Return the model and the text that are asked for, or small ones."""
    model: Path = options.model or chat_folder(place / "tiny")
    words = random.Random(1).choices(["the", "cat", "dog", "sat"], k=options.bytes // 4)
    text = " ".join(words) if options.text is None else options.text.read_text(encoding="utf-8")
    return model, text.encode()[: options.bytes].decode(errors="ignore")


def unpacked(model: Path, place: Path) -> Path:
    """Return a folder that transformers reads."""
    if model.is_dir():
        return model
    from orrery.exchange.saving.import_model import import_model

    import_model(model, place / "unpacked", say=print)
    return place / "unpacked"


def compared(options: argparse.Namespace, model: Path, folder: Path, text: str) -> dict[str, Any]:
    """Let the programs read part after part; return their seconds, perplexities and memory, and the ratios."""
    size = math.ceil(len(text) / options.rounds)
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    asked = ["--length", str(options.length), "--batch", str(options.batch)]
    programs = {
        name: subprocess.Popen(
            [sys.executable, __file__, "--small", "--child", name, "--model", str(own), *asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, own in zip(PROGRAMS, (model, folder, folder), strict=True)
    }
    rows: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        order = [*PROGRAMS[number % len(PROGRAMS) :], *PROGRAMS[: number % len(PROGRAMS)]]
        rows.append({name: told(programs[name], part) for name in order})
        print(f"round {number + 1} of {len(parts)}", flush=True)
    sums = {
        name: (sum(row[name]["nats"] for row in rows), sum(row[name]["tokens"] for row in rows)) for name in PROGRAMS
    }
    for process in programs.values():
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
    return {
        "model": model.name,
        "bytes": len(text.encode()),
        **{name: getattr(options, name) for name in ("length", "batch", "rounds")},
        "programs": {
            name: {
                "seconds": sum(row[name]["seconds"] for row in rows),
                "perplexity": math.exp(sums[name][0] / sums[name][1]),
                "tokens": sums[name][1],
                "memory": max(row[name]["memory"] for row in rows),
            }
            for name in PROGRAMS
        },
        "ratios": {
            name: median(row[name]["seconds"] / row["orrery"]["seconds"] for row in rows) for name in PROGRAMS[1:]
        },
    }


def told(process: "subprocess.Popen[str]", part: str) -> dict[str, Any]:
    """Return what a process says of a part of the text."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(part) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        sys.exit(f"a child ended with {process.wait()}")
    return dict(json.loads(line))


def child(options: argparse.Namespace) -> None:
    """Read parts of the text as one of the programs, and say of each what it took."""
    read = ours(options) if options.child == "orrery" else theirs(options)
    read("the cat sat on the mat\n" * 40)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins at what is held now
    before = peak()
    for line in sys.stdin:
        part, begin = json.loads(line), time.perf_counter()
        nats, tokens = read(part)
        seconds = time.perf_counter() - begin
        memory = peak() - before
        print(json.dumps({"seconds": seconds, "nats": nats, "tokens": tokens, "memory": memory}), flush=True)


def peak() -> int:
    """Return the most resident memory of this process since the peak was put back."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def loaded(path: Path) -> Any:
    from orrery.language_model.load import load

    return load(path, "cpu", "float32", say=lambda line: None)


def ours(options: argparse.Namespace) -> Measured:
    from orrery.evaluation.perplexity import evaluate_perplexity, windows_of

    lm = loaded(options.model)

    def read(text: str) -> tuple[float, int]:
        evaluated = evaluate_perplexity(lm, [text], length=options.length, batch_size=options.batch)
        tokens = sum(len(window.ids) for window in windows_of(lm, [text], options.length))
        return evaluated["loss"] * tokens, tokens

    return read


def theirs(options: argparse.Namespace) -> Measured:
    import torch
    from transformers import AutoModelForCausalLM

    from orrery.evaluation.perplexity import windows_of

    lm = loaded(options.model)
    model: Any = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()
    count = options.batch if "batches" in options.child else 1

    @torch.no_grad()
    def read(text: str) -> tuple[float, int]:
        whole = [(*one.before, *one.ids) for one in windows_of(lm, [text], options.length)]
        nats, tokens = 0.0, 0
        by_length: dict[int, list[tuple[int, ...]]] = {}
        for row in whole:
            by_length.setdefault(len(row), []).append(row)
        for rows in by_length.values():
            for start in range(0, len(rows), count):
                ids = torch.tensor(rows[start : start + count])
                logits = model(ids[:, :-1]).logits
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")
                nats, tokens = nats + loss.item(), tokens + ids[:, 1:].numel()
        return nats, tokens

    return read


if __name__ == "__main__":
    main()
