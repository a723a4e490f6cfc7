import pytest

from orrery.cli.data import app
from orrery.data.shard_index import ShardSet
from orrery.errors import DataError
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
    run("prepare", tmp_path / "a.txt", "--tokenizer", tmp_path, "-o", tmp_path)
    assert len(ShardSet.open(tmp_path)) == 91
    assert len(ShardSet.open(tmp_path, "validation")) == 11


def test_too_little_text_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("")
    train_tokenizer("character", ["x"]).save(tmp_path)
    with pytest.raises(DataError, match="0 tokens for training"):
        run("prepare", tmp_path / "a.txt", "--tokenizer", tmp_path, "-o", tmp_path)
