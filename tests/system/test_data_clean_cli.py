import json

import pytest

from orrery.cli import program
from orrery.data.corpora import read_corpus


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").strip().split("\n")]


@pytest.fixture
def corpus(tmp_path):
    words = [f"word{number}" for number in range(400)]
    texts = ["first text", " ".join(words), "first text", " ".join([*words, "more"]), "# # #", "Straße \u2028 日本"]
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    return path


def test_it_keeps_the_first_of_each_kind_and_says_why(corpus, tmp_path, capsys):
    out, report = tmp_path / "new" / "out.jsonl", tmp_path / "report.jsonl"
    words = ["data", "clean", str(corpus), "-o", str(out), "--exact", "--near", "0.8"]
    assert program.run([*words, "--filters", "hash_ratio=:0.5", "--report", str(report)]) == 0
    kept = rows(out)
    assert [row["name"] for row in kept] == ["in.jsonl:1", "in.jsonl:2", "in.jsonl:6"]
    assert [document.text for document in read_corpus(out)] == [row["text"] for row in kept]
    assert kept[2]["text"] == "Straße \u2028 日本"
    assert [(row["name"], row["rule"]) for row in rows(report)] == [
        ("in.jsonl:3", "exact duplicate"),
        ("in.jsonl:4", "near-duplicate"),
        ("in.jsonl:5", "hash_ratio"),
    ]
    assert rows(report)[0]["why"] == "the same text as document 1"
    assert rows(report)[1]["why"].startswith("like document 2 (similarity ")
    shown = capsys.readouterr().out
    assert "3 of 6 documents" in shown
    assert "in.jsonl:3: the same text as document 1" in shown


def test_it_finds_nothing_the_second_time(corpus, tmp_path):
    source = corpus
    for name in ("once.jsonl", "twice.jsonl"):
        assert program.run(["data", "clean", str(source), "-o", str(tmp_path / name), "--exact", "--near", "0.8"]) == 0
        source = tmp_path / name
        assert len(rows(source)) == 4


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_it_never_writes_over_what_it_reads(overwrite, corpus, capsys):
    before = corpus.read_bytes()
    assert program.run(["data", "clean", str(corpus), "-o", str(corpus), "--exact", *overwrite]) == 2
    assert "is read by this command" in capsys.readouterr().err
    assert corpus.read_bytes() == before
    assert [path.name for path in corpus.parent.iterdir()] == [corpus.name]


def test_report_and_output_are_two_files(corpus, tmp_path, capsys):
    words = ["data", "clean", str(corpus), "-o", str(tmp_path / "a"), "--report", str(tmp_path / "a"), "--exact"]
    assert program.run(words) == 2
    assert "the same file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told", "code"),
    [
        ([], "nothing to clean by", 2),
        (["--near", "1.5"], "--near 1.5", 2),
        (["--filters", "gofer"], "'gofer' is no filter", 2),
        (["--drop-matching", "("], "not a regular expression", 2),
        (["--exact", "--column", "body"], "no column 'body'", 3),
    ],
)
def test_a_failure_leaves_nothing_behind(words, told, code, corpus, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    out.write_text("what was there")
    assert program.run(["data", "clean", str(corpus), "-o", str(out), "--overwrite", *words]) == code
    assert told in capsys.readouterr().err
    assert out.read_text() == "what was there"
    assert len(list(tmp_path.iterdir())) == 2
