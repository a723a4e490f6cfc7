"""What whole numbers cost a model and what they save: perplexity, bytes, and seconds to load.

    python benchmarks/quantisation.py MODEL python-peps/val --calibrate python-peps/train [--output FILE]

MODEL is any model of Llama's family; its perplexity is measured on the first text, in windows of 512 tokens, and
four-bit numbers are chosen for the second: files or named sets, of which the first 100,000 characters are read. Each
kind is written as `orrery quantise` does and read again. Beside them stands Q4_K_M as llama.cpp writes it: its
quantiser, out of the wheel of xllamacpp, and its mixture of kinds; Orrery reads that file, so that all perplexities are
of one program. A load is the best of five, from the system's cache, tensors and tokenizer alike.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from _record import Record, parsed, parser, shown

from ggml_quantiser import write_q4_k_m
from orrery.data.corpora import read_corpus
from orrery.evaluation.perplexity import evaluate_perplexity
from orrery.exchange.exporting.export import export_gguf
from orrery.exchange.exporting.quantised import quantise
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.language_model.load import load
from orrery.language_model.model import LanguageModel
from orrery.models.initialise import initialise
from orrery.studies.bench.shapes import placeholder_tokenizer

PLAIN, THEIRS = "as it is", "Q4_K_M of llama.cpp"
CHOSEN = {"bits": 4, "chosen": True}
KINDS: dict[str, dict[str, Any]] = {
    "int8": {"bits": 8},
    "int4, groups of 128": {"bits": 4, "group": 128},
    "int4": {"bits": 4},
    "int4, chosen for a text": CHOSEN,
    "int4, chosen for a text, values and second matrices in int8": {**CHOSEN, "eight": ("*.v", "*.down")},
}
LOADS = 5
CHARACTERS = 100_000


def main() -> None:
    made = parser(__doc__)
    made.add_argument("run", nargs="?")
    made.add_argument("text", nargs="?")
    made.add_argument("--calibrate")
    given = parsed(made, {}, needs=("run", "text", "calibrate"))
    record = Record(given, ["numba", "xllamacpp", "gguf"])
    by_kind: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place:
        if given.small:
            given.run, given.text = small(Path(place))
            given.calibrate = given.text
        texts, other = excerpt(given.text), excerpt(given.calibrate)
        by_kind[PLAIN] = measured(given.run, texts)
        for number, (name, settings) in enumerate(KINDS.items()):
            folder, known = str(Path(place) / str(number)), dict(settings)
            if known.pop("chosen", False):
                known["calibrate"] = lambda stored: perplexity(LanguageModel(stored), other)
            done = quantise(given.run, folder, **known)
            by_kind[PLAIN]["bytes"] = done.before
            by_kind[name] = {"bytes": done.after, **measured(folder, texts)}
        theirs = q4_k_m(given.run, Path(place))
        by_kind[THEIRS] = {"bytes": theirs.stat().st_size, **measured(str(theirs), texts)}
        for row in by_kind.values():
            row["change_percent"] = round(100 * (row["perplexity"] / by_kind[PLAIN]["perplexity"] - 1), 4)
    for name, row in by_kind.items():
        print(
            f"{name:60} {row['bytes']:12,} bytes  loaded in {row['load_seconds']:.3f} s  "
            f"perplexity {row['perplexity']:.4f} ({row['change_percent']:+.3f} %)"
        )
    record.write({"text": shown([given.text]), "calibrate": shown([given.calibrate]), "kinds": by_kind})


def excerpt(source: str) -> list[str]:
    """Return the first characters of a corpus, document by document."""
    found: list[str] = []
    left = CHARACTERS
    for document in read_corpus(source):
        found.append(document.text[:left])
        left -= len(found[-1])
        if not left:
            break
    return found


def q4_k_m(model: str, place: Path) -> Path:
    """Write a model as llama.cpp writes Q4_K_M."""
    whole = export_gguf(read(model), place / "whole.gguf", "f32").path
    return write_q4_k_m(whole, place / "q4_k_m.gguf")


def small(folder: Path) -> tuple[str, str]:
    """Write a model with random weights and a text, for the small form."""
    (folder / "text.txt").write_text("the cat sat on the mat\n" * 20, encoding="utf-8")
    shape = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 8}
    config = {**shape, "num_attention_heads": 4, "tie_word_embeddings": True}
    tokenizer = placeholder_tokenizer(shape["vocab_size"])
    model = load_family("llama").spec(config).build().eval()
    initialise(model, depth=len(model.stack.blocks), seed=1)
    save_model(folder / "run", model, "llama", config, tokenizer)
    return str(folder / "run"), str(folder / "text.txt")


def measured(folder: str, texts: list[str]) -> dict[str, float]:
    """Return the perplexity and the time of a load."""
    times = []
    for _ in range(LOADS):
        start = time.perf_counter()
        lm = load(folder, say=lambda line: None)
        times.append(time.perf_counter() - start)
    print(f"{folder}: measuring", file=sys.stderr)
    return {"load_seconds": round(min(times), 4), "perplexity": round(perplexity(lm, texts), 5)}


def perplexity(lm: LanguageModel, texts: list[str]) -> float:
    """Return the perplexity of texts in windows of 512 tokens, or of what the model reads at most."""
    return float(evaluate_perplexity(lm, texts, length=min(lm.context, 512), batch_size=8)["perplexity"])


if __name__ == "__main__":
    main()
