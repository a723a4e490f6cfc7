"""What is held back of tables in adversarial order: each label on both sides, no text on both, whatever the order."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from orrery.data.cleaning.leaks import shared
from orrery.data.rows.labelled import Labelled
from orrery.data.sources import SOURCES
from orrery.data.stratified import divide, folded, ranges
from orrery.errors import DataError
from orrery.recipes.read import overridden
from orrery.schema.registry import settings_of
from orrery.tasks import TASKS

Rows = list[dict[str, Any]]
Table = Callable[[], Rows]


def turns(labels: int, rows: int = 200) -> Rows:
    return [{"text": f"note {n}", "label": f"l{n % labels}"} for n in range(rows)]


def blocks(labels: int, rows: int = 200) -> Rows:
    return [{"text": f"note {n}", "label": f"l{n * labels // rows}"} for n in range(rows)]


def copies(apart: int, times: int, rows: int = 120) -> Rows:
    """Each text ``times`` times, its copies ``apart`` rows from each other."""
    texts = [(f"note {n}", f"l{n % 3}") for n in range(rows // times)]
    texts_and_labels = []
    for start in range(0, len(texts), apart):
        texts_and_labels += texts[start : start + apart] * times
    return [{"text": text, "label": label} for text, label in texts_and_labels]


def disguised() -> Rows:
    """The same text with other white space and capital letters."""
    forms = ("the {0} thing", "The {0} Thing", " the  {0} thing ", "the {0}\tTHING", "the {0} thing\n")
    return [{"text": forms[n % 5].format(n // 5), "label": f"l{n // 5 % 4}"} for n in range(150)]


def rare(ones: int, twos: int, others: int = 100) -> Rows:
    """Labels of a single row and of two, before and behind frequent ones."""
    rows = [{"text": f"one {n}", "label": f"one{n}"} for n in range(ones)]
    rows += [{"text": f"often {n}", "label": f"l{n % 2}"} for n in range(others)]
    return rows + [{"text": f"two {n}", "label": f"two{n // 2}"} for n in range(2 * twos)]


def contradicting() -> Rows:
    """Texts that stand under several labels."""
    return [{"text": f"note {n // 4}", "label": f"l{(n + n // 4) % 5}"} for n in range(120)]


def heavy() -> Rows:
    """One text makes up most of the rows."""
    return [{"text": "same" if n % 4 else f"note {n}", "label": "ab"[n % 8 == 0 or n % 4 == 1]} for n in range(160)]


def several(period: int) -> Rows:
    sets = [["food"], ["room", "bad"], ["bar", "loud"], [], ["far"], ["food", "bad"], ["rare", "loud"]]
    return [{"text": f"note {n}", "labels": sets[n % period] if n % 41 else ["food", "far"]} for n in range(210)]


def two_texts(shape: str) -> Rows:
    """Premises with three hypotheses, questions that share either side, or one that all share."""
    labels = ("yes", "no", "maybe")
    if shape == "premises":
        return [{"text": f"p {n // 3}", "pair": f"h {n}", "label": labels[n % 3]} for n in range(150)]
    if shape == "either":
        return [{"text": f"a {n // 2}", "pair": f"b {(n + 1) // 2}", "label": labels[n // 4 % 3]} for n in range(150)]
    return [{"text": "Is it so?", "pair": f"h {n}", "label": labels[n % 3]} for n in range(150)]


def sentences(kind: str) -> Rows:
    named = {"words": ["anna", "sees", "rome"], "tags": ["B-PER", "O", "B-LOC"]}
    plain = {"words": ["nothing", "happens", "here"], "tags": ["O", "O", "O"]}
    long = {"words": ["new", "york"], "tags": ["B-LOC", "I-LOC"]}
    own = {"alternate": [named, plain], "thirds": [plain, plain, named], "rare": [plain] * 19 + [long]}[kind]
    return [
        {"words": [*own[n % len(own)]["words"], f"x{n // 2}"], "tags": [*own[n % len(own)]["tags"], "O"]}
        for n in range(120)
    ]


def numbers(period: int) -> Rows:
    return [{"text": f"item {n}", "score": n % period} for n in range(300)]


def shuffled(rows: Rows) -> Rows:
    return random.Random(5).sample(rows, len(rows))


TABLES: dict[str, tuple[str, Table]] = {
    **{f"{n} labels in turn": ("classification", lambda n=n: turns(n)) for n in (2, 3, 5, 10, 20, 40)},
    **{f"{n} labels in blocks": ("classification", lambda n=n: blocks(n)) for n in (2, 10, 50)},
    **{
        f"copies {a} apart, {t} times": ("classification", lambda a=a, t=t: copies(a, t))
        for a, t in ((1, 2), (10, 2), (10, 4), (40, 3))
    },
    "copies in disguise": ("classification", disguised),
    "40 labels of one row": ("classification", lambda: rare(40, 0)),
    "20 labels of two rows": ("classification", lambda: rare(0, 20)),
    "single and double labels alone": ("classification", lambda: rare(9, 9, 4)),
    "four rows": ("classification", lambda: turns(2, 4)),
    "three rows": ("classification", lambda: [*turns(2, 2), {"text": "note 3", "label": "l0"}]),
    "texts under several labels": ("classification", contradicting),
    "one text is most of the table": ("classification", heavy),
    "premises of three hypotheses": ("classification", lambda: two_texts("premises")),
    "pairs that share either side": ("classification", lambda: two_texts("either")),
    "pairs that all share one text": ("classification", lambda: two_texts("one")),
    **{f"sets of labels, {n} in turn": ("multi_label", lambda n=n: several(n)) for n in (5, 7)},
    **{f"tags, {kind}": ("tagging", lambda kind=kind: sentences(kind)) for kind in ("alternate", "thirds", "rare")},
    **{f"{n} numbers in turn": ("regression", lambda n=n: numbers(n)) for n in (5, 10)},
}  # fmt: skip


def source_of(path: Path, task: str, rows: Rows, **columns: str) -> Any:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    kind = TASKS.find(task)
    own = {"pair": "pair"} if rows and "pair" in rows[0] else {}
    source = SOURCES.find(kind.source)
    return source.read(settings_of(source).model_validate(kind.data(str(path), None, {**own, **columns})))


def texts_of(row: dict[str, Any]) -> str:
    words = row.get("words")
    return folded(" ".join(words) if words else "|".join(row[name] for name in ("text", "pair") if name in row))


def labels_of(row: dict[str, Any]) -> Sequence[str]:
    return row["tags"] if "tags" in row else row["labels"] if "labels" in row else [str(row.get("label", ""))]


@pytest.mark.parametrize("name", TABLES)
def test_each_label_is_on_both_sides_and_no_text_is(tmp_path: Path, name: str) -> None:
    task, table = TABLES[name]
    rows = table()
    source = source_of(tmp_path / "t.jsonl", task, rows)
    numbers = {f"{tmp_path / 't.jsonl'}:{n}": row for n, row in enumerate(rows, start=1)}
    train, held = ([numbers[row.where] for row in side] for side in (source.train, source.held_back))
    assert len(train) + len(held) == len(rows)
    assert not {texts_of(row) for row in train} & {texts_of(row) for row in held}
    known = {label for row in train for label in labels_of(row)}
    assert known == {label for row in rows for label in labels_of(row)}
    texts: dict[str, set[str]] = {}
    for row in rows:
        for label in labels_of(row):
            texts.setdefault(label, set()).add(texts_of(row))
    assert {label for row in held for label in labels_of(row)} == {label for label in texts if len(texts[label]) > 1}
    if task == "regression":
        assert len({row["score"] for row in held}) > 3
    assert shared(source.train, source.held_back).whole == []


@pytest.mark.parametrize("name", TABLES)
def test_the_order_of_the_file_changes_nothing(tmp_path: Path, name: str) -> None:
    task, table = TABLES[name]
    rows = table()
    sides = [
        {texts_of_row(row) for row in source_of(tmp_path / f"{n}.jsonl", task, own).held_back}
        for n, own in enumerate((rows, rows[::-1], shuffled(rows)))
    ]
    assert sides[0] == sides[1] == sides[2]


def texts_of_row(row: Any) -> tuple[str, ...]:
    return tuple(folded(text) for text in row.whole)


@pytest.mark.parametrize("labels", [2, 10, 40])
def test_about_a_tenth_is_held_back(tmp_path: Path, labels: int) -> None:
    source = source_of(tmp_path / "t.jsonl", "classification", turns(labels, 800))
    assert 72 <= len(source.held_back) <= 88


def test_questions_are_held_back_by_their_paragraph(tmp_path: Path) -> None:
    rows = [
        {"context": f"Paragraph {n // 5} says {n // 5}.", "question": f"What of {n}?", "answers": f"{n // 5}"}
        for n in range(100)
    ]
    source = source_of(tmp_path / "q.jsonl", "question_answering", rows)
    train, held = ({row.context for row in side} for side in (source.train, source.held_back))
    assert (len(train), len(held)) == (18, 2)
    alone = source_of(tmp_path / "one.jsonl", "question_answering", [{**row, **ONE} for row in rows])
    assert len(alone.held_back) == 10
    (note,) = shared(*alone.sides()).notes()
    assert note.startswith("leak: 10 of 10 rows held back share a text with a training row")


ONE = {"context": "One paragraph says 1.", "answers": "1"}


def captions(rows: int) -> Iterator[dict[str, Any]]:
    for n in range(rows):
        yield {"source": f"picture {n // 5}", "target": f"caption {n}"}


def test_the_targets_of_a_source_stay_together(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in captions(200)), encoding="utf-8")
    source_class = SOURCES.find("pairs")
    settings = settings_of(source_class).model_validate(TASKS.find("summarisation").data(str(path), None, {}))
    source = source_class.read(settings)
    train, held = ({row.source for row in side} for side in source.sides())
    assert len(held) == 4
    assert not train & held


def talks(rows: int, period: int) -> Rows:
    return [
        {"messages": [{"role": "user", "content": f"ask {n % period}"}, {"role": "assistant", "content": f"say {n}"}]}
        for n in range(rows)
    ]


def choices(rows: int, period: int) -> Rows:
    return [{"prompt": f"ask {n % period}", "chosen": f"yes {n}", "rejected": f"no {n}"} for n in range(rows)]


def asked(rows: int, period: int) -> Rows:
    return [{"prompt": f"ask {n % period}", "answer": f"{n}"} for n in range(rows)]


@pytest.mark.parametrize(("task", "table"), [("sft", talks), ("dpo", choices), ("reward", choices), ("grpo", asked)])
@pytest.mark.parametrize(("rows", "period"), [(200, 50), (6, 3), (2, 2), (60, 60)])
def test_conversations_and_prompts_are_held_back_by_the_first_prompt(
    tmp_path: Path, task: str, table: Callable[[int, int], Rows], rows: int, period: int
) -> None:
    source = source_of(tmp_path / "t.jsonl", task, table(rows, period))
    train, held = ({row.first_prompt for row in side} for side in (source.train, source.held_back))
    assert held
    assert train
    assert not train & held
    assert len(held) <= max(1, period // 3)


@pytest.mark.parametrize(("task", "table"), [("sft", talks), ("dpo", choices)])
def test_one_prompt_for_all_is_parted_by_what_is_answered_and_told(
    tmp_path: Path, task: str, table: Callable[[int, int], Rows]
) -> None:
    source = source_of(tmp_path / "t.jsonl", task, table(40, 1))
    assert len(source.held_back) == 4
    (note,) = source.remarks()
    assert "leak: 4 of 4 rows held back share a text with a training row" in note


EQUAL: dict[str, tuple[str, Rows]] = {
    "two texts, a label each": ("classification", [{"text": f"note {n % 2}", "label": "ab"[n % 2]} for n in range(40)]),
    "one text, many numbers": ("regression", [{"text": "note", "score": n} for n in range(40)]),
    "two sentences": ("tagging", sentences("alternate")[:1] * 20 + sentences("alternate")[1:2] * 20),
    "one prompt": ("grpo", [{"prompt": "ask", "answer": str(n)} for n in range(40)]),
    "one conversation": ("sft", talks(1, 1) * 40),
    "one preference": ("dpo", choices(1, 1) * 40),
    "one sentence": ("tagging", sentences("alternate")[:1] * 40),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_rows_are_parted_where_nothing_else_could_be_held_back_and_told(tmp_path: Path, name: str) -> None:
    task, rows = EQUAL[name]
    source = source_of(tmp_path / "t.jsonl", task, rows)
    assert len(source.held_back) == 4
    assert "leak: 4 of 4 rows held back stand in training too, word for word" in "\n".join(source.remarks())


def test_a_table_of_which_nothing_can_be_held_back_is_refused(tmp_path: Path) -> None:
    rows = [{"text": f"note {n}", "label": f"l{n}"} for n in range(40)]
    with pytest.raises(DataError, match="of its 40 rows none can be held back") as refused:
        source_of(tmp_path / "t.jsonl", "classification", rows)
    assert "--val FILE" in refused.value.hint


def test_a_split_that_a_recipe_names_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in turns(3, 40)), encoding="utf-8")
    source_class = SOURCES.find("labelled")
    settings = settings_of(source_class).model_validate({"train": str(path), "split": {"every": 10}})
    assert [row.where.rpartition(":")[2] for row in source_class.read(settings).held_back] == ["10", "20", "30", "40"]  # type: ignore[attr-defined]


def test_duplicates_on_both_sides_are_told_where_a_file_validates(tmp_path: Path) -> None:
    rows = turns(3, 30)
    other = tmp_path / "val.jsonl"
    other.write_text(
        "".join(json.dumps({**row, "text": row["text"].upper()}) + "\n" for row in rows[:7]), encoding="utf-8"
    )
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    source_class = SOURCES.find("labelled")
    source = source_class.read(settings_of(source_class).model_validate({"train": str(path), "val": str(other)}))
    note = source.remarks()[-1]
    assert note.startswith("leak: 7 of 7 rows held back stand in training too, word for word")
    assert note.endswith("val.jsonl:1")
    assert "7 were trained on word for word, and 0 share" in shared(*source.sides()).sentence()


def test_ranges_have_as_many_rows_and_equal_numbers_share_one() -> None:
    rows = [Labelled(str(n), f"note {n}", None, float(n)) for n in range(100)]
    keys = ranges(rows, [float(n) for n in range(100)], 10)
    assert [keys.count((str(n),)) for n in range(5)] == [20] * 5
    assert len(set(ranges(rows, [1.0, 2.0] * 50, 10))) == 2
    few = [Labelled(str(n), f"note {n % 5}", None, float(n)) for n in range(100)]
    assert set(ranges(few, [float(n) for n in range(100)], 10)) == {("0",)}
    assert divide([], 10) == []


def test_the_hint_for_a_label_that_a_split_by_rows_holds_back_alone_works(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in turns(10)), encoding="utf-8")
    recipe: dict[str, Any] = {"data": {"kind": "labelled", "train": str(path), "split": {"every": 10}}}
    source_class = SOURCES.find("labelled")
    with pytest.raises(DataError, match="the label 'l9' occurs in no training row") as refused:
        source_class.read(settings_of(source_class).model_validate(recipe["data"]))
    flag, value = refused.value.hint.partition(": ")[2].split(" ", 1)
    mended = overridden(recipe, [flag, value.strip("'")], {})["data"]
    assert len(source_class.read(settings_of(source_class).model_validate(mended)).labels) == 10
