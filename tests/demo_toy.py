"""A text that a tiny model learns in seconds and that byte counts and xz do not: words that follow in a ring."""

import random
from pathlib import Path

from orrery.inspection.checks import Check
from orrery.studies.demo.findings import DemoCorpus, DemoFindings, DemoHead, DemoRun, Measure, Sample, Sight

OVERRIDES = (
    "--model.config {hidden_size: 32, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 2, "
    "max_position_embeddings: 64, tie_word_embeddings: true}",
    "--tokenizer.vocabulary 300",
    "--batches.length 32",
    "--batches.size 8",
    "--training.optimizer.rate 0.01",
    "--training.schedule.warmup 5",
    "--training.precision float32",
    "--evaluation.every 50",
)
WORDS = [word for flag in OVERRIDES for word in flag.split(" ", 1)]


def write_ring(folder: Path, documents: int = 80, length: int = 40) -> None:
    """Write documents that all go round the same ring of words, each from another place."""
    draw = random.Random(0)
    ring = ["".join(draw.choices("abcd", k=6)) for _ in range(12)]
    folder.mkdir()
    for number in range(documents):
        words = [ring[(number + place) % len(ring)] for place in range(length)]
        (folder / f"{number:02}.txt").write_text("The ring: " + " ".join(words) + ".")


def findings(text: str = "sorted", bits_per_byte: float = 1.8) -> DemoFindings:
    """Return findings without a run; ``text`` stands wherever text from outside can stand."""
    pattern = [[1.0, 0.0], [0.25, 0.75]]
    head = DemoHead("block 0, head 0", text, pattern)
    records = [
        {"step": 1, "train/loss": 7.0, "tokens": 100, "tokens_per_second": 50.0},
        {"step": 2, "train/loss": 6.0, "val/loss": 6.5, "val/bpb": 3.0, "tokens": 200, "tokens_per_second": 60.0},
    ]
    return DemoFindings(
        corpus=DemoCorpus(text, "0" * 64, 20, 1, 2000, 100, 500),
        run=DemoRun(text, "llama", {"hidden_size": 32}, 1000, 300, 2, 200, 7, text, {"training": 1.5}, records),
        measures=[
            Measure("this model", bits_per_byte, "model"),
            Measure("xz", 2.0, "check"),
            Measure("token trigram", 1.7, "aim"),
        ],
        method=text,
        samples=[Sample(text, text, "greedy", 2, 10.0), Sample(text, text, "sampled", 2, 10.0)],
        sight=Sight([text, text], [head], [head], [Check("looking changes no number", 0.0, 0.0)]),
    )
