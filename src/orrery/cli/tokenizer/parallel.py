"""The course's table of a parallel text, printed in the slide's layout."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orrery.cli.tables import print_table
from orrery.cli.tokenizer.measures import measures_row
from orrery.reports.status import waiting

if TYPE_CHECKING:
    from orrery_course.tables.parallel import Pair

COLUMNS = ("system", "side", "ids", "tokens", "bytes a token", "tokens a word", "unknown", "share")


def compare_parallel(
    source: Path, target: Path, texts: Sequence[str], vocabulary: int, sentences: int
) -> dict[str, Any]:
    """Train the systems of the table on two line-aligned files, print and return what they do to held-back lines."""
    from orrery.data.corpora import read_pairs
    from orrery_course.tables import parallel

    with waiting() as line:
        line.now(f"reading {source} and {target}")
        pairs = [(pair.source, pair.target) for pair in read_pairs(source, target, empty="keep")]
        train, held_back = parallel.split(pairs)
        systems = parallel.train_systems(train, vocabulary, lambda name: line.now(f"training: {name}"))
        line.now("encoding the pairs held back")
        measured = {name: system.measures(held_back) for name, system in systems.by_name.items()}
        shared = parallel.shared_words(pairs)
    chosen = _chosen(pairs, texts) or parallel.telling(held_back, systems.word, sentences)
    tables = [systems.table(pair) for pair in chosen]
    for table in tables:
        print_table(("source", table["source"]), list(table.items())[1:])
        print()
    print(f"measured on {len(held_back):,} pairs held back, trained on {len(train):,}")
    rows = [
        (name, side, *measures_row(name, measures)[1:])
        for name, both in measured.items()
        for side, measures in zip(("source", "target"), both, strict=True)
    ]
    print_table(COLUMNS, rows)
    alike = {name: system.consistent(shared) for name, system in systems.subword.items()}
    counts = ", ".join(f"{name} {count:,}" for name, count in alike.items())
    print(f"\ncut alike in both languages, of {len(shared):,} words that stand on both sides of a pair: {counts}")
    return {
        "sentences": tables,
        "systems": {
            name: dict(zip(("source", "target"), (measures.as_dict() for measures in both), strict=True))
            for name, both in measured.items()
        },
        "shared_words": {"words": len(shared), "cut_alike": alike},
        "pairs": {"train": len(train), "held_back": len(held_back)},
    }


def _chosen(pairs: Sequence["Pair"], texts: Sequence[str]) -> list["Pair"]:
    from orrery.errors import DataError

    by_source = dict(reversed(pairs))
    for text in texts:
        if text not in by_source:
            raise DataError(
                f"no line of the source is {text!r}", "give a whole line of it, or none to have some chosen"
            )
    return [(text, by_source[text]) for text in texts]
