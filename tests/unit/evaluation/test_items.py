"""Tasks that score items: what they read, what they ask, and how they count."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from orrery.data.generated import find
from orrery.errors import DataError, MachineError, UsageError
from orrery.evaluation.benchmarks import blimp, choices, gsm8k, hellaswag, mmlu, programs
from orrery.exchange.reading.read import Stored
from orrery.language_model.model import LanguageModel
from orrery.sandbox import check_all, isolation
from tiny_models import TOKENIZER, tiny


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    return LanguageModel(Stored(Path("tiny"), tiny("llama", torch.float64), tokenizer=TOKENIZER))


def written(tmp_path: Path, *rows: dict[str, Any], name: str = "rows.jsonl") -> str:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def test_choices_are_scored_behind_the_question(lm: LanguageModel, tmp_path: Path) -> None:
    rows = [{"question": "the cat", "choices": ["sat", "on the mat"], "answer": answer} for answer in ("A", 1, "sat")]
    evaluated = choices.evaluate_choices(lm, choices.read_questions(written(tmp_path, *rows)), task="choices")
    nats = [one.nats for one in lm.likelihoods([("the cat", " sat"), ("the cat", " on the mat")])]
    assert all(detail["nats"] == pytest.approx(nats) for detail in evaluated.details)
    assert evaluated.scores[0].score == pytest.approx((2 if nats[0] > nats[1] else 1) / 3)
    assert [score.signature.split("|")[1] for score in evaluated.scores] == [
        "normalisation:none", "normalisation:characters", "normalisation:tokens",
    ]  # fmt: skip
    assert evaluated.items[1] == "the cat on the mat"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"choices": ["a", "b"], "answer": 0}, "no text `question`"),
        ({"question": "q", "choices": ["a"], "answer": 0}, "no list of two"),
        ({"question": "q", "choices": ["a", ""], "answer": 0}, "no list of two"),
        ({"question": "q", "choices": ["a", "a"], "answer": 0}, "are equal"),
        ({"question": "q", "choices": ["a", "b"], "answer": "C"}, "none of 2 choices"),
        ({"question": "q", "choices": ["a", "b"], "answer": 2}, "none of 2 choices"),
        ({"question": "q", "choices": ["a", "b"], "answer": True}, "none of 2 choices"),
        ({"question": "q", "choices": ["a", "b"]}, "none of 2 choices"),
    ],
)
def test_a_row_that_is_no_question_is_named(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    good = {"question": "q", "choices": ["a", "b"], "answer": 0}
    with pytest.raises(DataError, match=rf"rows.jsonl:2: .*{says}"):
        choices.read_questions(written(tmp_path, good, row))


def test_mmlu_asks_as_the_paper_does(tmp_path: Path) -> None:
    for split, answer in (("dev", "B"), ("test", "D")):
        (tmp_path / split).mkdir()
        rows = f'"What, {split}?",one,two,three,"fo""ur",{answer}\n'
        (tmp_path / split / f"high_school_cats_{split}.csv").write_text(rows)
    items, examples = (mmlu.read_items(str(tmp_path), split) for split in ("test", "dev"))
    (question,), fewer = mmlu.prompted(items, examples, 1, lambda text: True)
    assert question.context == (
        "The following are multiple choice questions (with answers) about high school cats.\n\n"
        'What, dev?\nA. one\nB. two\nC. three\nD. fo"ur\nAnswer: B\n\n'
        'What, test?\nA. one\nB. two\nC. three\nD. fo"ur\nAnswer:'
    )
    assert (question.choices, question.answer, question.group) == (("A", "B", "C", "D"), 3, "high_school_cats")
    assert fewer == 0
    (short,), fewer = mmlu.prompted(items, examples, 1, lambda text: "dev" not in text)
    assert "What, dev?" not in short.context
    assert fewer == 1
    with pytest.raises(DataError, match="has 1 examples in dev, and 5"):
        mmlu.prompted(items, examples, 5, lambda text: True)
    several = [replace(items[0], subject=subject) for subject in ("cats", "dogs", "cats", "cats", "dogs", "dogs")]
    assert mmlu.chosen(several, [], 2) == [several[place] for place in (0, 1, 2, 4)]
    assert mmlu.chosen(several, ["dogs"], 2) == [several[1], several[4]]
    assert mmlu.chosen(several, ["dogs"], None) == [several[place] for place in (1, 4, 5)]
    with pytest.raises(DataError, match="no questions about dogs"):
        mmlu.chosen(items, ["dogs"], None)
    with pytest.raises(DataError, match="of the split val"):
        mmlu.read_items(str(tmp_path), "val")
    (tmp_path / "test" / "dogs_test.csv").write_text("q,1,2,3,4,E\n")
    with pytest.raises(DataError, match=r"dogs_test.csv:1: the answer 'E'"):
        mmlu.read_items(str(tmp_path), "test")


def test_the_generated_subjects_have_one_right_answer_each() -> None:
    made = find("subject-questions")
    assert made is not None
    # As many of each subject as the set says, among them the five examples that MMLU has.
    stated = re.search(
        r"each subject (\d+) questions in `dev`.* (\d+) in `val` and at most (\d+) in `test`", made.set.how
    )
    assert stated is not None
    assert stated[1] == "5"
    for part, number in zip(("dev", "val", "test"), map(int, stated.groups()), strict=True):
        items = mmlu.read_items("subject-questions", part)
        counts = Counter(item.subject for item in items)
        assert len(mmlu.subjects_of(items)) == len(counts) == 6
        assert max(counts.values()) == number
        assert part == "test" or min(counts.values()) == number
        assert all(len(set(item.choices)) == 4 for item in items)
    asked = [{(item.subject, item.question) for item in mmlu.read_items("subject-questions", p)} for p in mmlu.SPLITS]
    assert not asked[0] & asked[2]
    assert not asked[1] & asked[2]


def test_hellaswag_is_cleaned_as_in_lm_eval(tmp_path: Path) -> None:
    row = {"activity_label": "Cats", "ctx_a": "A cat sat.", "ctx_b": "then IT", "endings": ["[header] a  b", "c"],
           "label": "1"}  # fmt: skip
    (question,) = hellaswag.read_hellaswag(written(tmp_path, row))
    assert question.context == "Cats: A cat sat. Then it"
    assert question.choices == (" a b", "c")
    assert question.answer == 1
    with pytest.raises(DataError, match=r"rows.jsonl:1: `endings`"):
        hellaswag.read_hellaswag(written(tmp_path, {**row, "endings": "a"}))


def test_blimp_is_the_mean_over_paradigms(lm: LanguageModel, tmp_path: Path) -> None:
    rows = [{"uid": uid, "term": "agreement", "good": f"the cat {n}", "bad": f"the dog {n}"}
            for uid, count in (("a", 1), ("b", 3)) for n in range(count)]  # fmt: skip
    questions, phenomena = blimp.read_blimp(written(tmp_path, *rows))
    evaluated = blimp.evaluate_blimp(lm, questions, phenomena)
    right = [lm.score(row["good"]).total > lm.score(row["bad"]).total for row in rows]
    assert evaluated.scores[0].score == pytest.approx((right[0] + sum(right[1:]) / 3) / 2)
    assert evaluated.groups["AGREEMENT"][1] == 4
    assert evaluated.notes == ["2 of 67 paradigms"]
    first, _ = blimp.read_blimp(written(tmp_path, *rows), 1)
    assert len(first) == 2
    with pytest.raises(DataError, match="no paradigm c"):
        blimp.read_blimp(written(tmp_path, *rows), None, ["c"])


def test_equal_sentences_as_the_published_set_has_some_count_as_wrong_and_are_told(
    lm: LanguageModel, tmp_path: Path
) -> None:
    row = {"uid": "a", "term": "t", "good": "the cat", "bad": "the cat"}
    evaluated = blimp.evaluate_blimp(lm, *blimp.read_blimp(written(tmp_path, row)))
    assert evaluated.scores[0].score == 0
    assert evaluated.notes[-1].startswith("wrong, because both sentences are the same: ")
    assert evaluated.notes[-1].endswith("rows.jsonl:1")


def test_a_pair_that_the_model_cannot_tell_apart_is_not_right(lm: LanguageModel) -> None:
    same = choices.ChoiceQuestion("x", "", ("the cat", "the cat"), 1, "a", "the cat", "")
    assert blimp.evaluate_blimp(lm, [same], {"a": "t"}).scores[0].score == 0


def test_gsm8k_is_asked_behind_its_examples(lm: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def write(lm: LanguageModel, prompts: list[str], **how: Any) -> list[str]:
        seen.extend(prompts)
        return [" He has 4.\n#### 4" if "second" in prompt else "4" for prompt in prompts]

    monkeypatch.setattr(gsm8k, "answers", write)
    problems = gsm8k.read_problems(written(tmp_path, *[
        {"question": f"{name}?", "answer": "x\n#### 4"} for name in ("first", "second")]))  # fmt: skip
    evaluated = gsm8k.evaluate_gsm8k(lm, problems, problems[:1])
    assert "Question: first?\nAnswer: x\n#### 4\n\nQuestion: second?\nAnswer:" in seen
    assert [score.score for score in evaluated.scores] == [0.5, 1.0]
    with pytest.raises(DataError, match=r"rows.jsonl:1: the answer has no"):
        gsm8k.read_problems(written(tmp_path, {"question": "q", "answer": "4"}))


def test_the_right_code_of_every_generated_function_passes_and_another_fails() -> None:
    try:
        isolation()
    except MachineError as missing:
        pytest.skip(str(missing))
    tasks = programs.read_mbpp("python-functions/val")
    verdicts = check_all([task.exam(f"{task.right}\n") for task in tasks[::6]])
    assert all(verdict.passed for verdict in verdicts)
    others = [task.exam(other.right) for task, other in zip(tasks[::12], tasks[1::12], strict=False)]
    assert not any(verdict.passed for verdict in check_all(others))


def test_the_training_text_of_a_function_is_the_prompt_with_its_answer() -> None:
    rows = [row for _, row in find("python-functions/train").rows()]
    tasks = programs.read_mbpp("python-functions/train", 50)
    assert all(row["prompted"] == f"{task.prompt}{task.right}\n[DONE]" for row, task in zip(rows, tasks, strict=False))
    held_back = {row["code"] for _, row in find("python-functions/val").rows()}
    assert not held_back & {row["code"] for row in rows}


def test_samples_that_cannot_be_are_refused(lm: LanguageModel) -> None:
    tasks = programs.read_mbpp("python-functions/val", 1)
    try:
        isolation()
    except MachineError as missing:
        pytest.skip(str(missing))
    with pytest.raises(UsageError, match="pass@10 from 1 samples"):
        programs.evaluate_programs(lm, tasks, ks=(1, 10))
    with pytest.raises(UsageError, match="greedy samples are the same"):
        programs.evaluate_programs(lm, tasks, drawing=programs.ProgramSampling(samples=2))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"text": "t", "code": "def f(x): return x"}, "`test_list` is no list"),
        ({"text": "t", "code": "def f(", "test_list": ["assert f"]}, "no Python"),
        ({"code": "def f(x): return x", "test_list": ["assert f"]}, "no text `text`"),
    ],
)
def test_a_row_that_is_no_problem_is_named(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=rf"rows.jsonl:1: .*{says}"):
        programs.read_mbpp(written(tmp_path, row))
