"""``orrery recommend``: the items that come next, from words, files and pipes; what it refuses."""

import json

import pytest
import torch

import orrery
from orrery.cli.program import run
from orrery.exchange.saving.save import save_model
from orrery.text.train import train_tokenizer
from tiny_models import CONFIGS, saved, tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("items")
    tokenizer = train_tokenizer("word", ["tent lamp rope stove boots"])
    config = {**CONFIGS["gpt2"], "vocab_size": tokenizer.size}
    save_model(folder, tiny("gpt2", torch.float32, **config), "gpt2", config, tokenizer)
    return str(folder)


def out(capsys, *words):
    capsys.readouterr()
    assert run(["recommend", *words]) == 0
    return capsys.readouterr().out


def test_lines_are_places_probabilities_and_items(model, capsys):
    wanted = orrery.pipeline("next-item", model, device="cpu")(["tent", "lamp"])
    lines = out(capsys, model, "--history", "tent", "lamp").splitlines()
    assert [line.split()[2] for line in lines] == [one["item"] for one in wanted]
    assert [int(line.split()[0]) for line in lines] == [1, 2, 3]
    seen = out(capsys, model, "--history", "tent", "lamp", "--seen", "--top-k", "4").splitlines()
    assert len(seen) == 4


def test_files_have_a_history_a_line(model, tmp_path, capsys):
    (tmp_path / "histories.txt").write_text("tent, lamp\nrope\n")
    found = [
        json.loads(line)
        for line in out(capsys, model, "--file", str(tmp_path / "histories.txt"), "--json").splitlines()
    ]
    assert [one["text"] for one in found] == ["tent, lamp", "rope"]
    assert [len(one["items"]) for one in found] == [3, 4]


def test_new_items_come_with_their_texts(model, tmp_path, capsys):
    (tmp_path / "items.csv").write_text("item,text\ntent,a tent\nlamp,a lamp\nrope,a rope\nmug,a tent of tin\n")
    assert "mug" in out(capsys, model, "--history", "rope", "--items", str(tmp_path / "items.csv"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["M", "--history", "mug"], "does not know the item 'mug'"),
        (["M", "--history", "tent", "--file", "f.txt"], "not both"),
        (["M", "--history", "tent", "--encoder", "M"], "--encoder reads the texts of --items"),
        (["llama", "--history", "tent"], "pieces of text"),
    ],
)
def test_what_cannot_be_meant_is_refused(model, tmp_path, capsys, words, told):
    places = {"M": model, "llama": str(saved(tmp_path / "llama", "llama"))}
    assert run(["recommend", *(places.get(word, word) for word in words)]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "hint: " in error
