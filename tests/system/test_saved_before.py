"""What earlier sources saved: this one loads all of it, continues every run, and comes to the same end."""

import json
import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch
from safetensors.torch import load_file

import orrery
from orrery.cli.program import run as program
from orrery.families import load_family
from orrery.nn.spec import from_json
from saved_before.make import QUANTISED, answer

ARCHIVES = sorted((Path(__file__).parents[1] / "saved_before").glob("*.zip"))


def runs(archive: Path) -> list[str]:
    """Return the trainings of an archive."""
    with ZipFile(archive) as held:
        names = {Path(name).stem for name in held.namelist() if "/" not in name and name.endswith(".yaml")}
    return sorted(names - {"word2vec"})


each_run = pytest.mark.parametrize(
    ("saved", "run"),
    [pytest.param(archive, run, id=f"{archive.stem}-{run}") for archive in ARCHIVES for run in runs(archive)],
    indirect=["saved"],
)


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda path: path.stem)
def saved(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    shutil.unpack_archive(request.param, folder)
    return folder


@each_run
def test_an_interrupted_run_continues_to_the_same_end(saved, run, tmp_path, monkeypatch):
    """Within 1e-5: another processor may round otherwise."""
    shutil.copytree(saved, tmp_path / "saved")
    monkeypatch.chdir(tmp_path / "saved")
    again = Path("trained") / run
    assert program(["train", f"{run}.yaml", "--resume", "--output", str(again / "interrupted")]) == 0
    weights = load_file(again / "interrupted" / "final" / "model.safetensors")
    expected = load_file(again / "whole" / "final" / "model.safetensors")
    assert weights.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(weights[name], expected[name], rtol=0, atol=1e-5)


@each_run
def test_a_final_model_answers_as_it_did(saved, run):
    expected = json.loads((saved / "answers.json").read_text())[run]
    answered = answer(saved / "trained" / run / "whole")
    torch.testing.assert_close(torch.tensor(answered), torch.tensor(expected), rtol=0, atol=1e-5)


def test_a_model_in_whole_numbers_answers_as_it_did(saved):
    known = json.loads((saved / "answers.json").read_text())
    for name in QUANTISED.keys() & known.keys():
        torch.testing.assert_close(torch.tensor(answer(saved / name)), torch.tensor(known[name]), rtol=0, atol=1e-5)


@each_run
def test_a_checkpoint_is_a_model(saved, run):
    (checkpoint,) = (saved / "trained" / run / "interrupted" / "checkpoints").glob("step-*")
    tensors = load_file(checkpoint / "model.safetensors")
    model = orrery.load(checkpoint, "cpu", "stored", say=lambda line: None).model
    assert sum(tensor.numel() for tensor in tensors.values()) == sum(p.numel() for p in model.parameters())


def test_word_vectors_are_read(saved):
    assert program(["neighbours", str(saved / "trained" / "word2vec"), "dog"]) == 0


def test_every_spec_is_the_one_that_its_configuration_gives(saved):
    specs = json.loads((saved / "specs.json").read_text())
    assert len({one["family"] for one in specs}) >= 58
    for one in specs:
        spec = from_json(one["spec"])
        assert spec == load_family(one["family"]).spec(one["config"]), one["family"]
        model = spec.build(0)
        assert set(model.state_dict()) == {model.current_name(name) for name in one["tensors"]}, one["family"]
