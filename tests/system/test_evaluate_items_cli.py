"""`orrery evaluate MODEL` on items: choices, BLiMP, MMLU, programs, and what stands in the training text."""

import json
from pathlib import Path

import pytest

from orrery.cli.program import run
from orrery.errors import MachineError
from orrery.sandbox import isolation
from tiny_models import saved


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return saved(tmp_path / "model", "llama")


def test_choices_with_an_interval_a_file_and_contamination(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = "the cat sat on the mat while the dog slept beside the old log"
    rows = [{"question": question, "choices": ["well", "badly"], "answer": "A"} for question in (seen, "who sat there")]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("train.txt").write_text(f"Once {seen} well, and so on.\n")
    words = ["evaluate", "model", "choices", "rows.jsonl", "--confidence", "--samples", "50"]
    assert run([*words, "--contamination", "train.txt", "-o", "out.json"]) == 0
    said = capsys.readouterr().out
    assert "accuracy " in said
    assert "(task:choices|template:question choice|shots:0|normalisation:none|orrery:" in said
    assert "95 % interval" in said
    assert "contamination with train.txt: 1 of 2 items share 13 words in a row" in said
    assert "clean items, 1: accuracy " in said
    written = json.loads(Path("out.json").read_text())
    assert written["contamination"]["items"] == [True, False]
    assert len(written["items"]) == 2
    assert run([*words, "-o", "out.json"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run([*words, "-o", "rows.jsonl", "--overwrite"]) == 2


def test_mmlu_of_the_generated_subjects(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", "model", "mmlu", "subject-questions", "--shots", "0", "--first", "2"]
    assert run([*words, "--subjects", "python_values,unicode_numbers"]) == 0
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()[:2]] == ["python_values", "unicode_numbers"]
    assert "task:mmlu|template:letters|shots:0|split:test" in said
    assert run([*words, "--subjects", "cats"]) == 3
    assert "there are: python_exceptions" in capsys.readouterr().err


def test_programs_are_run_in_the_sandbox(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        isolation()
    except MachineError as missing:
        pytest.skip(str(missing))
    row = {"text": "Add.", "code": "def f(x):\n    return x + 1", "test_list": ["assert f(1) == 2"]}
    Path("rows.jsonl").write_text(json.dumps(row) + "\n")
    assert run(["evaluate", "model", "mbpp", "rows.jsonl", "--max-new-tokens", "2"]) == 0
    said = capsys.readouterr().out
    assert "pass@1 0.0000 (task:mbpp|" in said
    assert "programs: 1 failed" in said
    assert "sandbox: namespaces(" in said
    for words, code in (
        (["--k", "0"], 2), (["--k", "1,2"], 2), (["--programs", "2"], 2), (["--shots", "1"], 2),
        (["--examples", "rows.jsonl"], 2),
    ):  # fmt: skip
        assert run(["evaluate", "model", "mbpp", "rows.jsonl", *words]) == code, words
        error = capsys.readouterr().err
        assert error.splitlines()[-2].startswith("error: "), error
        assert error.splitlines()[-1].startswith("hint: "), error


def test_bad_files_are_named_with_their_line(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.jsonl").write_text("")
    Path("rows.jsonl").write_text('{"uid": "a", "term": "t", "good": "x"}\n')
    for words, says in (
        (["choices", "empty.jsonl"], "empty.jsonl"), (["blimp", "--file", "rows.jsonl"], "rows.jsonl:1: no pair"),
        (["gsm8k", "--file", "rows.jsonl"], "rows.jsonl:1"), (["hellaswag", "missing.jsonl"], "missing.jsonl"),
        (["mmlu", "rows.jsonl"], "rows.jsonl: no folder"), (["humaneval", "--file", "rows.jsonl"], "rows.jsonl:1"),
    ):  # fmt: skip
        assert run(["evaluate", "model", *words]) == 3, words
        assert says in capsys.readouterr().err
    assert run(["evaluate", "model", "gsm8k", "--examples", "rows.jsonl", "--shots", "0"]) == 2
    assert "no example is shown" in capsys.readouterr().err
