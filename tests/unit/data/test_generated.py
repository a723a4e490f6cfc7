"""Sets that are made on this machine: what they hold, that nothing is on both sides, that every answer stands there."""

import json
import lzma
import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from orrery.data import generated, python_docs
from orrery.data.corpora import (
    corpus_fingerprint,
    read_corpus,
    read_placed_rows,
    read_rows,
    read_sentences,
)
from orrery.data.generated import _library, _set, _spans
from orrery.data.generated._countries import plain, read_countries, shortened, with_article
from orrery.data.generated.docstring_modules import without_name
from orrery.data.generated.docstring_summaries import summarised
from orrery.data.generated.factbook_questions import _table, facts_of, paragraphs, rows_of
from orrery.data.generated.python_tokens import lines_of
from orrery.data.overview import overview
from orrery.data.rows.labelled import find_columns
from orrery.data.shards.large_text import ReadingOptions, read_texts
from orrery.data.sources import SOURCES
from orrery.errors import DataError
from orrery.schema.registry import name_of, settings_of

NAMES = [
    "addition",
    "addition-preferences",
    "concept-orders",
    "docstring-modules",
    "docstring-names",
    "docstring-summaries",
    "factbook-questions",
    "library-calls",
    "python-functions",
    "python-sources",
    "python-tokens",
    "scenes",
    "shop-visits",
    "subject-questions",
    "things",
    "unicode-characters",
    "unicode-names",
]


def rows(name):
    return list(read_rows(name))


def test_every_set_is_named_and_described():
    assert generated.names() == NAMES
    for name in NAMES:
        made = generated.find(name).set
        assert name_of(type(made)) == name.replace("-", "_")
        if name not in HISTORIES:
            assert len(made.parts) > 1
            assert "val" in made.parts
            assert generated.find(f"{name}/val").name == f"{name}/val"
        assert all((made.what, made.made_from, made.how))
        assert not made.columns or made.text in made.columns
    assert generated.table() in (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")


def test_a_file_of_this_name_goes_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "unicode-names").mkdir()
    (tmp_path / "unicode-names" / "a.txt").write_text("mine")
    assert [document.text for document in read_corpus("unicode-names")] == ["mine"]


def test_the_folder_of_a_run_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [document.text for document in read_corpus("unicode-names")]
    run = tmp_path / "unicode-names"
    run.mkdir()
    for name in (None, "lock", "run.json", "metrics.jsonl"):
        if name is not None:
            (run / name).write_text("")
        assert [document.text for document in read_corpus("unicode-names")] == made


def test_what_is_not_there_is_refused():
    with pytest.raises(DataError, match="unicode-names/test: no such part"):
        rows("unicode-names/test")
    with pytest.raises(DataError, match="unicode-names/val: no column 'text'"):
        list(read_placed_rows("unicode-names/val", ["text"]))
    with pytest.raises(DataError, match="unicode-names/train: it holds rows, no sentences"):
        list(read_sentences("unicode-names"))
    with pytest.raises(DataError, match="python-tokens/val: it holds sentences, no rows"):
        rows("python-tokens/val")
    with pytest.raises(DataError, match=r"named corpora are: python-docs, .*docstring-modules"):
        rows("no-such-thing")


def test_rows_have_a_place_and_a_fingerprint_that_stays():
    places = [place for place, _ in read_placed_rows("unicode-names/val")]
    assert places[:2] == ["unicode-names/val:1", "unicode-names/val:2"]
    digest = corpus_fingerprint(read_corpus("unicode-names/val"))
    _set._records.cache_clear()
    assert corpus_fingerprint(read_corpus("unicode-names/val")) == digest
    assert digest != corpus_fingerprint(read_corpus("unicode-names/val", column="target"))
    next(read_rows("unicode-names/val"))["source"] = "changed"
    assert corpus_fingerprint(read_corpus("unicode-names/val")) == digest
    texts = [document.text for document in read_corpus("unicode-names/val", column="target")]
    assert "".join(read_texts("unicode-names/val", ReadingOptions("target"))) == "".join(texts)


def test_characters_and_names_are_inverse_and_apart():
    train, val = rows("unicode-names/train"), rows("unicode-names/val")
    assert all(unicodedata.lookup(row["target"]) == row["source"] for row in (*train, *val))
    assert not {row["target"] for row in train} & {row["target"] for row in val}
    assert 0.08 < len(val) / len(train) < 0.14
    assert not any(re.match("HANGUL SYLLABLE|CJK UNIFIED IDEOGRAPH-", row["target"]) for row in train)
    assert [(row["target"], row["source"]) for row in rows("unicode-characters/val")] == [
        (row["source"], row["target"]) for row in val
    ]


def test_a_summary_stands_apart_from_the_rest():
    assert summarised("Return it.\n\nIt is made of many parts.") == {
        "source": "It is made of many parts.",
        "target": "Return it.",
    }
    for text in (
        "Return it.",
        "Return it.\n\nToo short.",
        "f(x) -> y\n\nIt is made of many parts.",
        "Return it\nwhich is made of many parts.",
        "Return it.\n\nThis will return it with many parts.",
    ):
        assert summarised(text) is None


def test_no_module_gives_summaries_to_both_parts():
    homes = {}
    for module, text in _library.library_docstrings():
        row = summarised(text)
        if row:
            homes.setdefault((row["source"], row["target"]), module)
    parts = {part: rows(f"docstring-summaries/{part}") for part in ("train", "val")}
    modules = {part: {homes[row["source"], row["target"]] for row in rows} for part, rows in parts.items()}
    assert not modules["train"] & modules["val"]
    assert len(parts["train"]) > 1500
    assert len(parts["val"]) > 100
    for row in (*parts["train"], *parts["val"]):
        assert _library.folded(row["target"]).rstrip(".:") not in _library.folded(row["source"])
    bodies = Counter(_library.folded(row["source"]) for rows in parts.values() for row in rows)
    assert max(bodies.values()) == 1


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("The email package, not emails.", "The ___ package, not emails."),
        ("See email.message or EMAIL_x, _email.", "See ___.message or ____x, ___."),
        ("myemail email2", "myemail email2"),
    ],
)
def test_the_name_of_a_package_is_masked(text, masked):
    assert without_name(text, "email") == masked


def test_no_docstring_names_its_package():
    train, val = rows("docstring-modules/train"), rows("docstring-modules/val")
    counts = Counter(row["label"] for row in (*train, *val))
    assert len(counts) >= 10
    assert min(counts.values()) >= 60
    assert {row["label"] for row in val} <= {row["label"] for row in train}
    assert not {row["text"] for row in train} & {row["text"] for row in val}
    for row in train:
        bare = row["label"].strip("_").casefold()
        assert bare not in "".join(c if c.isalnum() else " " for c in row["text"].casefold()).split()
    assert find_columns("docstring-modules/val", {}).label == "label"


SOURCE = b'''# a comment of its own

def f(x):  # beside
    """over
    lines"""
    return x + 1.5 if "a" else None
y = f(
    2)
'''


def test_tokens_have_the_kinds_that_python_gives_them():
    first, second, third = lines_of("m", SOURCE)
    assert (first.line, first.name) == (3, "m:3")
    assert first.words == ("def", "f", "(", "x", ")", ":", "# beside")
    assert first.tags == ("KEYWORD", "NAME", "OP", "NAME", "OP", "OP", "COMMENT")
    assert dict(zip(second.words, second.tags, strict=True)) == {
        "return": "KEYWORD", "x": "NAME", "+": "OP", "1.5": "NUMBER", "if": "KEYWORD", '"a"': "STRING",
        "else": "KEYWORD", "None": "KEYWORD",
    }  # fmt: skip
    assert third.words == ("y", "=", "f", "(", "2", ")")
    assert lines_of("m", b"def f(:\n  '") == []


def test_lines_of_the_library_are_tagged_and_apart():
    train, val = list(read_sentences("python-tokens/train")), list(read_sentences("python-tokens/val"))
    assert len(train) > 5000
    assert len(val) > 500
    assert not {line.words for line in train} & {line.words for line in val}
    assert not {line.name.partition(":")[0] for line in train} & {line.name.partition(":")[0] for line in val}
    for line in val:
        assert 4 <= len(line.words) == len(line.tags) <= 60
        assert not any(word.split() == [] or "\n" in word for word in line.words)
    seen = overview("python-tokens/val", None, 1, "text")
    assert (seen.kind, seen.counts["sentences"]) == ("sentences", len(val))


def test_a_python_without_sources(monkeypatch, tmp_path):
    monkeypatch.setattr(_library.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(DataError, match="no sources of its library"):
        _library.sources.__wrapped__()
    assert python_docs.docstrings("m", b"x = 1") == []


FINDS = [
    ("count", "19,674,004 (2025 est.)", "19,674,004"),
    ("count", "no permanent inhabitants", None),
    ("money", "-$30.3 billion (2023 est.)", "-$30.3 billion"),
    ("percent", "-0.12% (2025 est.)", "-0.12%"),
    ("rate", "38.62 births/1,000 population", "38.62"),
    ("size", "1.284 million sq km", "1.284 million sq km"),
    ("size", "3,208 km (Caribbean Sea 1,760 km)", "3,208 km"),
    ("date", "11 August 1960 (from France)", "11 August 1960"),
    ("date", "none (overseas territory of the UK)", None),
    ("freed_from", "21 September 1991 (from the Soviet Union); more", "Soviet Union"),
    ("peak", "Emi Koussi 3,445 m", "Emi Koussi"),
    ("height", "Neuendorf bei Wilster -3.5 m", "-3.5 m"),
    ("time_zone", "UTC+5.5 (10 hours ahead)", "UTC+5.5"),
    ("holiday", "Independence Day (or National Day), 9 September (1991)", "Independence Day"),
    ("day", "Independence Day (or National Day), 9 September (1991)", "9 September"),
    ("unit", "euros (EUR) per US dollar", "euros"),
    ("code", "euros (EUR) per US dollar", "EUR"),
    ("age", "16 years of age; universal", "16 years"),
    ("person", "King CHARLES III (since 8 September 2022); represented by", "King CHARLES III"),
    ("quoted", '"Himnusz" (Hymn)', "Himnusz"),
    ("domain", ".fr", ".fr"),
    ("words", "Pretoria (administrative capital); Cape Town", "Pretoria"),
    ("words", "none", None),
    ("first", "Congo Free State, Zaire", "Congo Free State"),
    ("listed", "cars, ships, gold (2023)", "cars, ships, gold"),
    ("listed", "cars, ships (of steel), gold", None),
    ("largest", "other 50%, Muslim 30.5% (Sunni 99%), none 2%", None),
    ("largest", "Muslim 30.5% (Sunni 99%), Christian 60%, none 2%", "Christian"),
    ("largest", "Muslim 40%, Christian 40%", None),
    ("official", "Kirundi, French (official), English", "French"),
    ("official", "Kirundi (official), French (official)", None),
    ("longest_border", "Niger 1,196 km; Nigeria 85 km; Sudan 1,403 km", "Sudan"),
    ("longest_border", "Haiti 376 km", None),
]


@pytest.mark.parametrize(("name", "text", "answer"), FINDS)
def test_answers_are_found(name, text, answer):
    span = getattr(_spans, name)(text)
    assert (None if span is None else text[slice(*span)]) == answer


def test_fields_are_plain():
    assert plain("C&ocirc;te&nbsp;d'Ivoire <b>x</b>") == "Côte d'Ivoire x"
    assert plain("0 km note: it has none") == "0 km"
    assert plain("12 (2020) note - as of now") == "12 (2020)"
    assert plain("NA") == plain("unknown") == plain("none") == ""
    assert shortened("a b. " * 40) == ("a b. " * 22).strip().rstrip(".")
    assert shortened("word " * 50) == ""
    assert with_article("Netherlands") == "the Netherlands"
    assert with_article("France") == "France"


def country(name, **fields):
    paths = {"Geography / Area / total": "5 sq km", "Government / Capital / name": name + "ville"} | fields
    return {"code": name[:2], "region": "europe", "name": name, "fields": list(paths.items())}


@pytest.fixture
def countries(tmp_path, monkeypatch):
    """Write a factbook of one's own."""

    def write(*facts):
        monkeypatch.setenv("ORRERY_DATA", str(tmp_path))
        (tmp_path / "factbook").mkdir(exist_ok=True)
        content = "".join(json.dumps(one) + "\n" for one in facts)
        (tmp_path / "factbook" / "countries.jsonl.xz").write_bytes(lzma.compress(content.encode()))

    return write


def test_a_paragraph_holds_its_answers(countries):
    text = " ".join(["It has hills."] * 14)
    countries(country("Utopia", **{"Geography / Terrain": text, "Geography / Climate": text}), {"x": 1})
    with pytest.raises(DataError, match=r"countries\.jsonl\.xz:2"):
        list(read_countries(_table()[0]))
    countries(country("Utopia", **{"Geography / Terrain": text, "Geography / Climate": text}))
    (utopia,) = read_countries(_table()[0])
    (facts,) = paragraphs(facts_of(utopia))
    rows = list(rows_of(utopia, 1, facts))
    answers = {row["id"]: row["answers"] for row in rows}
    assert {row["title"] for row in rows} == {"Utopia"}
    assert answers["Ut-1-capital"]["text"] == ["Utopiaville"]
    for row in rows:
        (answer,), (start,) = row["answers"]["text"], row["answers"]["answer_start"]
        assert row["context"][start : start + len(answer)] == answer
    countries({"code": "x", "region": "europe", "name": "X", "fields": [["a"]]})
    with pytest.raises(DataError, match=r"countries\.jsonl\.xz:1: no country"):
        list(read_countries(_table()[0]))


def test_without_the_factbook_the_message_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ORRERY_DATA", str(tmp_path))
    _set._records.cache_clear()
    with pytest.raises(DataError, match="orrery data fetch factbook"):
        rows("factbook-questions")


def test_the_questions_about_real_countries(data_set):
    data_set("factbook")
    train, val = rows("factbook-questions/train"), rows("factbook-questions/val")
    assert len(train) > 10_000
    assert len(val) > 1_000
    assert not {row["title"] for row in train} & {row["title"] for row in val}
    every = [*train, *val]
    assert len({row["id"] for row in every}) == len(every)
    for row in every:
        (answer,), (start,) = row["answers"]["text"], row["answers"]["answer_start"]
        assert row["context"][start : start + len(answer)] == answer.strip()
        assert 60 <= len(row["context"].split()) <= 250
        assert not any(mark in row["context"] + row["question"] for mark in ("&nbsp", "<b", "{", "  "))
    kinds = Counter(row["id"].split("-", 2)[2] for row in every)
    assert len(kinds) >= 60
    assert min(kinds.values()) >= 100
    phrasings = [template["ask"] for templates in _table()[1].values() for template in templates]
    assert min(len(set(ask)) for ask in phrasings) >= 2
    assert all(ask.count("{c}") == 1 for asks in phrasings for ask in asks)
    capitals = {row["title"]: row["answers"]["text"][0] for row in every if row["id"].endswith("-capital")}
    assert (capitals["France"], capitals["Chad"], capitals["Dominican Republic"]) == (
        "Paris",
        "N'Djamena",
        "Santo Domingo",
    )


READERS = {
    "addition": "rollouts",
    "addition-preferences": "preferences",
    "docstring-modules": "labelled",
    "docstring-summaries": "pairs",
    "factbook-questions": "questions",
    "python-tokens": "tagged",
    "unicode-characters": "pairs",
    "unicode-names": "pairs",
}
"""The kind of data that each set is read as to train on it."""


HISTORIES = ["library-calls", "shop-visits"]
"""Read as interactions, of which the last of each user is held back: there is no part to validate on."""
PICTURES, LABELS = (
    {"scenes": ("masks", "boxes", "captions"), "things": ("pictures",)},
    ["concept-orders", "docstring-names"],
)
"""Read as what pictures are asked for; and as texts with many labels."""
TEXTS = ["python-functions", "python-sources"]
"""Read as text; subject-questions is there to measure on alone."""


def test_every_set_has_a_use():
    assert sorted([*READERS, *TEXTS, *HISTORIES, *PICTURES, *LABELS, "subject-questions"]) == generated.names()


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_is_read_to_train_on(name):
    kind = SOURCES.find("text")
    values = {"kind": "text", "train": f"{name}/train", "val": f"{name}/val"}
    source = kind.read(settings_of(kind).model_validate(values))
    (portion,) = source.portions
    assert len(portion.documents) > len(source.held_back) > 15


@pytest.mark.parametrize(("name", "asked"), [(name, asked) for name, all in PICTURES.items() for asked in all])
def test_every_set_of_pictures_is_read_to_train_on(name, asked):
    kind = SOURCES.find(asked)
    values = {"kind": kind.Settings.model_fields["kind"].default, "train": name, "val": f"{name}/val"}
    source = kind.read(settings_of(kind).model_validate(values))
    assert len(source.train) == 4000
    assert len(source.held_back) >= 500


@pytest.mark.parametrize("name", HISTORIES)
def test_every_set_of_histories_is_read_to_train_on(name):
    kind = SOURCES.find("interactions")
    source = kind.read(settings_of(kind).model_validate({"kind": "interactions", "train": name, "items": name}))
    assert len(source.held_back) > 2_000
    assert set(source.item_texts) == set(source.items)
    assert all(len(set(each.items)) == len(each.items) for each in source.train) == (name == "shop-visits")


@pytest.mark.parametrize("name", READERS)
def test_every_set_is_read_to_train_on(name, data_set):
    if name == "factbook-questions":
        data_set("factbook")
    kind = SOURCES.find(READERS[name])
    named = "pairs" if READERS[name] == "pairs" else "train"
    values = {"kind": READERS[name], named: f"{name}/train", "val": f"{name}/val"}
    source = kind.read(settings_of(kind).model_validate(values))
    assert len(source.train) > len(source.held_back) > 100
