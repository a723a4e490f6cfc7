"""Spans of characters, in the layouts of the tools that annotators mark them with, become tags of words."""

import csv
import json
from collections import Counter

import pytest
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from orrery.data.batches.words import tokenise_words
from orrery.data.rows import spans
from orrery.data.rows.spans import places_of
from orrery.data.rows.tagged import read_tagged
from orrery.data.sources.tagged import TaggedSettings, TaggedSource
from orrery.errors import DataError
from orrery.text.special import framed_tokenizer
from orrery.text.train import train_tokenizer

TEXT = "Ada Lovelace wrote to Mr. Babbage in London."
PLACES = [(0, 12, "PER"), (26, 33, "PER"), (37, 43, "LOC")]
SPOKEN = {"Ada": "B-PER", "Lovelace": "I-PER", "Babbage": "B-PER", "London": "B-LOC"}
MARKED = [{"start": a, "end": b, "text": TEXT[a:b], "labels": [name]} for a, b, name in PLACES]
RESULT = [{"value": each, "from_name": "label", "to_name": "text", "type": "labels"} for each in MARKED]
DOCCANO = [{"id": n, "label": name, "start_offset": a, "end_offset": b} for n, (a, b, name) in enumerate(PLACES)]
PRODIGY = {"text": TEXT, "spans": [{"start": a, "end": b, "label": name} for a, b, name in PLACES]}
TASK = {"id": 7, "data": {"text": TEXT}, "annotations": [{"id": 1, "was_cancelled": False, "result": RESULT}]}
OLD = {"text": TEXT, "was_cancelled": True, "result": []}


def read(tmp_path, rows, name="x.jsonl", **how):
    path = tmp_path / name
    lines = [json.dumps(row) for row in rows]
    path.write_text(f"[{','.join(lines)}]" if name.endswith(".json") else "\n".join(lines), encoding="utf-8")
    said = []
    return list(read_tagged(path, tell=said.append, **how)), "".join(said)


def spoken(sentence):
    return {word: tag for word, tag in zip(sentence.words, sentence.tags, strict=True) if tag != "O"}


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"id": 1, "text": TEXT, "label": PLACES, "Comments": []}, "doccano.jsonl"),
        ({"text": TEXT, "labels": PLACES}, "old-doccano.jsonl"),
        ({"text": TEXT, "entities": DOCCANO, "relations": [], "Comments": []}, "new-doccano.jsonl"),
        ({**PRODIGY, "tokens": [{"text": "Ada", "start": 0, "end": 3, "id": 0}], "answer": "accept"}, "prodigy.jsonl"),
        ([TEXT, {"entities": PLACES}], "spacy.json"),
        (TASK, "label-studio.json"),
        ({"data": {"text": TEXT, "source": "x"}, "completions": [OLD, {"result": RESULT}]}, "label-studio-0.json"),
        ({"id": 1, "text": TEXT, "label": MARKED, "annotator": 1, "lead_time": 3.5}, "label-studio-min.json"),
    ],
)
def test_each_layout_gives_the_same_words_and_tags(tmp_path, row, name):
    (sentence,), said = read(tmp_path, [row], name)
    assert spoken(sentence) == SPOKEN
    assert sentence.text == TEXT
    assert f"{tmp_path / name}: spans in" in said


def test_words_are_those_of_a_published_tokenizer():
    normal = BertNormalizer(lowercase=False, strip_accents=False, handle_chinese_chars=True)
    for text in (TEXT, "He said: “don't!” (A-1)", "naïve  cafés\n\tin Wrocław", "我在Berlin、他在上海。"):
        theirs = BertPreTokenizer().pre_tokenize_str(normal.normalize_str(text))
        assert [text[start:end] for start, end in places_of(text)] == [word for word, _ in theirs]
    assert places_of(" \n") == []


def test_cells_of_a_table_and_columns_that_are_named(tmp_path):
    with (tmp_path / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["said", "marks"], [TEXT, json.dumps(MARKED)]])
    (sentence,) = read_tagged(tmp_path / "x.csv", words="said", tags="marks")
    assert spoken(sentence) == SPOKEN


def test_gliners_words_and_inclusive_ends(tmp_path):
    row = {"tokenized_text": TEXT.split(), "ner": [[0, 1, "person"], [7, 7, "place"]]}
    (sentence,), _ = read(tmp_path, [row])
    assert spoken(sentence) == {"Ada": "B-person", "Lovelace": "I-person", "London.": "B-place"}
    assert sentence.text == TEXT


def test_brats_annotations_beside_their_texts(tmp_path):
    (tmp_path / "a.txt").write_text(f"{TEXT}\nAda, Countess\n", encoding="utf-8")
    lines = ["T1\tPER 0 12\tAda Lovelace", "R1\tWrites Arg1:T1 Arg2:T2", "T2\tPER 26 33\tBabbage"]
    lines += ["T3\tPER 45 48;50 58\tAda Countess", ""]
    (tmp_path / "a.ann").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "b.txt").write_text("Nobody.", encoding="utf-8")
    (tmp_path / "b.ann").write_text("", encoding="utf-8")
    first, other = read_tagged(tmp_path)
    assert first.tags == ("B-PER", "I-PER", "O", "O", "O", "O", "B-PER", *"OOO", "B-PER", "I-PER", "I-PER")
    assert (first.where, other.tags) == (str(tmp_path / "a.ann"), ("O", "O"))
    for damaged in ("T1\tPER 0\n", "T1", "T1\t\t"):
        (tmp_path / "b.ann").write_text(damaged, encoding="utf-8")
        with pytest.raises(DataError, match=r"b.ann:1: no span of characters"):
            list(read_tagged(tmp_path))


def test_what_annotators_left_out_is_left_out_and_counted(tmp_path):
    rows = [{**PRODIGY, "answer": answer} for answer in ("reject", "accept", "ignore")]
    found, said = read(tmp_path, [{"text": "Nobody", "answer": "accept"}, *rows])
    assert [spoken(each) for each in found] == [{}, SPOKEN]
    assert "2 rows left out: their answer is not accept" in said
    cancelled = {"data": {"text": "a"}, "annotations": [{"was_cancelled": True, "result": []}]}
    true = {**TASK, "annotations": [{"result": []}, {"ground_truth": True, "result": RESULT}]}
    found, said = read(tmp_path, [cancelled, true, {"data": {"text": "a"}, "annotations": []}], "x.json")
    assert [spoken(each) for each in found] == [SPOKEN]
    assert "2 tasks left out" in said
    assert "1 tasks have several annotations" in said


def test_nested_spans_and_those_that_cut_words_are_said(tmp_path):
    spans = [[0, 3, "NAME"], [0, 13, "PER"], [37, 40, "LOC"], [0, 12, "WRITER"]]
    (sentence,), said = read(tmp_path, [{"text": TEXT, "label": spans}])
    assert spoken(sentence) == {"Ada": "B-PER", "Lovelace": "I-PER", "London": "B-LOC"}
    assert "2 spans left out: a word has one label, and the longest" in said
    assert "1 spans begin or end within a word" in said


@pytest.mark.parametrize("said", [None, "Berlin"])
def test_ends_that_count_units_of_utf16_are_told_from_characters(tmp_path, said):
    text, more = "👨🏻‍🚒 in Berlin", {} if said is None else {"text": said}
    place, units = text.index("Berlin"), len(text[: text.index("B")].encode("utf-16-le")) // 2
    for start in (place, units):
        span = {"start": start, "end": start + 6, "label": "LOC", **more}
        (sentence,), told = read(tmp_path, [{"text": text, "spans": [span]}])
        assert spoken(sentence) == {"Berlin": "B-LOC"}
        assert ("count characters as JavaScript does" in told) is (start == units)


@pytest.mark.parametrize(
    ("span", "told"),
    [
        ([40, 90, "X"], r"the span \[40, 90\] of a X holds nothing of the 44"),
        ([3, 4, "X"], "holds nothing"),
        ([5, 5, "X"], "holds nothing"),
        ([0, "3", "X"], "no span with a start, an end and a label"),
        ({"start": 0, "end": 3}, "no span with a start, an end and a label"),
        ({"start": 1, "end": 4, "label": "X", "text": "Ada"}, r"the span \[1, 4\] says 'Ada', its text 'da '"),
    ],
)
def test_a_bad_span_is_named_by_its_line(tmp_path, span, told):
    rows = [{"text": TEXT, "spans": []}, {"text": TEXT, "spans": [span]}]
    with pytest.raises(DataError, match=told) as error:
        read(tmp_path, rows)
    assert f"{tmp_path / 'x.jsonl'}:2:" in error.value.message
    assert len(read(tmp_path, rows, skip_bad=1)[0]) == 1


def test_tokens_are_those_of_the_text_as_it_is_written(tmp_path):
    tokenizer = framed_tokenizer(train_tokenizer("byte_bpe", [TEXT] * 20, 320), "bert")
    (sentence,), _ = read(tmp_path, [{"text": TEXT, "label": PLACES}])
    tokens = tokenise_words(tokenizer, sentence.words, sentence.written)
    assert tokens.ids == tokenizer.encode(TEXT)
    spans = tokenizer.spans(TEXT)
    ends = [start + len(word) for (start, _), word in zip(places_of(TEXT), sentence.words, strict=True)]
    assert all(spans[first][2] <= end for first, end in zip(tokens.firsts, ends, strict=True))


def test_a_run_says_how_spans_were_read(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps({"text": f"{TEXT} {n}", "label": PLACES}) for n in range(4)))
    source = TaggedSource.read(TaggedSettings.model_validate({"train": str(path), "split": {"every": 4}}))
    assert "spans in label, of the text in text, are read as B- and I- of its words" in "".join(source.remarks())
    assert next(iter(source.texts())) == f"{TEXT} 0"
    assert set(source.labels) == {"O", "B-PER", "I-PER", "B-LOC"}


def test_numbers_of_labels_get_names(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps({"tokens": ["Ada", str(n)], "ner_tags": [1, 0]}) for n in range(4)))
    named = {"train": str(path), "names": {"0": "O", "1": "B-PER"}}
    assert set(TaggedSource.read(TaggedSettings.model_validate(named)).labels) == {"O", "B-PER"}


def test_the_words_of_a_document_are_gone_through_for_all_its_spans_at_once(monkeypatch):
    gone = []

    class Places(list):
        def __iter__(self):
            gone.append(1)
            return super().__iter__()

    monkeypatch.setattr(spans, "places_of", lambda text: Places(places_of(text)))
    row = {"text": "word " * 600, "spans": [{"start": n * 50, "end": n * 50 + 9, "label": "A"} for n in range(60)]}
    found = spans.tagged_words("x", row, ("text", "spans"), Counter())
    assert found.tags == ("B-A", "I-A", *["O"] * 8) * 60
    assert len(gone) < 10


@pytest.mark.parametrize("made", [[None], [{"result": "x"}], [{"result": ["x"]}], ["x"]])
def test_a_task_with_odd_annotations_is_a_bad_row(tmp_path, made):
    with pytest.raises(DataError, match=r"x\.jsonl:2: no column 'text'"):
        read(tmp_path, [TASK, {"data": {"text": "a"}, "annotations": made}])
