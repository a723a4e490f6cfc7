"""The verb ``orrery patch``: its numbers are those of the Python call, its picture is of them."""

import json
from xml.etree import ElementTree

import pytest
import torch

import orrery
from one_verb import run
from orrery.cli.patch import By, patch
from orrery.cli.program import run as program
from orrery.errors import DataError, UsageError
from orrery.inspection.research.patching import SITES, activation_patching
from tiny_models import saved

CLEAN, OTHER = "the cat sat on the mat", "the dog sat on the mat"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("model"), "gpt2")


@pytest.fixture(scope="module")
def lm(model):
    return orrery.load(model, say=lambda line: None)


def ids(lm, text):
    return torch.tensor([lm.tokenizer.encode(text)])


def test_every_site_can_be_asked_for() -> None:
    assert By.__args__ == tuple(SITES)


@pytest.mark.parametrize("by", SITES)
def test_the_numbers_are_those_of_the_call(model, lm, by, tmp_path, capsys) -> None:
    run(patch, model, CLEAN, OTHER, "--answer", "t", "--wrong", "o", "--by", by, "-o", tmp_path / "x.json")
    told = json.loads((tmp_path / "x.json").read_text())
    answers = lm.token_id("t"), lm.token_id("o")
    patching = activation_patching(lm.model, ids(lm, CLEAN), ids(lm, OTHER), *answers, at=by)
    assert torch.tensor(told["restored"]).tolist() == patching.grid.float().tolist()
    assert told["measure"] == {"clean": patching.clean, "corrupted": patching.corrupted}
    assert (told["by"], told["answer"], told["wrong"], told["blocks"]) == (by, "t", "o", [0, 1])
    said = capsys.readouterr().out
    assert f"logit(answer) - logit(wrong): clean {patching.clean:.4f}, corrupted {patching.corrupted:.4f}" in said
    assert f"{float(patching.grid.max()):.3f}" in said.splitlines()[2]


def test_the_picture_has_a_cell_for_each_number(model, tmp_path, capsys) -> None:
    run(patch, model, CLEAN, OTHER, "--answer", "t", "--by", "heads_by_position", "-o", tmp_path / "x.svg")
    root = ElementTree.parse(tmp_path / "x.svg").getroot()
    texts = [node.text for node in root.iter() if node.tag.endswith("text")]
    heads = [f"{block}.{head}" for block in range(2) for head in range(4)]
    assert [text for text in texts if text in heads] == heads
    assert any("cat" in text and "dog" in text for text in texts)
    assert "log p(answer): clean" in capsys.readouterr().out


def test_without_a_file_the_places_that_restore_most_are_printed(model, capsys) -> None:
    run(patch, model, CLEAN, OTHER, "--answer", "t", "--position", -2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    parts = [float(line.split()[-1]) for line in lines[2:]]
    assert parts == sorted(parts, reverse=True)
    # Before the first block the only token that differs carries all of it.
    assert any("block 0" in line and "/" in line and line.endswith("1.000") for line in lines[2:])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("the cat", "the cat sat", "--answer", "t"), "tokens"),
        (("the cat", "the cat", "--answer", "t"), "nothing to restore"),
        (("the cat", "the dog", "--answer", "the cat"), "tokens"),
        (("the cat", "the dog", "--answer", "t", "--position", 40), "position 40"),
    ],
)
def test_what_cannot_be_patched_is_refused(model, words, why) -> None:
    with pytest.raises((UsageError, DataError), match=why):
        run(patch, model, *words)


def test_an_encoder_is_patched_between_its_own_tokens(tmp_path, capsys) -> None:
    """A masked head scores the vocabulary at every position; what an encoder reads has special tokens around it."""
    model = saved(tmp_path / "model", "bert")
    words = ("--answer", "t", "--wrong", "o", "--position", 1)
    run(patch, model, CLEAN, OTHER, *words, "-o", tmp_path / "x.json")
    told = json.loads((tmp_path / "x.json").read_text())
    lm = orrery.load(model, say=lambda line: None)
    clean, other = (lm.trace(text) for text in (CLEAN, OTHER))
    right, wrong = lm.token_id("t"), lm.token_id("o")

    def measure(logits) -> float:
        return float(logits[0, 1, right] - logits[0, 1, wrong])

    ends = measure(clean.logits), measure(other.logits)
    assert (told["measure"]["clean"], told["measure"]["corrupted"]) == pytest.approx(ends, abs=1e-4)
    assert torch.tensor(told["restored"]).shape == (2, clean.ids.shape[1])
    assert told["tokens"]["clean"] == list(clean.tokens)
    patched = other.edit(sources={"clean": clean}).patch("blocks.1.resid_pre", "clean", position=2).run()
    expected = (measure(patched.logits) - ends[1]) / (ends[0] - ends[1])
    assert told["restored"][1][2] == pytest.approx(expected, abs=1e-3)


def test_a_model_beside_a_source_is_refused(tmp_path) -> None:
    model = saved(tmp_path / "model", "rnnsearch")
    with pytest.raises(UsageError, match="writes beside a source"):
        run(patch, model, "the cat", "the dog", "--answer", "t")


def test_another_site_is_usage(model, capsys) -> None:
    assert program(["patch", str(model), "the cat", "the dog", "--answer", "t", "--by", "soul"]) == 2
    assert "residual" in capsys.readouterr().err
