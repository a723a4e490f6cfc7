import subprocess
import sys

import pytest

from orrery.cli.tokenizer import app
from orrery.errors import DataError, ModelFileError
from orrery.text import load_tokenizer


def run(*words):
    app([str(word) for word in words], result_action="return_value")


def test_train_and_show(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("low lower lowest low low\n" * 20)
    run("train", tmp_path / "text.txt", "--vocabulary", 270, "-o", tmp_path / "tokenizer")
    assert "byte_bpe tokenizer" in capsys.readouterr().out
    run("show", tmp_path / "tokenizer", "low lowest")
    output = capsys.readouterr().out
    assert "10 characters, 10 bytes" in output
    assert "l o w\n" in output
    run("train", tmp_path / "text.txt", "--kind", "character", "-o", tmp_path / "characters")
    assert load_tokenizer(tmp_path / "characters").size == 2 + len(set("low lower lowest\n"))
    run("show", tmp_path / "characters", "low")


def test_errors_name_what_is_wrong(tmp_path):
    (tmp_path / "empty.txt").write_text(" \n")
    with pytest.raises(DataError, match="0 tokens"):
        run("train", tmp_path / "empty.txt", "-o", tmp_path / "tokenizer")
    assert not (tmp_path / "tokenizer").exists()
    with pytest.raises(ModelFileError):
        run("show", tmp_path, "text")


def test_no_tokenizer_command_imports_torch(tmp_path):
    (tmp_path / "text.txt").write_text("some text")
    program = (
        "import sys; from orrery.cli.tokenizer import app\nfolder = sys.argv[1]\n"
        "app(['train', folder + '/text.txt', '-o', folder], result_action='return_value')\n"
        "app(['show', folder, 'text'], result_action='return_value')\n"
        "import orrery.cli.data; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True)
