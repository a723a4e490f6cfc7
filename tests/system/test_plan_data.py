import json

import pytest

from orrery.cli import program

RECIPE = """
name: planned
model: {family: gpt2}
tokenizer: {kind: character}
data:
  mixture:
    - {train: FOLDER/a.jsonl, weight: 3, name: letters TOKENS}
    - {train: FOLDER/b.txt, weight: 1 TOKENS}
batches: {length: 10, size: 4}
training: {steps: 100, optimizer: {rate: 0.1}}
"""


def test_without_a_recipe_it_is_the_courses_table(capsys):
    assert program.run(["plan", "--data"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "WebText2 19 billion 22 % 3.474 2.9 slide differs by -0.574" in shown
    assert "all 499 billion 101 %" in shown
    assert "Chinchilla" in shown
    assert "20.0" in shown


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        # 4,000 tokens are trained, 3,000 of them letters; an end token stands behind each document.
        ("", ("letters 60 75.00 % 50.000", "b.txt 25 25.00 % 40.000", "all 85 100.00 % 47.059")),
        (", tokens: 1_000", ("letters 1,000 75.00 % 3.000", "b.txt 1,000 25.00 % 1.000", "all 2,000 100.00 % 2.000")),
    ],
)
def test_a_recipe_has_its_own_table(given, rows, tmp_path, capsys):
    if not given:
        (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": "abcde"}) for _ in range(10)))
        (tmp_path / "b.txt").write_text("x" * 24)
    path = tmp_path / "planned.yaml"
    path.write_text(RECIPE.replace("FOLDER", str(tmp_path)).replace(" TOKENS", given))
    assert program.run(["plan", "--data", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "100 steps of 40, 4,000 tokens" in shown
    assert all(row in shown for row in rows), shown


def test_without_data_it_says_what_it_can_plan(capsys):
    assert program.run(["plan"]) == 2
    assert "--data" in capsys.readouterr().err
