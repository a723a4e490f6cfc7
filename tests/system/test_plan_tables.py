"""``orrery plan --tables`` and ``--budget``: printed, as a page, and what is refused."""

import pytest

from orrery.cli import program


def shown(capsys) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_the_tables_are_printed_with_their_sources(capsys) -> None:
    assert program.run(["plan", "--tables"]) == 0
    text = shown(capsys)
    for number in ("175,181,291,520", "27,938", "174,604,259,328", "1,517,123,584", "6.03e23", "2.56e24", "3.8e25"):
        assert number in text
    assert "paper differs: printed 5.76e23, computed 6.03e23" in text
    assert text.count("source: ") == 18


def test_they_become_a_page_that_is_not_replaced_unasked(tmp_path, capsys) -> None:
    words = ["plan", "--tables", "--output", str(tmp_path / "made")]
    assert program.run(words) == 0
    text = (tmp_path / "made" / "tables.html").read_text(encoding="utf-8")
    assert "175,181,291,520" in text
    assert text.count("<svg") == 4
    assert program.run(words) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert program.run([*words, "--overwrite"]) == 0


def test_a_budget_has_a_best_size_by_each_approach(capsys) -> None:
    assert program.run(["plan", "--budget", "1e21"]) == 0
    text = shown(capsys)
    assert "approach 1 2.86 billion 58.2 billion 20.3" in text
    assert "11.6 petaflop/s-days" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "0"], "--budget 0 is out of range"),
        (["--budget", "-3"], "--budget -3 is out of range"),
        (["--budget", "nan"], "--budget nan is no finite number"),
        (["--budget", "1e21", "--tables"], "each is a plan of its own"),
        (["gpt3-175b", "--tables"], "each is a plan of its own"),
        (["--data", "--tables"], "each is a plan of its own"),
        (["--output", "there"], "--output is the folder of the page of --tables"),
    ],
)
def test_what_cannot_be_planned_is_refused(words, said, capsys) -> None:
    assert program.run(["plan", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert program.run(["plan", "--tables", "--output", str(tmp_path / "file")]) == 2
    assert "is a file" in capsys.readouterr().err
