import subprocess
import sys

import pytest

from orrery.cli import program
from tiny_models import saved


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(saved(tmp_path_factory.mktemp("model"), "llama", intermediate_size=64))


def test_both_formats_say_what_was_compared(model, tmp_path, capsys):
    assert program.run(["export", model, "gguf", str(tmp_path / "x.gguf"), "--type", "q8_0"]) == 0
    printed = capsys.readouterr()
    assert "x.gguf: GGUF, llama, q8_0; 37,152 parameters, " in printed.out
    assert "read back and compared: the largest deviation of a weight is 0.00" in printed.out
    assert "note: words of more than 64 characters" in printed.err
    assert program.run(["export", model, "hf", str(tmp_path / "folder")]) == 0
    assert "Hugging Face layout, llama; 37,152 parameters" in capsys.readouterr().out
    assert (tmp_path / "folder" / "config.json").is_file()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["hf", "{new}", "--type", "f16"], 2, "--type belongs to gguf"),
        (["gguf", "{old}"], 2, "exists already"),
        (["onnx", "{new}"], 2, "onnx"),
        (["gguf", "{new}", "--type", "q5"], 2, "q5"),
    ],
)
def test_errors_are_two_lines(model, tmp_path, capsys, words, code, told):
    (tmp_path / "old").write_text("mine")
    places = {"{new}": str(tmp_path / "new"), "{old}": str(tmp_path / "old")}
    assert program.run(["export", model, *(places.get(word, word) for word in words)]) == code
    error, hint = capsys.readouterr().err.splitlines()
    assert told in error
    assert hint.startswith("hint: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]


def test_the_verb_imports_no_torch():
    program = "import sys, orrery.cli.export; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
