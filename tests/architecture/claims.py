"""Numbers of measurements in README, CHANGELOG and the guides, and what each stands on.

A sentence that says how fast, how much or how often beside a peer or as measured takes its number from a record by
``{recorded}``, from code that runs by ``{value}``, or stands here with the reason for which no record is needed.
``docs/log.md`` and ``docs/experiments`` are dated: they tell what was measured on a day, and no page builds on them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pages import DOCS, ROOT, prose

NUMBER = r"(?<![\w.])\d[\d,]*(?:\.\d+)?"
UNITS = (
    "times|x|%|per cent|tokens/s|tokens a second|words/s|MB/s|GB/s|GFLOP/s|ms|seconds?|s|minutes|MB|MiB|GB|GiB|kB|KB"
)
WORDS = "half|a third|a quarter|a fifth|a tenth|twice|three times|ten times"
MEASURED = re.compile(
    rf"{NUMBER}\s*(?:{UNITS})(?![\w])|\b(?:{WORDS}) (?:of )?(?:the |its |their )?(?:time|speed|memory)\b"
)
BESIDE = re.compile(
    r"transformers|\btrl\b|llama\.cpp|gensim|sentencepiece|nanogpt|lm_eval|\btrainer\b|`tokenizers`|the library"
    r"|faster|slower|as fast|\bspeed\b|\bmeasured\b|\bmemory\b|tokens a second|in the place of|benchmarks/",
    re.IGNORECASE,
)
ROLES = re.compile(r"\{(?:recorded|value)\}`")

BACKED = {
    "docs/chat.md: 64 KiB of source": "limits that the sandbox sets; tests hold them",
    "docs/clients.md: The last 256 are kept": "limits that the server sets; tests hold them",
    "docs/compare.md: a twentieth of the greatest budget": "a setting",
    "docs/data.md: a digest of 12 bytes a document": "sizes of what is stored, which follow from the format",
    "docs/layouts.md: above the 80 GB of a device": "what the plan computes; tests hold the plan",
    "docs/scaling-ladder.md": "one ladder, its command and its table on the page, dated there",
    "docs/speed.md: On a machine that reads 40 GB/s": "a quotient of the numbers before it",
    "docs/tokenizers.md: None needs 0.5 %": "tests/parity/test_trainer_quality.py holds it",
    "docs/word-vectors.md: a `.xz` file wants its dictionary": "the file's format: xz -9 has a dictionary of 64 MB",
    "docs/word-vectors.md: From an unpacked file": "the difference of two rows of the table above it",
}
"""Sentences by their page and a part of their text, and why each needs no record."""


def unbacked() -> Iterator[tuple[str, str]]:
    """Yield each sentence about a measurement that stands on nothing, with its page."""
    for page in looked_at():
        name = page.relative_to(ROOT).as_posix()
        for sentence in sentences(page.read_text(encoding="utf-8")):
            if is_measured(sentence) and not is_backed(name, sentence):
                yield name, sentence


def looked_at() -> list[Path]:
    """Return the pages that say what holds today."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *(p for p in sorted(DOCS.glob("*.md")) if p.stem != "log")]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences, list items and table rows of a page without its code."""
    for part in re.split(r"\n\s*\n|\n(?=\s*[-*] |\|)", prose(text)):
        yield from re.split(r"(?<=[.;:]) (?=[A-Z`*(])", " ".join(part.split()))


def is_measured(sentence: str) -> bool:
    """Say whether a sentence tells a measurement: a number with a unit, beside a peer or as measured."""
    return bool(MEASURED.search(sentence) and BESIDE.search(sentence))


def is_backed(page: str, sentence: str) -> bool:
    """Say whether a role or a reason stands behind a sentence."""
    if ROLES.search(sentence):
        return True
    keys = [key.partition(": ") for key in BACKED]
    return any(where == page and text in sentence for where, _, text in keys)
