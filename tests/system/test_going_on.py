"""A run goes on from wherever it is named: its text with other steps, its folder, its ``config.yaml``, moved or not."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import orrery
from orrery.cli.program import run
from orrery.errors import UsageError
from orrery.finetuning.finetune import finetune
from orrery.runs.default_recipe import recipe_for
from orrery.runs.going_on import FOUND_FOR_A_TEXT, as_begun, asked_for, folder_of, run_at
from orrery.training.loop import Trainer
from orrery.training.recipes import refuse_changes
from tiny_models import saved

SMALL = [
    "--model.config={hidden_size: 16, intermediate_size: 16, num_hidden_layers: 1, num_attention_heads: 2,"
    " max_position_embeddings: 32}",
    "--batches.length=32", "--batches.size=2", "--training.precision=float32",
]  # fmt: skip
STEPS = ["--training.steps=30"]
"""Of which two are the warm-up that is found."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a text, and a run of it that nobody gave a warm-up."""
    place = tmp_path_factory.mktemp("begun")
    (place / "text.txt").write_text("".join(f"the cat sat on the mat {n} times\n" for n in range(300)))
    assert run(["train", str(place / "text.txt"), *STEPS, *SMALL, "--output", str(place / "runs" / "first")]) == 0
    return place


@pytest.fixture
def here(begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the run; the text stays where it is, and so do the folders that runs are made in."""
    monkeypatch.setenv("ORRERY_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(begun / "runs" / "first", tmp_path / "elsewhere" / "mine")
    return tmp_path / "elsewhere" / "mine"


def steps(folder: Path) -> int:
    return int(json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])["step"])


def config(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((folder / "config.yaml").read_text())
    return found


WAYS = {
    "the text": lambda text, mine: ["train", text, "--output", mine],
    "the text and its flags": lambda text, mine: ["train", text, *SMALL, "--output", mine],
    "the folder": lambda text, mine: ["train", mine],
    "the folder with a slash": lambda text, mine: ["train", f"{mine}/"],
    "a relative folder": lambda text, mine: ["train", "elsewhere/mine"],
    "the folder as its output": lambda text, mine: ["train", mine, "--output", mine],
    "its recipe": lambda text, mine: ["train", f"{mine}/config.yaml"],
    "a relative recipe": lambda text, mine: ["train", "elsewhere/mine/config.yaml"],
    "its recipe as its output": lambda text, mine: ["train", f"{mine}/config.yaml", "--output", mine],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_goes_on(way: str, begun: Path, here: Path) -> None:
    before = config(here)
    words = WAYS[way](str(begun / "text.txt"), str(here))
    assert run([*words, "--resume", "--training.steps", "33"]) == 0
    assert steps(here) == 33
    after = config(here)
    assert after == {**before, "training": {**before["training"], "steps": 33}}
    assert not (here.parent.parent / "runs").exists()


def test_python_goes_on_as_the_verb_does(begun: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, named in enumerate((here, here / "config.yaml", str(here), begun / "text.txt"), start=1):
        monkeypatch.setenv("ORRERY_TRAINING__STEPS", str(30 + number))
        output = here if named == begun / "text.txt" else None
        done = orrery.train(named, output, resume=True, quiet=True)
        assert (done.step, done.folder) == (30 + number, here)
    with pytest.raises(UsageError, match="is a run that goes on in its own folder, and --output names"):
        orrery.train(here, here.parent / "other", resume=True, quiet=True)


def test_without_resume_a_run_is_no_text_and_the_hint_goes_on(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", str(here)]) == 2
    told = capsys.readouterr().err
    assert f"orrery train {here} --resume goes on with it" in told
    hint = told.split("hint: orrery ")[1].split(" goes on")[0].split()
    assert run([*hint, "--training.steps=31"]) == 0
    assert steps(here) == 31


def test_the_recipe_of_a_run_can_be_that_of_another(here: Path) -> None:
    assert run(["train", str(here / "config.yaml"), "--training.steps=2", "--training.schedule.warmup=1",
                "--output", "other"]) == 0  # fmt: skip
    assert steps(here.parent.parent / "other") == 2
    assert steps(here) == 30


@pytest.mark.parametrize(
    "flag",
    [
        "--training.optimizer.rate=0.5", "--batches.size=3", "--model.config.hidden_size=32", "--seed=5",
        "--training.schedule.warmup=5", "--training.schedule={kind: constant, warmup: 2}", "--training.clip=2",
        "--training.optimizer.kind=muon", "--tokenizer.kind=char_bpe", "--data.invalid=replace", "--model.dropout=0.5",
    ],
)  # fmt: skip
def test_what_is_asked_for_otherwise_is_refused_by_its_key(flag: str, begun: Path, here: Path) -> None:
    text = begun / "text.txt"
    found = as_begun(recipe_for(text, [flag]), here, asked_for([flag]), FOUND_FOR_A_TEXT)
    with pytest.raises(UsageError, match="--resume: ") as fault:
        refuse_changes(config(here), found)
    assert flag.partition("=")[0].lstrip("-").partition(".")[0] in fault.value.message


@pytest.mark.parametrize("count", [1, 7, 29, 31, 60, 450, 10_000])
def test_whatever_the_steps_nothing_else_changes(count: int, begun: Path, here: Path) -> None:
    flags = [f"--training.steps={max(count, 2)}"]
    found = as_begun(recipe_for(begun / "text.txt", flags), here, asked_for(flags), FOUND_FOR_A_TEXT)
    refuse_changes(config(here), found)
    assert found.training.steps == max(count, 2)


def test_a_folder_that_is_no_run_is_no_run(tmp_path: Path, here: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "config.yaml").write_text("name: x\n")
    for named in (tmp_path / "texts", tmp_path / "nothing", tmp_path / "config.yaml", here / "final", here / "log.txt"):
        assert run_at(named) is None
        assert folder_of(named, tmp_path / "other") is None
    assert run_at(here) == run_at(here / "config.yaml") == here


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with rows, a base, and a fine-tuning of both."""
    place = tmp_path_factory.mktemp("tuned")
    rows = "".join(f"{'the cat' if n % 2 else 'a dog'} {n},{n % 2}\n" for n in range(60))
    (place / "rows.csv").write_text(f"text,label\n{rows}")
    saved(place / "base", "bert")
    words = ["--from", str(place / "base"), "--train", str(place / "rows.csv"), "--output", str(place / "run")]
    assert run(["finetune", "classification", *words, "--training.steps=20"]) == 0
    return place


TUNED = {
    "the same command": lambda place, mine: [
        "classification", "--from", f"{place}/base", "--train", f"{place}/rows.csv", "--output", mine,
    ],
    "the folder": lambda place, mine: [mine],
    "its recipe": lambda place, mine: [f"{mine}/config.yaml"],
}  # fmt: skip


@pytest.mark.parametrize("way", TUNED)
def test_a_fine_tuning_goes_on_and_is_scored(way: str, tuned: Path, tmp_path: Path) -> None:
    mine = tmp_path / "run"
    shutil.copytree(tuned / "run", mine)
    (mine / "scores.json").unlink()
    before = config(mine)
    assert run(["finetune", *TUNED[way](tuned, str(mine)), "--resume", "--training.steps=24"]) == 0
    assert config(mine) == {**before, "training": {**before["training"], "steps": 24}}
    assert (mine / "scores.json").is_file()


def test_python_goes_on_with_a_fine_tuning(tuned: Path, tmp_path: Path) -> None:
    mine = tmp_path / "run"
    shutil.copytree(tuned / "run", mine)
    done = finetune(str(mine), resume=True, quiet=True, recipe={"training": {"steps": 22}})
    assert done.folder == mine
    more = {"recipe": {"training": {"steps": 23}}, "output": mine, "resume": True, "quiet": True}
    finetune("classification", tuned / "base", tuned / "rows.csv", **more)
    assert steps(mine) == 23


def test_the_hint_of_another_device_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("orrery.training.loop.find_device", lambda asked: "cpu" if asked == "cpu" else "meta")
    assert run(["train", str(here), "--resume", "--training.steps=31"]) == 5
    (hint,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("hint: resume with ")]
    assert run(["train", str(here), "--resume", "--training.steps=31", *hint.split()[3:]]) == 0
    assert steps(here) == 31


def test_what_is_said_when_a_run_is_stopped_goes_on(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    update = Trainer._update

    def interrupted(self: Trainer) -> None:
        update(self)
        if self.progress.step == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Trainer, "_update", interrupted)
    words = ["train", str(begun / "text.txt"), *STEPS, *SMALL, "--training.steps=30", "--output", str(tmp_path / "run")]
    assert run(words) == 130
    monkeypatch.undo()
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.endswith("--resume continues")]
    monkeypatch.chdir(tmp_path)
    assert run(line.split()[1:-1]) == 0
    assert steps(tmp_path / "run") == 30


def test_numbers_that_are_not_finite_are_begun_from_the_last_sound_ones(
    begun: Path, here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", str(begun / "text.txt"), *STEPS, "--batches.length=32", "--batches.size=2"]
    assert run([*words, *SMALL, "--training.optimizer.rate=1e30", "--training.clip=null", "--output", "bad"]) == 1
    hint = capsys.readouterr().err.split("hint: ")[1]
    assert "--model.from RUN" in hint
    assert run([*words, "--model.from", str(here), "--training.optimizer.rate=1e-3", "--output", "good"]) == 0
