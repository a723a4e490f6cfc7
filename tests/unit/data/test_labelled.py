"""Labelled texts: which columns are found, what a row must have, and the rows that a model is given."""

import json

import pytest
import torch

from orrery.data.rows.labelled import Columns, counted, find_columns, read_labelled
from orrery.data.sources import BatchRequest
from orrery.data.sources._rows import divided
from orrery.data.sources.labelled import LabelledSettings, LabelledSource
from orrery.errors import DataError
from orrery.text.special import framed_tokenizer
from orrery.text.train import train_tokenizer


def table(tmp_path, text, name="rows.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def tokenizer():
    text = "good bad film the a very it was and not one two three"
    return framed_tokenizer(train_tokenizer("byte_bpe", [text] * 20, 300), "bert")


def request(tokenizer, labels, length=32, token_types=1):
    return BatchRequest("padded", length, 2, 7, tokenizer, labels=labels, token_types=token_types)


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("text,label", Columns("text", None, "label")),
        ("label,sentence", Columns("sentence", None, "label")),
        ("id,review,stars", Columns("review", None, "stars")),
        ("premise,hypothesis,label", Columns("premise", "hypothesis", "label")),
        ("question1,question2,id,label", Columns("question1", "question2", "label")),
        ("id,qid1,qid2,question1,question2,is_duplicate", Columns("question1", "question2", "is_duplicate")),
        ("Quality,#1 ID,#2 ID,#1 String,#2 String", Columns("#1 String", "#2 String", "Quality")),
        ("reviewerID,asin,reviewText,overall,summary", Columns("reviewText", None, "overall")),
        ("remark,class", Columns("remark", None, "class")),
        ("text,verdict", Columns("text", None, "verdict")),
        ("Category,Message", Columns("Message", None, "Category")),
        ("Id,Score,Summary,Text", Columns("Text", None, "Score")),
        ("Premise,Hypothesis,Label,TEXT", Columns("Premise", "Hypothesis", "Label")),
        ("TEXT,text,label,Label", Columns("text", None, "label")),
    ],
)
def test_columns_are_found_by_their_names(tmp_path, header, columns):
    source = table(tmp_path, f"{header}\n{','.join('abcdef'[: header.count(',') + 1])}\n")
    assert find_columns(source, {}) == columns


def test_columns_that_are_named_are_taken(tmp_path):
    source = table(tmp_path, "text,label,other\na,b,c\n")
    assert find_columns(source, {"text": "other", "label": "text"}) == Columns("other", None, "text")
    assert find_columns(source, {"number": "other"}) == Columns("text", None, "other", "number")


def test_a_table_without_names_has_numbered_columns(tmp_path):
    source = table(tmp_path, "fine\t1\npoor\t0\n", "rows.tsv")
    rows = list(read_labelled(source, find_columns(source, {"text": "1", "label": "2"})))
    assert [(row.text, row.target) for row in rows] == [("fine", "1"), ("poor", "0")]


def test_columns_that_cannot_be_told_are_asked_for(tmp_path):
    for names, what in (("x,y,z", "text"), ("text,y,z", "label")):
        source = table(tmp_path, f"{names}\n1,2,3\n")
        with pytest.raises(DataError) as refused:
            find_columns(source, {})
        listed = names.replace(",", ", ")
        assert refused.value.message == f"{source}: no column is known to hold the {what} among {listed}"
        assert "--data.text COLUMN, --data.label COLUMN" in refused.value.hint
    assert find_columns(source, {}, labelled=False) == Columns("text", None, None)
    with pytest.raises(DataError, match="no column 'wrong'"):
        find_columns(table(tmp_path, "text,label\na,b\n"), {"text": "wrong"})
    with pytest.raises(DataError, match="0 rows"):
        find_columns(table(tmp_path, "text,label\n"), {})


@pytest.mark.parametrize(
    ("row", "kind", "told"),
    [
        ({"text": "a", "label": None}, "label", "has no label"),
        ({"text": "a", "label": " "}, "label", "has no label"),
        ({"text": " ", "label": "x"}, "label", "column 'text' is empty"),
        ({"text": "a", "label": float("nan")}, "label", "no label"),
        ({"text": "a", "label": "nan"}, "number", "no number to learn"),
        ({"text": "a", "label": float("inf")}, "number", "no number to learn"),
        ({"text": "a", "label": "many"}, "number", "is no number: 'many'"),
        ({"text": "a", "label": True}, "number", "no number"),
        ({"text": "a", "label": 3.5}, "labels", "no list of labels"),
        ({"text": 5, "label": "x"}, "label", "not a text but int"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path, row, kind, told):
    lines = [json.dumps({"text": "good", "label": {"label": "x", "labels": ["x"], "number": 1}[kind]}), json.dumps(row)]
    source = table(tmp_path, "\n".join(lines) + "\n", "rows.jsonl")
    columns = Columns("text", None, "label", kind)
    with pytest.raises(DataError, match=told) as error:
        list(read_labelled(source, columns))
    assert f"{source}:2" in error.value.message
    assert len(list(read_labelled(source, columns, skip_bad=1))) == 1


def test_labels_are_in_the_order_of_their_numbers_or_names():
    assert list(counted(["10", "9", "0", "9"])) == ["0", "9", "10"]
    assert counted(["b", "a", "b"]) == {"a": 1, "b": 2}
    assert counted([("x", "a"), (), ("a",)]) == {"a": 2, "x": 1}


def source_of(tmp_path, text, **settings):
    return LabelledSource.read(LabelledSettings(train=table(tmp_path, text), **settings))


def test_each_tenth_row_is_held_back(tmp_path):
    text = "text,label\n" + "".join(f"t{n},{'ab'[n % 2]}\n" for n in range(1, 41))
    source = source_of(tmp_path, text, split={"every": 10})
    assert [row.text for row in source.held_back] == ["t10", "t20", "t30", "t40"]
    assert len(source.train) == 36


def test_a_part_without_rows_is_named_with_its_file():
    hint = "give a file that has some, or hold back fewer (data.split.every, data.val)"
    files = {"two": [1, 2], "none": []}
    for settings, told in (
        ({"train": "none"}, "none: 0 rows to train on"),
        ({"train": "none", "val": "two"}, "none: 0 rows to train on"),
        ({"train": "two", "val": "none"}, "none: 0 rows held back"),
        ({"train": "two", "split": {"every": 3}}, "two: 0 rows held back"),
    ):
        with pytest.raises(DataError) as refused:
            divided(LabelledSettings(**settings), files.__getitem__)
        assert (refused.value.message, refused.value.hint) == (told, hint)
    assert divided(LabelledSettings(train="two"), files.__getitem__) == ([1, 2], [])
    assert divided(LabelledSettings(train="two", val="two"), files.__getitem__) == ([1, 2], [1, 2])
    assert divided(LabelledSettings(train="two", split={"every": 2}), files.__getitem__) == ([1], [2])


def test_one_class_and_a_label_never_seen_are_refused(tmp_path):
    with pytest.raises(DataError, match="every row is labelled 'a'"):
        source_of(tmp_path, "text,label\nx,a\ny,a\n")
    val = table(tmp_path, "text,label\nx,a\ny,c\n", "val.csv")
    with pytest.raises(DataError, match=rf"{val}:3: the label 'c' occurs in no training row"):
        source_of(tmp_path, "text,label\nx,a\ny,b\n", val=val)


def test_rows_are_framed_numbered_and_padded(tmp_path, tokenizer):
    source = source_of(tmp_path, "text,label\ngood film,yes\na very bad film,no\n", names={"yes": "positive"})
    assert source.labels == {"no": 1, "positive": 1}
    examples = source.examples(request(tokenizer, ("positive", "no")))
    batch = examples.train.batch(0)
    assert set(batch) == {"ids", "labels", "real"}
    for ids, real, label in zip(batch["ids"], batch["real"], batch["labels"], strict=True):
        text = {0: "good film", 1: "a very bad film"}[int(label)]
        assert ids[real].tolist() == tokenizer.frame(text).ids
        assert not ids[~real].any()


def test_pairs_have_token_types_where_the_model_has_them(tmp_path, tokenizer):
    text = "premise,hypothesis,label\ngood,bad film,x\nit was,not,y\n"
    batch = source_of(tmp_path, text).examples(request(tokenizer, ("x", "y"), token_types=2)).train.batch(0)
    framed = {n: tokenizer.frame(*row) for n, row in enumerate([("good", "bad film"), ("it was", "not")])}
    for row, label in enumerate(batch["labels"].tolist()):
        real = batch["real"][row]
        assert batch["ids"][row][real].tolist() == framed[label].ids
        assert batch["token_types"][row][real].tolist() == framed[label].token_types
    assert "token_types" not in source_of(tmp_path, text).examples(request(tokenizer, ("x", "y"))).train.batch(0)


def test_several_labels_are_ones_and_numbers_are_numbers(tmp_path, tokenizer):
    source = source_of(tmp_path, 'text,labels\ngood,"a, b"\nbad,\nfilm,b\n', labels="labels")
    rows = [source.examples(request(tokenizer, ("b", "a"))).held_back, source.train]
    assert rows[0] is None
    batch = (
        LabelledSource(source.train, source.train).examples(request(tokenizer, ("b", "a"))).held_back.source.batch(0)
    )
    assert batch["labels"].dtype == torch.float32
    assert sorted(batch["labels"].tolist()) == [[0.0, 0.0], [1.0, 1.0]]
    numbers = source_of(tmp_path, "text,score\ngood,1.5\nbad,-2\n", number="score")
    assert sorted(numbers.examples(request(tokenizer, ())).train.batch(0)["labels"].tolist()) == [-2.0, 1.5]


def test_long_texts_are_cut_and_told_of(tmp_path, tokenizer):
    source = source_of(tmp_path, f"text,label\n{'good film ' * 30},a\nbad,b\n")
    examples = source.examples(request(tokenizer, ("a", "b"), length=12))
    assert examples.notes[0] == "1 of 2 training texts cut to batches.length, 12 tokens"
    ids = next(ids for ids in (examples.train.batch(step)["ids"] for step in range(20)) if ids.shape[1] > 5)
    assert ids.shape[1] == 12
    assert ids.max(1).values.min() > 0
    assert tokenizer.special("separator") in ids[ids.count_nonzero(1).argmax()].tolist()


def test_every_epoch_has_each_row_once_in_batches_of_like_length(tmp_path, tokenizer):
    text = "text,label\n" + "".join(f"{'film ' * (n % 7 + 1)}{n},{'ab'[n % 2]}\n" for n in range(64))
    source = source_of(tmp_path, text).examples(BatchRequest("padded", 64, 4, 3, tokenizer, labels=("a", "b"))).train
    for epoch in range(2):
        seen = [tuple(row) for step in range(16) for row in source.batch(16 * epoch + step)["ids"].tolist()]
        texts = [tuple(id for id in row if id) for row in seen]
        assert len(set(texts)) == 64
    assert torch.equal(source.batch(5)["ids"], source.batch(5)["ids"])
    lengths = [source.batch(step)["real"].sum(1) for step in range(16)]
    assert sum(int(lengths_of_batch.max() - lengths_of_batch.min()) for lengths_of_batch in lengths) < 16 * 3


def test_the_columns_that_are_not_read_are_told(tmp_path):
    path = tmp_path / "news.csv"
    path.write_text("label,title,description\n3,a,b\n1,c,d\n")
    source = LabelledSource.read(LabelledSettings(train=str(path)))
    assert source.remarks()[0] == "columns: text title, label label; not read: description"


def test_a_dash_is_no_label_and_minus_one_is_told(tmp_path):
    path = tmp_path / "snli.jsonl"
    rows = [{"gold_label": label, "sentence1": f"a {label}", "sentence2": "b"} for label in ("neutral", "-")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"snli\.jsonl:2: column 'gold_label' has no label: '-'"):
        LabelledSource.read(LabelledSettings(train=str(path)))
    for label, number, told in (("label", None, True), (None, "label", True)):
        for values in ((0, 1, -1), (0, 2, -2), (-1, -2, 1)):
            path.write_text("".join(json.dumps({"text": f"t {n}", "label": n}) + "\n" for n in values))
            source = LabelledSource.read(LabelledSettings(train=str(path), label=label, number=number))
            assert any("-1 is learned like any other" in note for note in source.remarks()) is (values[1] == 1 and told)


def test_a_dash_is_a_label_and_blanks_before_quoted_speech_are_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('text,label\n" ""Hello""",+\n"a; b, c",-\n')
    rows = list(read_labelled(path, find_columns(path, {})))
    assert [(row.text, row.target) for row in rows] == [(' "Hello"', "+"), ("a; b, c", "-")]
    path = tmp_path / "a.tsv"
    path.write_text('text\tlabel\n "Hello"\t+\n')
    (row,) = read_labelled(path, find_columns(path, {}))
    assert row.text == ' "Hello"'


def test_a_blank_before_a_quote_is_refused_and_other_separators_are_guessed(tmp_path):
    path = tmp_path / "a.csv"
    for text, told in (
        ('text, label\n"a", "pos"\n', r"a\.csv:2: a blank before a quote, which is then no mark: ' \"pos\"'"),
        ("text;label\na, b;pos\n", r"a\.csv:2: 2 fields in the row, 1 columns in the first \(perhaps ';' separates"),
        ('"text";"label"\n"a";"pos"\n', r"a\.csv:1: not CSV: .*perhaps semicolons or tabs separate"),
        ("text;label\na;pos\n", r"among text;label \(perhaps ';' .* \(hint: save it with commas"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=told):
            LabelledSource.read(LabelledSettings(train=str(path)))
    path.write_text('text,label\n "a" and "b",pos\nc,neg\n')
    assert LabelledSource.read(LabelledSettings(train=str(path))).train[0].text == ' "a" and "b"'


def test_a_folder_of_texts_for_each_label(tmp_path):
    for label, name, text in (("pos", "0_9.txt", "good\n"), ("pos", "1_7.txt", "fine"), ("neg", "0_3.txt", "bad")):
        (tmp_path / label).mkdir(exist_ok=True)
        (tmp_path / label / name).write_text(text)
    source = LabelledSource.read(LabelledSettings(train=str(tmp_path)))
    found = [(row.text, row.target, row.where) for row in source.train]
    assert found == [
        ("bad", "neg", str(tmp_path / "neg" / "0_3.txt")),
        ("good\n", "pos", str(tmp_path / "pos" / "0_9.txt")),
        ("fine", "pos", str(tmp_path / "pos" / "1_7.txt")),
    ]
    (tmp_path / "urls.txt").write_text("x")
    with pytest.raises(DataError, match=r"urls\.txt lies in no folder of a label, beside neg, pos"):
        LabelledSource.read(LabelledSettings(train=str(tmp_path)))
    (tmp_path / "unsup").mkdir()
    (tmp_path / "unsup" / "0_0.txt").write_text("what?")
    with pytest.raises(DataError, match=r"unsup holds texts without a label"):
        LabelledSource.read(LabelledSettings(train=str(tmp_path)))
    with pytest.raises(DataError, match="holds texts and no folder of texts for each label"):
        LabelledSource.read(LabelledSettings(train=str(tmp_path / "pos")))
