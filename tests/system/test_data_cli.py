import pytest

from orrery.cli.data.app import app
from orrery.data.shards.index import ShardSet
from orrery.errors import DataError, UsageError
from orrery.text.train import train_tokenizer


def run(*words):
    app([str(word) for word in words], result_action="return_value")


def test_show_says_what_is_here(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ORRERY_DATA", str(tmp_path))
    run("show")
    assert "tiny-shakes" in capsys.readouterr().out
    run("show", "tiny-shakespeare")
    output = capsys.readouterr().out
    assert "missing" in output
    assert "karpathy/char-rnn @ 6f9487a6fe5b" in output


def test_sets_that_are_made_here_are_shown_like_others(capsys):
    run("show")
    assert "docstring-summ" in capsys.readouterr().out
    run("show", "unicode-names")
    output = capsys.readouterr().out
    assert "made on this machine from: Unicode's character database" in output
    assert "parts: unicode-names/train, unicode-names/val" in output
    run("show", "unicode-names/val", "--column", "target", "--examples", "1")
    output = capsys.readouterr().out
    assert "column 'target' of 2: source, target" in output
    assert "unicode-names/val:1: LATIN CAPITAL LETTER G" in output
    with pytest.raises(UsageError, match="unicode-names is made on this machine"):
        run("fetch", "unicode-names")


def test_prepare_writes_every_token(tmp_path, capsys):
    rows = [f'{{"body": "document number {number}"}}\n' for number in range(60)]
    (tmp_path / "rows.jsonl").write_text("".join(rows))
    tokenizer = train_tokenizer("character", rows)
    tokenizer.save(tmp_path)
    run(
        "prepare",
        tmp_path / "rows.jsonl",
        "--column",
        "body",
        "--tokenizer",
        tmp_path,
        "-o",
        tmp_path / "out",
    )
    parts = [ShardSet.open(tmp_path / "out", name, tokenizer.fingerprint) for name in ("train", "validation")]
    texts = [tokenizer.decode(part[:], special=True).split("<|endoftext|>")[:-1] for part in parts]
    assert sorted(texts[0] + texts[1]) == sorted(f"document number {number}" for number in range(60))
    assert 0 < len(texts[1]) < 10
    assert "uint16" in capsys.readouterr().out
    run("verify", tmp_path / "out")
    assert "every shard as it was written" in capsys.readouterr().out


def test_a_single_text_holds_back_its_tail(tmp_path):
    text = "0123456789" * 10
    (tmp_path / "a.txt").write_text(text)
    train_tokenizer("character", [text]).save(tmp_path)
    run("prepare", tmp_path / "a.txt", "--tokenizer", tmp_path, "-o", tmp_path / "out")
    assert len(ShardSet.open(tmp_path / "out")) == 91
    assert len(ShardSet.open(tmp_path / "out", "validation")) == 11


def test_too_little_text_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("")
    train_tokenizer("character", ["x"]).save(tmp_path)
    with pytest.raises(DataError, match="0 tokens for training"):
        run("prepare", tmp_path / "a.txt", "--tokenizer", tmp_path, "-o", tmp_path / "out")


def test_show_prints_what_a_file_holds(tmp_path, capsys):
    rows = "".join(f'"question\n{number}\x1b[2J",{number}\n' for number in range(9))
    (tmp_path / "a.csv").write_text("text,label\n" + rows)
    run("show", tmp_path / "a.csv", "--examples", 2)
    assert capsys.readouterr().out.splitlines() == [
        "column 'text' of 2: text, label",
        "9 documents, 126 characters",
        "a.csv:2: question 0\\x1b[2J",
        "a.csv:4: question 1\\x1b[2J",
    ]
    (tmp_path / "a.en").write_text("one\ntwo\n")
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    run("show", tmp_path / "a.en", tmp_path / "a.de")
    assert "2 pairs" in capsys.readouterr().out


def test_tables_are_prepared_and_tokenizers_trained_on_them(tmp_path, capsys):
    from orrery.cli.tokenizer.app import app as tokenizer

    (tmp_path / "a.csv").write_text("body,label\n" + "".join(f"some text {number},1\n" for number in range(60)))
    words = ["train", tmp_path / "a.csv", "--kind", "character", "--column", "body", "-o", tmp_path / "own"]
    tokenizer([str(word) for word in words], result_action="return_value")
    run("prepare", tmp_path / "a.csv", "--column", "body", "--tokenizer", tmp_path / "own", "-o", tmp_path / "out")
    assert len(ShardSet.open(tmp_path / "out")) > 500
