import json
import os
import pty

import pytest

from orrery.cli.program import run
from programs import ORRERY, Program
from tiny_models import CONFIGS, saved


def show(capsys, *words):
    code = run(["show", *map(str, words)])
    return code, capsys.readouterr()


def test_a_family_is_shown_at_the_size_of_its_defaults(capsys):
    code, printed = show(capsys, "gpt2")
    assert code == 0
    first, *others = printed.out.splitlines()
    assert first == "gpt2: Decoder(width=768, context=1024)  [124,439,808]"
    assert "    blocks: Block(depth=0-11)  [12 x 7,087,872]" in others
    assert "Identity" not in printed.out


def test_a_folder_is_shown_without_its_weights(capsys, tmp_path):
    folder = saved(tmp_path, "llama")
    (folder / "model.safetensors").unlink()
    code, printed = show(capsys, folder)
    assert code == 0
    assert "Decoder(width=32, context=48)" in printed.out


def test_a_configuration_goes_with_its_family(capsys, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**CONFIGS["gpt2"], "model_type": "gpt2"}))
    code, printed = show(capsys, "gpt2", "--config", tmp_path / "config.json")
    assert (code, "Decoder(width=32, context=48)" in printed.out) == (0, True)
    code, printed = show(capsys, "llama", "--config", tmp_path / "config.json")
    assert (code, "is a configuration of 'gpt2'" in printed.err) == (2, True)
    code, printed = show(capsys, tmp_path, "--config", tmp_path / "config.json")
    assert (code, "--config goes with a family" in printed.err) == (2, True)


@pytest.mark.parametrize("words", [("--diff", "gpt2", "llama"), ("gpt2", "--diff", "llama")])
def test_only_what_differs(capsys, words):
    code, printed = show(capsys, *words)
    assert code == 0
    assert printed.out.splitlines()[0].split()[:3] == ["part", "gpt2", "[124,439,808]"]
    assert "LayerNorm(eps=1e-05, bias, gain)" in printed.out
    assert "masks.causal" not in printed.out


def test_equal_architectures_are_said_to_be_equal(capsys):
    code, printed = show(capsys, "--diff", "gpt2", "gpt2")
    assert (code, "the architectures are the same" in printed.out) == (0, True)


def test_as_json(capsys):
    assert json.loads(show(capsys, "gpt2", "--json")[1].out)["kind"] == "models.decoder.Decoder"
    assert json.loads(show(capsys, "--diff", "gpt2", "llama", "--json")[1].out)[0]["path"] == "width"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("gpt5",), 4, "no family 'gpt5'"),
        (("missing.gguf",), 4, "missing.gguf does not exist"),
        (("gpt2", "--diff"), 2, "a comparison takes two models and --diff"),
        (("gpt2", "llama"), 2, "a comparison takes two models and --diff"),
    ],
)
def test_errors(capsys, words, code, says):
    shown = show(capsys, *words)
    assert (shown[0], says in shown[1].err) == (code, True)


def test_a_terminal_gets_a_drawing():
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = Program([*ORRERY, "show", "gpt2"], stdout=theirs, stdin=theirs, env=environment)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end has closed
            break
        text += piece
    os.close(ours)
    assert process.wait() == 0
    assert "├── " in text.decode()
    assert "Block" in text.decode()
