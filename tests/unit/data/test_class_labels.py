"""Classes of Parquet files by their names, as the library `datasets` describes them, and -1 as no label."""

import json
from pathlib import Path
from typing import Any

import pytest

from orrery.data.corpora import read_rows
from orrery.data.readers.class_labels import namings
from orrery.data.sources.labelled import LabelledSettings, LabelledSource
from orrery.data.sources.tagged import TaggedSettings, TaggedSource
from orrery.errors import DataError

CLASS = {"names": ["low", "high", "odd"], "_type": "ClassLabel"}
FORMS: dict[str, tuple[Any, Any, Any]] = {
    "a class": (CLASS, 1, "high"),
    "the old form": ({"num_classes": 3, **CLASS}, 2, "odd"),
    "no label": (CLASS, -1, None),
    "nothing": (CLASS, None, None),
    "a list": ({"feature": CLASS, "_type": "List"}, [0, 2], ["low", "odd"]),
    "a sequence": ({"feature": CLASS, "_type": "Sequence", "length": -1}, [1], ["high"]),
    "a large list": ({"feature": CLASS, "_type": "LargeList"}, [], []),
    "a list of one": ([CLASS], [0, -1], ["low", None]),
    "lists of lists": (
        {"feature": {"feature": CLASS, "_type": "List"}, "_type": "List"}, [[0], [1]], [["low"], ["high"]],
    ),
    "a struct": ({"a": CLASS, "b": {"dtype": "int64", "_type": "Value"}}, {"a": 2, "b": 2}, {"a": "odd", "b": 2}),
    "a list of structs": ({"feature": {"a": CLASS}, "_type": "List"}, [{"a": 1}], [{"a": "high"}]),
    "a struct of lists": ({"feature": {"a": CLASS}, "_type": "Sequence"}, {"a": [1, 0]}, {"a": ["high", "low"]}),
    "numbers": ({"dtype": "int64", "_type": "Value"}, 1, 1),
    "classes without names": ({"num_classes": 3, "_type": "ClassLabel"}, 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_numbers_get_their_names(tmp_path: Path, form: str) -> None:
    feature, value, wanted = FORMS[form]
    assert [row["x"] for row in read_rows(saved(tmp_path, {"x": [value]}, {"x": feature}))] == [wanted]


def saved(tmp_path: Path, columns: dict[str, list[Any]], features: Any) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    described = json.dumps({"info": {"features": features}})
    table = pyarrow.table(columns).replace_schema_metadata({"huggingface": described})
    parquet.write_table(table, tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def test_a_number_without_a_name_is_a_bad_record(tmp_path: Path) -> None:
    path = saved(tmp_path, {"x": [0, 7, 1]}, {"x": CLASS})
    with pytest.raises(DataError, match=r"rows\.parquet:2: 7 is none of the 3 classes"):
        list(read_rows(path))
    assert [row["x"] for row in read_rows(path, skip_bad=1)] == ["low", "high"]


@pytest.mark.parametrize(
    "metadata", [None, {}, {b"huggingface": b"{"}, {b"huggingface": b"[]"}, {b"huggingface": b'{"info": null}'},
                 {b"huggingface": b'{"info": {"features": []}}'}, {b"huggingface": b"[" * 9999}, {b"pandas": b"{}"}]
)  # fmt: skip
def test_other_metadata_say_nothing(metadata: Any) -> None:
    assert namings(metadata) == {}


def test_a_classifier_and_a_tagger_learn_the_names(tmp_path: Path) -> None:
    path = str(saved(tmp_path, {"text": ["a", "b", "c"], "label": [0, 2, -1]}, {"label": CLASS}))
    with pytest.raises(DataError, match=r"rows\.parquet:3: column 'label' has no label"):
        LabelledSource.read(LabelledSettings(train=path))
    assert dict(LabelledSource.read(LabelledSettings(train=path, skip_bad=1)).labels) == {"low": 1, "odd": 1}
    columns = {"tokens": [["a", "b"], ["c", "d"]], "ner_tags": [[0, 1], [1, 2]]}
    features = {"ner_tags": {"feature": CLASS, "_type": "List"}}
    tagged = TaggedSource.read(TaggedSettings(train=str(saved(tmp_path, columns, features))))
    assert [row.tags for row in tagged.train] == [("low", "high"), ("high", "odd")]
