"""`orrery evaluate text`: files of texts against files of references, from the command line, without a model."""

import json
import sys

import pytest

from orrery.cli.program import run


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours.txt").write_text("the cat sat on the mat\nHello world, again!\n")
    (tmp_path / "theirs.txt").write_text("the cat is on the mat\nHello World again\n")
    (tmp_path / "others.txt").write_text("a cat sat on a mat\nHello, world again\n")
    return tmp_path


def evaluate(*words):
    return run(["evaluate", "text", *words])


def test_every_metric_is_printed_with_its_settings(files, capsys):
    assert evaluate("--hypotheses", "ours.txt", "--references", "theirs.txt") == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == ["BLEU", "chrF2", "TER", "ROUGE-1", "ROUGE-2", "ROUGE-L", "ROUGE-Lsum"]
    assert all("nrefs:1" in line for line in lines)
    assert lines[0].startswith("BLEU 23.46 (")


def test_references_and_settings(files, capsys):
    two = ["--hypotheses", "ours.txt", "--references", "theirs.txt", "others.txt"]
    assert evaluate(*two, "--metrics", "bleu", "rouge", "--tokenize", "none", "--lowercase", "--stem") == 0
    out = capsys.readouterr().out
    assert "nrefs:2|case:lc|eff:no|tok:none" in out
    assert "nrefs:2|stem:yes" in out
    assert "TER" not in out
    assert evaluate(*two, "--metrics", "chrf", "--word-order", "2") == 0
    assert "chrF2++" in capsys.readouterr().out


def test_texts_with_line_breaks_are_records(files, capsys):
    for name, text in (("ours.jsonl", "b c\na"), ("theirs.json", "a\nb c")):
        content = json.dumps({"summary": text})
        (files / name).write_text(f"[{content}]" if name.endswith(".json") else content + "\n")
    words = ["--hypotheses", "ours.jsonl", "--references", "theirs.json", "--column", "summary", "--metrics", "rouge"]
    assert evaluate(*words) == 0
    out = capsys.readouterr().out
    assert "ROUGE-L 66.67" in out
    assert "ROUGE-Lsum 100.00" in out


def test_without_the_extra_the_command_that_installs_it_is_named(files, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    words = ["--hypotheses", "ours.txt", "--references", "theirs.txt"]
    assert evaluate(*words) == 5
    error = capsys.readouterr().err
    assert "pip install 'orrery-lm[eval]'" in error
    assert "--metrics rouge" in error
    assert evaluate(*words, "--metrics", "rouge") == 0


BAD = {
    (): (2, "give --hypotheses FILE and --references FILE"),
    ("--hypotheses", "ours.txt"): (2, "--references FILE"),
    ("--hypotheses", "nothing", "--references", "ours.txt"): (3, "nothing: no such file"),
    ("--hypotheses", "ours.txt", "--references", "long.txt"): (3, "ours.txt has 2 texts, long.txt has 3"),
    ("--hypotheses", "empty.txt", "--references", "empty.txt"): (3, "0 hypotheses"),
    ("--hypotheses", "ours.txt", "--references", "ours.txt", "--tokenize", "flores200"): (2, "13a"),
    ("--hypotheses", "ours.txt", "--references", "ours.txt", "--metrics", "meteor"): (2, "meteor"),
    ("--hypotheses", ".", "--references", "ours.txt"): (3, "folder"),
    ("ours.txt",): (2, "ours.txt"),
}


@pytest.mark.parametrize("words", BAD, ids=range(len(BAD)))
def test_what_cannot_be_compared_is_told(words, files, capsys):
    (files / "long.txt").write_text("a\nb\nc\n")
    (files / "empty.txt").write_text("")
    code, text = BAD[words]
    assert evaluate(*words) == code
    assert text in capsys.readouterr().err


def test_a_task_without_a_name_lists_them(capsys):
    assert run(["evaluate", "runs/x"]) == 2
    assert "translation" in capsys.readouterr().err
