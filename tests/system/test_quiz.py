"""The quiz: keys as the lectures' numbers have them, wrong answers that are told apart, and the verb that asks."""

import io
import json
from pathlib import Path

import pytest

from orrery.cli.program import run
from orrery.errors import UsageError
from orrery_course.course import find
from orrery_course.quiz import DECKS, Question, Wrong, chosen, entries, judge, lettered, question, shown
from orrery_course.quiz._question import _ENTRIES

KEYS = {
    "softmax-weights": "they sum to 1; each lies between 0 and 1, and none is 0; "
    "adding 100 to every "
    "score leaves them as they are",
    "heat-map": "européenne",
    "dot-product": "it has no parameters; all 128 x 128 scores are one matrix product",
    "order": "give each word its position, and mask the future",
    "stacking": "4",
    "sinusoids": "every number lies between -1 and 1; no two of 1,000 places are alike; a shift is one "
    "matrix for all places; "
    "all places have vectors of one length",
    "swap": "0.1 0.2 1.2 0.1",
    "softmax-axis": "row-wise",
    "causal-mask": "0 -inf -inf -inf; 0 0 -inf -inf; 0 0 0 -inf; 0 0 0 0",
    "mask-function": "it sets scores of later words to -inf",
    "skip-gram-probability": "0.307 0.186 0.506",
    "unembedding": "38,597,376",
    "shapes": "3 5",
    "memory": "350",
    "residuals": "it shrinks with every layer",
    "compute": "3645.83",
    "what-model": "an encoder, as BERT has it",
    "dense-similarity": "0.857049",
    "word2vec-kinds": "6",
    "text-to-text": "an encoder-decoder",
    "cloze": "66.45 33.22 0.3322",
    "cloze-both-sides": "movie theater",
    "one-hot-distance": "1.41421",
    "attention-parameters": "786,432",
    "padding-row": "3 50 41 9 30 46 21 50 41 55",
    "unknown-words": "givin' lectrue",
    "noam": "1.747e-07 0.0006988 0.0001398",
    "matrices": "27,938",
    "skip-gram-pairs": "furry little hiding in",
    "next-letters": "e l l o",
    "quadratic": "shorter than the width",
    "greedy": "it does not",
    "what-to-keep": "keys; values",
    "cache": "4,718,592",
    "masked-scores": "523,776",
    "heads": "1,048,576",
    "synapses": "1.5",
}
"""What the computed answers must be, from the decks and from arithmetic by hand."""


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_the_lectures(name: str) -> None:
    assert shown(entries()[name].question) == KEYS[name]


@pytest.mark.parametrize("name", entries())
def test_the_right_answer_is_right_and_each_wrong_one_is_told_why(name: str) -> None:
    entry = entries()[name]
    found = entry.question
    assert entry.deck in DECKS
    assert found.why
    assert found.asks
    options = lettered(found)
    letters = {option: letter for letter, option in options.items()}
    right = " ".join(letters[option] for option in found.right) if options else " ".join(found.right)
    assert judge(found, right).right
    for wrong in found.wrong:
        judgement = judge(found, letters[wrong.says] if options else wrong.says)
        assert not judgement.right
        assert wrong.because in judgement.said


@pytest.mark.parametrize("name", [name for name in entries() if name != "dice"])
def test_what_is_to_be_tried_runs_as_it_is_written(name: str) -> None:
    program, verb, *words = entries()[name].question.try_this.split()
    assert program == "orrery"
    if verb == "course":
        assert [one.name for one in find(words[0]).find(words[1])] == words[1:]
    else:
        assert verb in ("lab", "plan")
        assert run([verb, *words, "--help"]) == 0


def test_several_options_must_all_be_there() -> None:
    found = entries()["what-to-keep"].question
    letters = {option: letter for letter, option in lettered(found).items()}
    half = judge(found, letters["keys"])
    assert not half.right
    assert half.said == "values: this holds too."
    assert judge(found, letters["values"] + letters["keys"]).right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        *(("523776", True), ("523,776", True), ("523 776", False), ("524000", False), ("5e5", False)),
        *(("523,776 scores", True), ("= [523776]", True)),
    ],
)
def test_counts_are_exact_and_written_either_way(answer: str, right: bool) -> None:
    assert judge(entries()["masked-scores"].question, answer).right is right


def test_numbers_that_are_no_counts_may_be_rounded() -> None:
    assert judge(entries()["cloze"].question, "66 33 .33").right
    assert not judge(entries()["cloze"].question, "60 33 .33").right


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("cloze", "66.45 %, 33.22 %, 0.33 %"), ("shapes", "(3, 5)"), ("shapes", "3x5"), ("one-hot-distance", "√2"),
        ("memory", "350 GB"), ("swap", "[.1, .2, 1.2, .1]"), ("noam", "1.747e-7; 7.0e-4; 1.4e-4"),
        ("one-hot-distance", r"\sqrt{2}"), ("one-hot-distance", "1,41"), ("one-hot-distance", "1,414"),
        ("swap", "0,1 0,2 1,2 0,1"), ("skip-gram-probability", "0,307; 0,186; 0,506"), ("compute", "3.645,83"),
        ("unembedding", "38.597.376"), ("synapses", "15/10"), ("synapses", "1,5 %"), ("dense-similarity", "6/7"),
        ("dense-similarity", "85.7%"), ("noam", "1.747·10^-7, 7*10**-4, 1.4 x 10^(-4)"),
        ("unknown-words", "givin\N{RIGHT SINGLE QUOTATION MARK} lectrue"),
    ],
)  # fmt: skip
def test_other_ways_to_write_an_answer_are_no_mistake(name: str, answer: str) -> None:
    assert judge(entries()[name].question, answer).right


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("synapses", "150%", "right but for a factor of 100: mind whether a share or percent is asked"),
        ("cloze", "0.6645 0.3322 0.0033", "right but for a factor of 100"),
        ("shapes", "3.5", "it takes 2 numbers, and there is 1"),
        ("one-hot-distance", "1/0", "it takes 1 number, and there are 2"),
        ("unknown-words", "lectrue givin'", "right, but in another order"),
        ("next-letters", "e l", "it takes 4 words, and there are 2"),
    ],
)
def test_a_near_miss_is_told(name: str, answer: str, said: str) -> None:
    judgement = judge(entries()[name].question, answer)
    assert not judgement.right
    assert said in judgement.said


@pytest.mark.parametrize("answer", ["one and a half", "?"])
def test_words_for_a_number_are_asked_again(answer: str) -> None:
    with pytest.raises(UsageError, match="is no answer") as told:
        judge(entries()["synapses"].question, answer)
    assert told.value.hint == "type numbers in digits, such as 0.5, 1/2 or 2e-7"


def test_letters_that_no_option_has_are_refused_in_words() -> None:
    with pytest.raises(UsageError, match="'z' is no answer"):
        judge(entries()["softmax-axis"].question, "z")


def test_what_is_no_answer_is_asked_again(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    letter = next(letter for letter, option in lettered(entries()["softmax-axis"].question).items() if "row" in option)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"zz\n{letter}\n"))
    assert run(["quiz", "softmax-axis"]) == 0
    told = capsys.readouterr().out
    assert "'zz' is no answer: type letters: a, b" in told
    assert told.strip().endswith("1 of 1 right")


ANSWERS = "('yes',), (Wrong('no', 'for'),), 'so'"


@pytest.mark.parametrize(
    ("gives", "why"),
    [
        ("3", "gives no question"),
        ("1 / 0", "cannot be computed: ZeroDivision"),
        ("None.shape", "AttributeError"),
        (f"Question('?', 'single', {ANSWERS})", "kind 'single'\nhint: there are: one, many, numbers, words"),
        ("Question('?', 'one', 'yes', (Wrong('no', 'for'),), 'so')", "right of '?' are not texts"),
        ("Question('?', 'numbers', (3,), (Wrong('4', 'for'),), 'so')", "right of '?' are not texts"),
        ("Question('?', 'one', ('yes',), ('no',), 'so')", "wrong are not Wrong"),
        ("Question('?', 'one', (), (Wrong('no', 'for'),), 'so')", "no right answer"),
        ("Question('?', 'one', ('yes',), (), 'so')", "no wrong answer"),
        ("Question('?', 'numbers', ('0.5',), (Wrong('0.502', 'for'),), 'so')", "two answers of '?' are the same"),
        ("Question('?', 'one', ('yes',), (Wrong('yes', 'for'),), 'so')", "two answers of '?' are the same, 'yes'"),
        ("Question('?', 'numbers', ('three',), (Wrong('4', 'for'),), 'so')", "nobody can type 'three'"),
        ("Question('?', 'numbers', ('0,5',), (Wrong('4', 'for'),), 'so')", "nobody can type '0,5'"),
        ("Question('?', 'words', ('two words',), (Wrong('no', 'for'),), 'so')", "nobody can type 'two words'"),
        (f"Question('', 'one', {ANSWERS})", "is empty or no text"),
        ("Question('?', 'one', ('a',), tuple(Wrong(str(n), 'for') for n in range(30)), 'so')", "31 options"),
    ],
)
def test_a_mistake_of_a_lecturer_is_told_with_its_place(
    gives: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / f"own_{abs(hash(gives))}.py"
    head = "from orrery_course.quiz import Question, Wrong, question\n\n@question('größe', 'Übung', 'x')\n"
    own.write_text(f"{head}def own():\n    return {gives}\n", encoding="utf-8")
    try:
        assert run(["with", str(own), "quiz", "übung", "--answers"]) == 2
        told = capsys.readouterr().err
        assert why in told
        assert f"error: {own}, line {3 if gives == '3' else 5}: " in told
    finally:
        _ENTRIES.pop("größe")


def test_a_name_that_is_taken_is_told_with_both_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own_swap.py"
    own.write_text(
        "from orrery_course.quiz import question\n\n@question('swap', 'S4', 'x')\ndef own():\n    return 3\n"
    )
    assert run(["with", str(own), "quiz", "swap"]) == 2
    assert "is called 'swap' too\nhint: give the question another name" in capsys.readouterr().err


def test_it_asks_and_counts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("0.1 0.2 1.2 0.1\n0.1 0.6 0.4 0.1\n\n"))
    assert run(["quiz", "swap", "swap", "cache"]) == 0
    assert "1 of 1 right" not in (told := capsys.readouterr().out)
    assert "Right." in told
    assert "2 of 2: S3, " in told
    assert told.strip().endswith("right")


def test_the_end_of_the_input_ends_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("0.1 0.6 0.4 0.1\n"))
    assert run(["quiz", "S3"]) == 0
    told = capsys.readouterr().out
    assert "Not right." in told
    assert "keeps the weights at their places" in told
    assert told.strip().endswith(f"0 of 1 right, {len(chosen(['S3'])) - 1} not asked")


def test_it_lists_shows_and_writes_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["quiz"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in KEYS)
    assert run(["quiz", "s1", "--answers"]) == 0
    assert "38,597,376" in capsys.readouterr().out
    assert run(["quiz", "swap", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["right"] == ["0.1", "0.2", "1.2", "0.1"]


def test_a_name_that_no_question_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["quiz", "swop"]) == 2
    assert "swap" in capsys.readouterr().err


def test_questions_that_nobody_can_answer_are_refused() -> None:
    with pytest.raises(UsageError, match="two answers of"):
        Question("What?", "one", ("a",), (Wrong("a", "the same"),), "so")
    with pytest.raises(UsageError, match="2 right options"):
        Question("What?", "one", ("a", "b"), (Wrong("c", "no"),), "so")
    with pytest.raises(UsageError, match="is called 'swap' too"):
        question("swap", "S3", "again")(lambda: Question("What?", "one", ("a",), (Wrong("b", "no"),), "so"))


def test_every_deck_stands_in_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "quiz.md").read_text(encoding="utf-8")
    assert all(f"```{{question}}\n{deck}\n```" in page for deck in DECKS)
