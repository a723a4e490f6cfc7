import subprocess
import sys

import pytest

from orrery.cli.tokenizer.app import app
from orrery.errors import DataError, ModelFileError, UsageError
from orrery.text import load_tokenizer
from orrery.text.kinds import TOKENIZERS
from orrery.text.special import tokens_of


def run(*words):
    app([str(word) for word in words], result_action="return_value")


def test_train_and_show(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("low lower lowest low low\n" * 20)
    run("train", tmp_path / "text.txt", "--vocabulary", 264, "-o", tmp_path / "tokenizer")
    assert "byte_bpe tokenizer" in capsys.readouterr().out
    run("show", tmp_path / "tokenizer", "low lowest")
    output = capsys.readouterr().out
    assert "10 characters, 10 bytes" in output
    assert "l o w\n" in output
    run("train", tmp_path / "text.txt", "--kind", "character", "-o", tmp_path / "characters")
    assert load_tokenizer(tmp_path / "characters").size == 2 + len(set("low lower lowest\n"))
    run("show", tmp_path / "characters", "low")


@pytest.mark.parametrize("kind", TOKENIZERS.names())
def test_every_kind_from_text_to_a_file_that_encodes(kind, tmp_path, capsys):
    text = "The cat sat on the mat; the cats sat. Über naïve cafés: 東京\n"
    (tmp_path / "text.txt").write_text(text * 20, encoding="utf-8")
    run("train", tmp_path / "text.txt", "--kind", kind, "-o", tmp_path / "made")
    assert f"{kind} tokenizer" in capsys.readouterr().out
    tokenizer = load_tokenizer(tmp_path / "made")
    assert tokenizer.size <= (TOKENIZERS.find(kind).vocabulary or 100)
    ids = tokenizer.encode(text)
    assert tokenizer.unknown(ids) == 0
    assert "".join(tokenizer.decode(ids).split()) == "".join(text.split())
    run("show", tmp_path / "made", "The cat")
    assert "7 characters, 7 bytes" in capsys.readouterr().out


@pytest.mark.parametrize("kind", [kind for kind in TOKENIZERS.names() if kind != "byte_bpe"])
def test_lower_case_is_kept_in_the_file(kind, tmp_path):
    (tmp_path / "text.txt").write_text("THE CAT sat on the mat. ÀÉ\n" * 20, encoding="utf-8")
    run("train", tmp_path / "text.txt", "--kind", kind, "--lowercase", "-o", tmp_path / "made")
    tokenizer = load_tokenizer(tmp_path / "made")
    assert tokenizer.encode("The CAT sat àÉ") == tokenizer.encode("the cat SAT ÀÉ")
    assert tokenizer.unknown(tokenizer.encode("The CAT sat ÀÉ")) == 0
    assert not any(tokenizer.token(id) != tokenizer.token(id).lower() for id in range(2, tokenizer.size))
    assert tokenizer.encode("THE <|endoftext|>", special=True)[-1] == tokenizer.special("end")


@pytest.mark.parametrize(
    ("frame", "pieces"),
    [
        ("bert", ("[CLS]", "a", "[SEP]", "b", "[SEP]")),
        ("roberta", ("<s>", "a", "</s>", "</s>", "b", "</s>")),
        ("t5", ("a", "</s>", "b", "</s>")),
    ],
)
def test_a_family_s_tokens_are_kept_in_the_file_and_counted(frame, pieces, tmp_path):
    transformers = pytest.importorskip("transformers")
    (tmp_path / "text.txt").write_text("low lower lowest low low a b\n" * 20)
    size = 260 + len(tokens_of(frame))
    run("train", tmp_path / "text.txt", "--vocabulary", size, "--frame", frame, "-o", tmp_path / "made")
    tokenizer = load_tokenizer(tmp_path / "made")
    assert tokenizer.size == size
    ids = tokenizer.encode("a", special="around", pair="b")
    assert tuple(tokenizer.token(id) for id in ids) == pieces
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "made")
    assert theirs("a", "b")["input_ids"] == ids
    with pytest.raises(UsageError, match="no room beside"):
        run("train", tmp_path / "text.txt", "--vocabulary", 4, "--frame", frame, "-o", tmp_path / "small")


def test_errors_name_what_is_wrong(tmp_path):
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(DataError, match="0 tokens"):
        run("train", tmp_path / "empty.txt", "-o", tmp_path / "tokenizer")
    assert not (tmp_path / "tokenizer").exists()
    with pytest.raises(UsageError, match="gives back every byte"):
        run("train", tmp_path / "empty.txt", "--lowercase", "-o", tmp_path / "tokenizer")
    with pytest.raises(ModelFileError):
        run("show", tmp_path, "text")


def test_no_tokenizer_command_imports_torch(tmp_path):
    (tmp_path / "text.txt").write_text("some text")
    program = (
        "import sys; from orrery.cli.tokenizer.app import app\nfolder = sys.argv[1]\n"
        "app(['train', folder + '/text.txt', '-o', folder + '/made'], result_action='return_value')\n"
        "app(['show', folder + '/made', 'text'], result_action='return_value')\n"
        "import orrery.cli.data.app; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True)
