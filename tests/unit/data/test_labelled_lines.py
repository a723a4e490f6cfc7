"""Lines that hold their labels: fastText's are read, those of others named, with a command that makes a table."""

import gzip
import subprocess
import sys

import pytest

from orrery.data.rows.labelled import find_columns, read_labelled
from orrery.data.rows.many_labels import read_many_labels
from orrery.data.sources.labelled import LabelledSettings, LabelledSource
from orrery.data.sources.many_labels import ManyLabelsSettings
from orrery.errors import DataError


def rows_of(file, **asked):
    return [(row.text, row.target) for row in read_labelled(file, find_columns(file, asked))]


@pytest.mark.parametrize("name", ["cooking.train", "cooking.valid", "cooking.txt", "cooking", "cooking.txt.gz"])
def test_fasttexts_lines_are_read_whatever_the_suffix(tmp_path, name):
    content = b"__label__sports  Won  2-1 , again\n\n__label__e-mail\tno reply\ra line __label__sports\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    first, second = read_labelled(tmp_path / name, find_columns(tmp_path / name, {"labels": "labels"}))
    assert (first.text, first.target) == ("Won  2-1 , again", ("sports",))
    assert (second.text, second.target) == ("no reply\ra line", ("e-mail", "sports"))
    assert second.where.endswith(f"{name}:3")


def test_one_label_is_learned_alone_and_several_together(tmp_path):
    one, many = tmp_path / "one.txt", tmp_path / "many.txt"
    one.write_text("__label__a x y\n__label__b z\n")
    assert rows_of(one) == [("x y", "a"), ("z", "b")]
    assert len(LabelledSource.read(LabelledSettings(train=str(one))).train) == 2
    many.write_text("__label__a __label__b x y\nz __label__b\nno label\n")
    assert rows_of(many, labels="labels") == [("x y", ("a", "b")), ("z", ("b",)), ("no label", ())]
    found = read_many_labels(str(many), ManyLabelsSettings(train=str(many)))
    assert [row.classes for row in found] == [("a", "b"), ("b",), ()]
    with pytest.raises(DataError, match=r"many.txt:1: column 'labels' has 2 labels: a, b") as error:
        rows_of(many)
    assert "multi-label" in error.value.hint
    one.write_text("__label__a x y\nno label\n")
    with pytest.raises(DataError, match=r"one.txt:2: column 'labels' has no label") as error:
        rows_of(one)
    assert "multi-label" not in error.value.hint


def test_a_label_without_a_text_and_bytes_that_are_none_are_bad_rows(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"__label__a x\n__label__b\n__label__c \xff\n__label__b y\n")
    columns = find_columns(file, {})
    with pytest.raises(DataError, match=r"a.txt:2: column 'text' is empty"):
        list(read_labelled(file, columns))
    assert [row.text for row in read_labelled(file, columns, skip_bad=1, invalid="replace")] == [
        "x",
        "\N{REPLACEMENT CHARACTER}",
        "y",
    ]
    assert len(list(read_labelled(file, columns, skip_bad=2))) == 2


@pytest.mark.parametrize(
    ("name", "line", "told", "row"),
    [
        ("train_5500.label", "DESC:manner How did it end ?", "TREC's questions", ["DESC:manner", "How did it end ?"]),
        ("all.txt", "Sales rose by 3 % .@positive", "behind the last '@'", ["Sales rose by 3 % .", "positive"]),
        ("train.txt", "i feel; fine;joy", "behind the last ';'", ["i feel; fine", "joy"]),
        ("dev.txt", "(3 (2 It) (4 (2 's) (4 (good))))", "Stanford Sentiment", ["3", "It 's (good"]),
        ("SMSSpamCollection", "ham\tgo until", "fields between tabs", None),
        ("a.svm", "+1 3:0.5 7:1", "numbers of words", None),
        ("a.txt", "3,7 3:0.5 7:1", "numbers of words", None),
        ("a.txt", "A novel.", "whose lines have no labels", None),
    ],
)  # fmt: skip
def test_lines_of_others_are_named_and_the_command_makes_rows(tmp_path, name, line, told, row):
    (tmp_path / name).write_text(line + "\n")
    with pytest.raises(DataError, match=told) as error:
        find_columns(tmp_path / name, {})
    command, _, columns = error.value.hint.partition("; then ")
    if row:
        command = command.replace("python", sys.executable, 1).replace("FILE", name)
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, timeout=60)
        assert (tmp_path / "NEW.tsv").read_text().rstrip("\n").split("\t") == row
        assert columns.startswith("--data.text")


def test_values_in_the_place_of_names_are_counted(tmp_path):
    (tmp_path / "train.csv").write_text('"3","Wall St.","Short-sellers, again"\n"4","Oil","Up"\n')
    with pytest.raises(DataError, match="no column is known to hold the text") as error:
        find_columns(tmp_path / "train.csv", {})
    assert error.value.hint.endswith("1 is '3', 2 is 'Wall St.', 3 is 'Short-sellers, again'")
    assert rows_of(tmp_path / "train.csv", text="2", pair="3", label="1")[0] == ("Wall St.", "3")


def test_tags_and_paths_of_categories_are_lists(tmp_path):
    (tmp_path / "posts.csv").write_text("Title,Tags\nhow,<python><c++>\nwhy,<c++>\n")
    (tmp_path / "meta.jsonl").write_text('{"title": "t", "categories": [["Books", "Art"], ["Books"]]}\n')
    assert rows_of(tmp_path / "posts.csv", labels="Tags") == [("how", ("python", "c++")), ("why", ("c++",))]
    assert rows_of(tmp_path / "meta.jsonl", labels="categories") == [("t", ("Books", "Art"))]
