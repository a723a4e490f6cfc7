"""``train --overwrite``: the old run goes only when the new one has its first checkpoint."""

import shutil
from pathlib import Path

import pytest
import torch

import outputs_toy
from orrery.checkpoints import succession
from orrery.cli.program import run
from orrery.language_model.load import load
from outputs_toy import tree


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with inputs, a finished run and finished word vectors."""
    folder = tmp_path_factory.mktemp("finished")
    outputs_toy.prepare(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(["train", "train.yaml", "--output", "old"]) == 0
        assert run(["train", "vectors.yaml", "--output", "old-vectors"]) == 0
    (folder / "old/notes.txt").write_text("mine")
    return folder


@pytest.fixture
def here(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    shutil.copytree(finished, folder)
    monkeypatch.chdir(folder)
    return folder


OVER, OVER_VECTORS = "train train.yaml --output old --overwrite", "train vectors.yaml --output old-vectors --overwrite"
FAILING = {
    "misspelt data": f"{OVER} --data.train misspelt",
    "bad model": f"{OVER} --model.config.num_attention_heads 3",
    "unknown family": f"{OVER} --model.family lama",
    "missing tokenizer": f"{OVER} --tokenizer {{'file':'missing'}}",
    "corrupt tokenizer": f"{OVER} --tokenizer {{'file':'corrupt.json'}}",
    "missing device": f"{OVER} --training.device cuda",
    "too little text": f"{OVER} --data.train source.txt",
    "not finite at once": f"{OVER} --training.optimizer.rate 1e38 --training.optimizer.kind sgd",
    "vectors of misspelt data": f"{OVER_VECTORS} --data.train misspelt",
    "vectors of nothing": f"{OVER_VECTORS} --words.min_count 100000",
}


@pytest.mark.parametrize("case", FAILING)
def test_a_run_that_cannot_start_leaves_the_old_one(case: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if case == "missing device" and torch.cuda.is_available():
        pytest.skip("this machine has a GPU, so that no device is missing")
    (here / "corrupt.json").write_text("{")
    before = tree(here)
    assert run(FAILING[case].split()) in (1, 2, 3, 4, 5)
    assert ("defect" not in capsys.readouterr().err) or case == "missing device"
    assert tree(here) == before


def test_the_old_run_goes_with_the_first_checkpoint(here: Path) -> None:
    before = tree(here / "old")
    assert run([*OVER.split(), "--training.steps", "3", "--seed", "7"]) == 0
    after = tree(here / "old")
    assert [name for name in after if name.startswith("checkpoints/step") and "/" not in name[12:]] == [
        "checkpoints/step-000003"
    ]
    assert after["notes.txt"] == b"mine"
    assert after["final/model.safetensors"] != before["final/model.safetensors"]
    assert not [name for name in after if name.startswith(".orrery")]
    assert run([*OVER_VECTORS.split(), "--model.width", "4"]) == 0
    assert not [name for name in tree(here / "old-vectors") if name.startswith(".orrery")]
    assert (here / "old-vectors/final/vectors.bin").read_bytes()[:5] == b"16 4\n"


def test_what_a_killed_training_decided_is_ended_when_the_run_is_read(here: Path) -> None:
    shutil.copytree("old", "third")
    assert run(["train", "train.yaml", "--output", "new", "--training.steps", "3"]) == 0
    shutil.copytree("new", succession.begin(Path("third")), dirs_exist_ok=True)
    (here / "third" / succession.NEW / succession.REPLACES).write_text(
        '{"names": ["checkpoints", "final", "config.yaml"]}'
    )
    (here / "third" / succession.NEW).rename(here / "third" / succession.DECIDED)
    load("third")
    assert (here / "third/final/model.safetensors").read_bytes() == (here / "new/final/model.safetensors").read_bytes()
    assert not list((here / "third").glob(".orrery*"))


def test_the_recipes_own_folder_and_inputs_inside_the_run_are_refused(here: Path) -> None:
    (here / "mine").mkdir()
    shutil.copy("train.yaml", "mine/config.yaml")
    (here / "mine/log.txt").write_text("mine")
    shutil.copytree("old", "again")
    before = tree(here)
    for way in ("--overwrite", "--resume", "--no-resume"):
        assert run(["train", "mine/config.yaml", "--output", "mine", way]) == 2
    assert run(["train", "again/config.yaml", "--output", "again", "--overwrite"]) == 2
    inside = ["--tokenizer", "{file: again/tokenizer.json}"]
    assert run(["train", "train.yaml", "--output", "again", "--overwrite", *inside]) == 2
    assert tree(here) == before
