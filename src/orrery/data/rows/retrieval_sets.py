"""Queries, documents and which of them answer which: folders as BEIR has them, and tables of pairs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orrery.data.corpora import read_placed_rows
from orrery.data.readers.columns import text_of
from orrery.data.rows.labelled import PAIRS
from orrery.errors import DataError, UsageError

CORPUS, QUERIES, QRELS = "corpus", "queries", "qrels"
_ENDS = (".jsonl", ".jsonl.gz", ".jsonl.xz", ".parquet", ".tsv", ".csv")
_ENTAILMENT = ("premise", "hypothesis")
SIDES = (*(both for both in PAIRS if both != _ENTAILMENT), ("question", "answer"), ("query", "text"))
_GRADES = ("score", "relevance", "label", "grade")
_HINT = "a folder has corpus.jsonl, queries.jsonl and qrels/test.tsv; a table a query and a document in each row"


@dataclass(frozen=True)
class RetrievalSet:
    """Texts by their names, and of each query which documents answer it, and how well (above 0)."""

    queries: Mapping[str, str]
    corpus: Mapping[str, str]
    grades: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...] = ()


def read_retrieval(source: str | Path, split: str | None = None) -> RetrievalSet:
    """Read a folder in BEIR's layout, or a table with a query and a document in each row.

    Args:
        source: the folder, or a file: JSON lines, tab-separated, CSV or Parquet.
        split: which relevances of a folder: ``qrels/SPLIT.tsv``, by default those of test, else ``qrels.tsv``.

    Raises:
        DataError: a file or a column is missing, a name is twice, or no query has an answer.
        UsageError: a split of a table, which has none.
    """
    if split is not None and not Path(source).is_dir():
        raise UsageError(f"{source} is a table, and has no splits", "leave --split away")
    retrieval_set = _folder(Path(source), split) if Path(source).is_dir() else _table(source)
    if not retrieval_set.grades:
        raise DataError(f"{source}: no query has a document that answers it", _HINT)
    return retrieval_set


def _folder(folder: Path, split: str | None) -> RetrievalSet:
    queries = dict(_texts(_one(folder, QUERIES)))
    corpus = dict(_texts(_one(folder, CORPUS)))
    grades: dict[str, dict[str, float]] = {}
    lost: set[str] = set()
    for query, document, grade in _relevances(folder, split):
        if grade <= 0:
            continue
        if query in queries and document in corpus:
            grades.setdefault(query, {})[document] = grade
        else:
            lost.add(query if query not in queries else document)
    notes = []
    if lost:
        shown = ", ".join(sorted(lost)[:5])
        notes.append(f"{len(lost):,} names in qrels are no query and no document, and passed over: {shown}")
    if silent := len(queries) - len(grades):
        notes.append(f"{silent:,} queries have no relevance, and are not asked")
    return RetrievalSet({name: queries[name] for name in queries if name in grades}, corpus, grades, tuple(notes))


def _one(folder: Path, stem: str) -> Path:
    for end in _ENDS:
        if (folder / f"{stem}{end}").is_file():
            return folder / f"{stem}{end}"
    raise DataError(f"{folder} has no {stem}.jsonl", _HINT)


def _texts(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of a file; a title stands before its text, as BEIR has it."""
    seen: set[str] = set()
    for where, row in read_placed_rows(file, ()):
        key = next((key for key in ("_id", "id", "docid", "query_id") if row.get(key) is not None), None)
        if key is None:
            raise _bad(where, "no _id")
        name = str(row[key])
        if name in seen:
            raise _bad(where, f"the name {name[:60]!r} is there twice")
        seen.add(name)
        title = row.get("title") or ""
        text = row.get("text")
        if not isinstance(title, str) or not isinstance(text, str):
            raise _bad(where, "its text or its title is no text")
        yield name, f"{title} {text}".strip() if title else text


def _relevances(folder: Path, split: str | None) -> Iterator[tuple[str, str, float]]:
    """Yield query, document and grade: three columns with a line of names, or the four of TREC without one."""
    named = [folder / QRELS / f"{split or 'test'}.{end}" for end in ("tsv", "jsonl")]
    places = named if split else [*named, folder / f"{QRELS}.tsv"]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        has = ", ".join(sorted(path.stem for path in (folder / QRELS).glob("*.*"))) or "none"
        raise DataError(f"{folder} has no relevances {split or 'test'!r} ({QRELS}: {has})", "name one: --split NAME")
    if file.suffix == ".jsonl":
        for where, row in read_placed_rows(file, ()):
            yield _graded(where, *(row.get(key) for key in ("query-id", "corpus-id", "score")))
        return
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            fields = line.rstrip("\r\n").split("\t") if "\t" in line else line.split()
            if not fields or (number == 1 and not _is_number(fields[-1])):
                continue
            if len(fields) not in (3, 4):
                raise _bad(f"{file}:{number}", f"{len(fields)} fields where a relevance has three")
            yield _graded(f"{file}:{number}", fields[0], fields[-2], fields[-1])


def _bad(where: str, what: str) -> DataError:
    return DataError(f"{where}: {what}", "mend the line")


def _graded(where: str, query: Any, document: Any, grade: Any) -> tuple[str, str, float]:
    if query is None or document is None or not _is_number(grade):
        raise _bad(where, f"no query, document and number: {str((query, document, grade))[:80]}")
    return str(query), str(document), float(grade)


def _is_number(value: Any) -> bool:
    try:
        return float(value) == float(value) and abs(float(value)) < float("inf")
    except (TypeError, ValueError):
        return False


def _table(source: str | Path) -> RetrievalSet:
    """Return the pairs of a table: each text is a query or a document once, and what shares a row belongs together."""
    queries: dict[str, str] = {}
    corpus: dict[str, str] = {}
    grades: dict[str, dict[str, float]] = {}
    sides: tuple[str, str] | None = None
    for where, row in read_placed_rows(source, ()):
        if sides is None:
            sides = next((both for both in SIDES if set(both) <= set(row)), None)
            if sides is None:
                raise DataError(
                    f"{source}: no columns are known to hold a query and a document among {list(row)}", _HINT
                )
            graded = next((name for name in _GRADES if name in row), None)
        query, document = (text_of(row, side, where) for side in sides)
        names = queries.setdefault(query, f"q{len(queries)}"), corpus.setdefault(document, f"d{len(corpus)}")
        grade = 1.0 if graded is None else _graded(where, query, document, row[graded])[2]
        if not grade.is_integer():
            message = f"{where}: the grade {grade:g}, and a grade is a whole number, 0 for what is no answer"
            raise DataError(message, "scores of pairs are what `orrery evaluate similarity` compares with")
        if grade > 0:
            grades.setdefault(names[0], {})[names[1]] = grade
    queries_with_grades = {name: text for text, name in queries.items() if name in grades}
    return RetrievalSet(queries_with_grades, {name: text for text, name in corpus.items()}, grades)


def first_queries(given: RetrievalSet, first: int | None) -> RetrievalSet:
    """Return the same documents with the first so many queries; all where there is no number."""
    return replace(given, queries=dict(list(given.queries.items())[:first]))
