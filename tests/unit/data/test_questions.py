"""Questions with a text that holds the answer: every format, every window, every bad row."""

import json
import random
from itertools import pairwise

import pytest

from orrery.data.batches.windows import windows_of
from orrery.data.rows.questions import read_questions
from orrery.data.sources import BatchRequest
from orrery.data.sources.questions import QuestionSettings, QuestionSource
from orrery.errors import DataError, UsageError
from orrery.text.special import framed_tokenizer
from orrery.text.train import train_tokenizer

CONTEXT = "Paris is the capital of France. It lies on the Seine, north of Orléans."


def file(tmp_path, content, name="q.jsonl"):
    path = tmp_path / name
    rows = content if isinstance(content, list) else [content]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def row(**fields):
    return {"context": CONTEXT, "question": "Where?", "answers": {"text": ["Seine"], "answer_start": [47]}, **fields}


@pytest.fixture(scope="module")
def tokenizer():
    return framed_tokenizer(train_tokenizer("byte_bpe", [CONTEXT] * 20, 300), "bert")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"text": ["Seine", "the Seine"], "answer_start": [47, 43]}, [("Seine", 47), ("the Seine", 43)]),
        ([{"text": "Paris", "answer_start": 0}], [("Paris", 0)]),
        ("France", [("France", 24)]),
        ({"text": "Paris", "answer_start": 0}, [("Paris", 0)]),
        ('{"text": ["Paris"], "answer_start": [0]}', [("Paris", 0)]),
        ({"text": [], "answer_start": []}, []),
        ("", []),
    ],
)
def test_answers_come_in_every_shape(tmp_path, answers, expected):
    (question,) = read_questions(file(tmp_path, row(answers=answers)))
    assert [(answer.text, answer.start) for answer in question.answers] == expected


def test_the_nested_files_of_squad_are_read(tmp_path):
    qas = [
        {"id": "1", "question": "Where?", "answers": [{"text": "Seine", "answer_start": 47}]},
        {"id": "2", "question": "Why?", "answers": [], "is_impossible": True},
    ]
    source = file(
        tmp_path, {"version": "2", "data": [{"paragraphs": [{"context": CONTEXT, "qas": qas}]}]}, "squad.json"
    )
    first, second = read_questions(source)
    assert (first.name, first.answers[0].text, second.answers) == ("1", "Seine", ())


def test_questions_beside_their_texts_and_a_byte_order_mark(tmp_path):
    content = json.dumps({"version": "1", "data": [row(id="7"), row(answers={"text": [], "answer_start": []})]})
    (tmp_path / "flat.json").write_text(content, encoding="utf-8-sig")
    first, second = read_questions(tmp_path / "flat.json")
    assert (first.name, first.answers[0].text, second.answers) == ("7", "Seine", ())
    (tmp_path / "odd.json").write_text('{"data": [{"context": "x"}]}')
    with pytest.raises(DataError, match=r"odd\.json: data\[0\] has no paragraphs and no question"):
        list(read_questions(tmp_path / "odd.json"))


def test_a_column_beside_the_answer_says_where_it_stands(tmp_path):
    fields = {"context": "Tom is Tom.", "question": "Who?", "answer": "Tom", "answer_start": 7}
    (question,) = read_questions(file(tmp_path, fields))
    assert [answer.start for answer in question.answers] == [7]


@pytest.mark.parametrize("said", [True, 1, "true", "True", "1"])
def test_an_impossible_question_has_no_answer(said, tmp_path):
    (question,) = read_questions(file(tmp_path, row(is_impossible=said)))
    assert question.answers == ()
    (question,) = read_questions(file(tmp_path, row(is_impossible="False")))
    assert question.answers


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"answers": {"text": ["Seine"], "answer_start": [3]}}, "does not stand in the context at character 3"),
        ({"answers": {"text": ["Seine", "Paris"], "answer_start": [47]}}, "2 texts of answers, and answer_start"),
        ({"answers": "London"}, "'London' does not stand in the context"),
        ({"answers": {"text": [""], "answer_start": [0]}}, "an answer without a text"),
        ({"answers": 7}, "no list of text and answer_start"),
        ({"question": "  "}, "column 'question' is empty"),
        ({"context": ""}, "column 'context' is empty"),
        ({"context": None}, "not a text"),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path, fields, told):
    source = file(tmp_path, [row(), row(**fields)])
    with pytest.raises(DataError, match=told) as error:
        list(read_questions(source))
    assert f"{source}:2" in error.value.message
    assert len(list(read_questions(source, skip_bad=1))) == 1


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(DataError, match="no column of the answers"):
        list(read_questions(file(tmp_path, {"context": "a", "question": "b"})))


def test_windows_share_tokens_and_hold_all_of_the_context(tokenizer):
    rng = random.Random(5)
    for _ in range(100):
        question = [rng.randrange(200) for _ in range(rng.randint(1, 9))]
        context = [rng.randrange(200) for _ in range(rng.randint(1, 60))]
        length, stride = rng.randint(16, 40), rng.randint(0, 4)
        windows = windows_of(tokenizer, question, context, length, stride, 8)
        assert windows[0].tokens.start == 0
        assert windows[-1].tokens.stop == len(context)
        for before, after in pairwise(windows):
            assert before.tokens.stop - after.tokens.start == stride
        for window in windows:
            inside = window.framed.ids[window.offset : window.offset + len(window.tokens)]
            assert inside == context[window.tokens.start : window.tokens.stop]
            assert len(window.framed.ids) <= length
            assert window.framed.ids[1 : 1 + min(8, len(question))] == question[:8]


def test_a_row_without_room_is_refused(tokenizer):
    with pytest.raises(UsageError, match="room for 5 of the context"):
        windows_of(tokenizer, [1] * 4, [2] * 30, 12, 6, 8)


@pytest.mark.parametrize("length", [128, 26, 22])
def test_answers_are_found_again_in_every_window(tmp_path, tokenizer, length):
    texts = ["Paris", "the capital", "Orléans", "Seine", "It lies on the Seine", "."]
    rows = [row(answers=text, id=text) for text in texts]
    source = QuestionSource.read(QuestionSettings(train=file(tmp_path, rows), stride=6))
    request = BatchRequest("padded", length, 2, 1, tokenizer, token_types=2)
    counts = {text: 0 for text in texts}
    encoded, notes = source._encoded(request, source.train, "training")
    for each in encoded:
        text = tokenizer.decode(each["ids"][each["starts"] : each["ends"] + 1]).strip()
        assert (each["starts"], each["ends"]) == (0, 0) or text in texts
        counts[text] = counts.get(text, 0) + 1
        assert each["token_types"][each["starts"]] == (1 if each["starts"] else 0)
    assert all(counts[text] for text in texts)
    assert bool(notes) == (length < 128)


def test_batches_have_starts_and_ends(tmp_path, tokenizer):
    source = QuestionSource.read(QuestionSettings(train=file(tmp_path, [row(), row(answers="France")])))
    batch = source.examples(BatchRequest("padded", 64, 2, 1, tokenizer)).train.batch(0)
    assert set(batch) == {"ids", "real", "starts", "ends"}
    assert (batch["ends"] >= batch["starts"]).all()


@pytest.mark.parametrize(
    ("answer", "start"),
    [("cat", "4"), ("cat", [4]), ("cat", 4.0), ("cat", -1), ("cat", ""), ('{"a": 1}', None), ("{1, 2}", "20")],
    ids=str,
)
def test_an_answer_in_words_stands_where_a_table_says_or_is_looked_for(answer, start, tmp_path):
    context = 'the cat {"a": 1} or {1, 2}'
    rows = [{"context": context, "question": "who?", "answers": answer, "answer_start": start}]
    (question,) = read_questions(file(tmp_path, rows))
    assert [(one.text, one.start) for one in question.answers] == [(answer, context.index(answer))]
