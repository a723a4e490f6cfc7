"""What whole numbers cost a model and what they save: perplexity, bytes, and seconds to load.

.venv/bin/python benchmarks/quantisation.py RUN TEXT [-o FILE.json]

RUN is any model, such as the run of recipes/shakespeare-char.yaml, and TEXT what its perplexity is measured on: the
last tenth of tiny Shakespeare, which that recipe does not train on. Each kind is written as `orrery quantise` does and
read again; a load is the best of five, from the system's cache, tensors and tokenizer alike.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from orrery.data.corpora import read_corpus
from orrery.exporting.quantised import quantise
from orrery.language_model.load import load
from orrery.tasks.perplexity import evaluate_perplexity

KINDS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "int8": {"bits": 8},
    "int4, groups of 256": {"bits": 4, "group": 256},
    "int4": {"bits": 4},
    "int4, groups of 32": {"bits": 4, "group": 32},
}
LOADS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("text")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    texts = [document.text for document in read_corpus(given.text)]
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
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
    if given.output:
        given.output.write_text(json.dumps({"text": Path(given.text).name, "kinds": found}, indent=1) + "\n")


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
