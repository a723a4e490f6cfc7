import math
import re
import subprocess
import sys

import pytest

from one_verb import run
from orrery.cli.generate import generate, printable
from orrery.cli.score import score
from orrery.errors import DataError, ModelFileError, UsageError
from tiny_models import TOKENIZER, saved


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("model"), "llama")


def test_generate_prints_the_text_and_tells_the_speed_apart(model, capsys):
    run(generate, model, "the cat", "--max-new-tokens", 8, "--temperature", 0, "--device", "cpu")
    first = capsys.readouterr()
    assert re.search(r"8 tokens, [\d,.]+ tokens/s, seed 1337, ended by --max-new-tokens", first.err)
    assert "cpu, float32" in first.err
    run(
        generate,
        model,
        "the cat",
        "--max-new-tokens=8",
        "--temperature=0",
        "--stop",
        "zzzz",
        "--stop",
        "yyyy",
    )
    assert capsys.readouterr().out == first.out


def test_every_flag_is_heard(model, capsys):
    flags = "--temperature 1.5 --top-k 40 --top-p 0.9 --min-p 0.01 --repetition-penalty 1.1 --seed 7 --dtype float64"
    run(generate, model, "the", *flags.split(), "--max-new-tokens", 5)
    printed = capsys.readouterr()
    assert "seed 7" in printed.err
    assert "float64" in printed.err


def test_beams_print_the_best_answer_and_refuse_what_draws(model, capsys):
    run(generate, model, "the cat", "--num-beams", 3, "--max-new-tokens", 4)
    printed = capsys.readouterr()
    assert re.search(
        r"4 tokens, 3 beams, log probability -[\d.]+, score -[\d.]+, ended by --max-new-tokens", printed.err
    )
    with pytest.raises(UsageError, match="temperature cannot be used with num_beams"):
        run(generate, model, "the cat", "--num-beams", 3, "--temperature", 0.5)


def test_control_characters_are_escaped():
    assert printable("a\x1b[2Jb\r\x07\x9b\x7f\n\tä") == "a\\x1b[2Jb\\x0d\\x07\\x9b\\x7f\n\tä"


def test_score_prints_tokens_total_and_bits_per_byte(model, capsys, tmp_path):
    run(score, model, "the cat\n")
    out = capsys.readouterr().out
    lines = out.splitlines()
    nats = [float(line.split()[1]) for line in lines[1:-1]]
    assert [int(line.split()[0]) for line in lines[1:-1]] == TOKENIZER.encode("the cat\n")
    total, bits = map(float, re.findall(r"-?[\d.]+", lines[-1])[::2])
    assert total == pytest.approx(sum(nats), abs=1e-3)
    assert bits == pytest.approx(-total / math.log(2) / 8, abs=1e-3)
    (tmp_path / "text").write_text("the cat\n")
    run(score, model, "--file", tmp_path / "text")
    assert capsys.readouterr().out == out


def test_errors_are_told_by_kind(model, tmp_path):
    with pytest.raises(ModelFileError):
        run(generate, tmp_path / "nothing", "text")
    with pytest.raises(UsageError, match="context of 48"):
        run(generate, model, "the cat " * 100)
    with pytest.raises(UsageError, match="either a text or --file"):
        run(score, model)
    with pytest.raises(DataError, match="empty"):
        run(score, model, "")
    with pytest.raises(DataError, match="cannot read"):
        run(score, model, "--file", tmp_path / "nothing")
    (tmp_path / "latin").write_bytes("ä".encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        run(score, model, "--file", tmp_path / "latin")


def test_the_verbs_import_no_torch():
    program = "import sys, orrery.cli.generate, orrery.cli.score; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
