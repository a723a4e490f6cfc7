"""Our training and encoding beside the `tokenizers` library called directly: the aim is at most 1.05 times its time.

.venv/bin/python benchmarks/tokenizer_speed.py [--rounds 3] [--megabytes 50] [--vocabulary 32000] [--output FILE]

Both work on the same text (eltec-novels), with the same pre-tokenizer and the same threads, in turns; medians of
seconds (wall) and of processor seconds (all threads). The library's form is the plain one: documents as its
trainer takes them; for encoding, one `encode_batch_fast` over pieces of 64 K characters, their ids taken. Ours
for encoding is twofold: the ids in memory, and `prepare`, which also splits, checks, hashes and writes them.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tokenizers
from _record import Record, parsed, parser
from tokenizers import decoders, models, trainers

from orrery.data.corpora import read_corpus
from orrery.data.shards.prepare import prepare
from orrery.text import Tokenizer, chunks
from orrery.text.algorithms import bpe
from orrery.text.train import train_tokenizer

CORPUS = "eltec-novels"
END = "<|endoftext|>"


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--rounds", type=int, default=3)
    made.add_argument("--megabytes", type=float, default=50)
    made.add_argument("--vocabulary", type=int, default=32_000)
    given = parsed(made, {"rounds": 1, "megabytes": 0.2, "vocabulary": 400})
    record = Record(given, ["tokenizers"])
    texts = read(given.megabytes)
    size = sum(len(text.encode()) for text in texts)
    trained = compare(
        {
            "library": lambda: train_by_library(texts, given.vocabulary),
            "orrery": lambda: train_tokenizer("byte_bpe", texts, given.vocabulary),
        },
        given.rounds,
    )
    tokenizer = train_tokenizer("byte_bpe", texts, given.vocabulary)
    engine = tokenizers.Tokenizer.from_str(json.dumps(tokenizer.definition))
    pieces = [part for text in texts for part in chunks.cut(text)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text.txt"
        file.write_text("".join(texts), encoding="utf-8", newline="")
        encoded = compare(
            {
                "library": lambda: encode_by_library(engine, pieces),
                "orrery": lambda: encode_in_memory(tokenizer, texts),
                "prepare": lambda: prepare_anew(file, tokenizer, Path(folder)),
            },
            given.rounds,
        )
    result = {"bytes": size, "vocabulary": given.vocabulary, "train": trained, "encode": encoded}
    print(json.dumps(result, indent=1))
    record.write(result)


def read(megabytes: float) -> list[str]:
    """Return the first documents of the corpus, about so many megabytes."""
    texts, size = [], 0.0
    for document in (*read_corpus(CORPUS), *read_corpus(f"{CORPUS}/val")):
        if size >= megabytes * 1e6:
            break
        texts.append(document.text)
        size += len(document.text.encode())
    return texts


def compare(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, dict[str, float]]:
    """Do each work in turns; return median wall and processor seconds, and their ratios to the library's."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(rounds):
        # Who goes first changes: the first finds colder caches.
        for name in sorted(works, reverse=bool(turn % 2)):
            wall, processor = time.perf_counter(), time.process_time()
            works[name]()
            seconds[name].append((time.perf_counter() - wall, time.process_time() - processor))
    measured = seconds.items()
    medians = {name: [statistics.median(column) for column in zip(*pairs, strict=True)] for name, pairs in measured}
    return {
        name: {
            "seconds": round(wall, 2),
            "processor_seconds": round(processor, 2),
            "ratio": round(wall / medians["library"][0], 3),
            "processor_ratio": round(processor / medians["library"][1], 3),
        }
        for name, (wall, processor) in medians.items()
    }


def train_by_library(texts: list[str], vocabulary: int) -> tokenizers.Tokenizer:
    engine = tokenizers.Tokenizer(models.BPE())
    engine.pre_tokenizer = bpe.pre_tokenizer()
    engine.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        special_tokens=[END],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    engine.train_from_iterator(iter(texts), trainer)
    return engine


def encode_by_library(engine: tokenizers.Tokenizer, pieces: list[str]) -> int:
    return sum(len(encoding.ids) for encoding in engine.encode_batch_fast(pieces, add_special_tokens=False))


def encode_in_memory(tokenizer: Tokenizer, texts: list[str]) -> int:
    return sum(len(part) for text in texts for part in tokenizer.encode_parts(text))


def prepare_anew(file: Path, tokenizer: Tokenizer, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as output:
        prepare(file, tokenizer, Path(output) / "tokens")


if __name__ == "__main__":
    main()
