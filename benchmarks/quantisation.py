"""What whole numbers cost a model and what they save: perplexity, bytes, and seconds to load.

.venv/bin/python benchmarks/quantisation.py RUN TEXT [--output FILE]

RUN is any model, such as the run of recipes/shakespeare-char.yaml, and TEXT what its perplexity is measured on: the
last tenth of tiny Shakespeare, which that recipe does not train on. Each kind is written as `orrery quantise` does and
read again; a load is the best of five, from the system's cache, tensors and tokenizer alike.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _record import Record, parsed, parser

from orrery.data.corpora import read_corpus
from orrery.evaluation.perplexity import evaluate_perplexity
from orrery.exchange.exporting.quantised import quantise
from orrery.language_model.load import load

KINDS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "int8": {"bits": 8},
    "int4, groups of 256": {"bits": 4, "group": 256},
    "int4, groups of 128": {"bits": 4, "group": 128},
    "int4": {"bits": 4},
}
LOADS = 5


def main() -> None:
    made = parser(__doc__)
    made.add_argument("run", nargs="?")
    made.add_argument("text", nargs="?")
    given = parsed(made, {}, needs=("run", "text"))
    record = Record(given, ["numba"])
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        if given.small:
            given.run, given.text = small(Path(place))
        texts = [document.text for document in read_corpus(given.text)]
        for number, (name, settings) in enumerate(KINDS.items()):
            folder, note = given.run, {}
            if settings:
                folder = str(Path(place) / str(number))
                done = quantise(given.run, folder, **settings)
                note = {"bytes": done.after}
                found["as it is"].setdefault("bytes", done.before)
            found[name] = {**note, **measured(folder, texts)}
            plain = found["as it is"]["perplexity"]
            found[name]["change_percent"] = round(100 * (found[name]["perplexity"] / plain - 1), 4)
    for name, row in found.items():
        print(
            f"{name:20} {row['bytes']:12,} bytes  loaded in {row['load_seconds']:.3f} s  "
            f"perplexity {row['perplexity']:.4f} ({row['change_percent']:+.3f} %)"
        )
    record.write({"text": Path(given.text).name, "kinds": found})


def small(folder: Path) -> tuple[str, str]:
    """Write a model with random weights and a text, for the small form."""
    import torch

    from orrery.studies.bench.shapes import make_model

    (folder / "text.txt").write_text("the cat sat on the mat\n" * 20, encoding="utf-8")
    return str(make_model("gpt2-tiny", folder / "run", torch.float32, print)), str(folder / "text.txt")


def measured(folder: str, texts: list[str]) -> dict[str, float]:
    """Return the perplexity and the time of a load."""
    times = []
    for _ in range(LOADS):
        start = time.perf_counter()
        lm = load(folder, say=lambda line: None)
        times.append(time.perf_counter() - start)
    print(f"{folder}: measuring", file=sys.stderr)
    perplexity = evaluate_perplexity(lm, texts)["perplexity"]
    return {"load_seconds": round(min(times), 4), "perplexity": round(perplexity, 5)}


if __name__ == "__main__":
    main()
