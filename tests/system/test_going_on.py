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
from orrery.cli.train.app import from_here
from orrery.errors import UsageError
from orrery.recipes.read import refuse_changes
from orrery.runs.default_recipe import recipe_for
from orrery.runs.going_on import FOUND_FOR_A_TEXT, as_begun, asked_for, folder_of, run_at
from orrery.tasks.finetuning.finetune import finetune
from orrery.training.loop import Trainer
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
    values: dict[str, Any] = yaml.safe_load((folder / "config.yaml").read_text())
    return values


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
    recipe = as_begun(recipe_for(text, [flag]), here, asked_for([flag]), FOUND_FOR_A_TEXT)
    with pytest.raises(UsageError, match="--resume: ") as fault:
        refuse_changes(config(here), recipe)
    assert flag.partition("=")[0].lstrip("-").partition(".")[0] in fault.value.message


@pytest.mark.parametrize("count", [1, 7, 29, 31, 60, 450, 10_000])
def test_whatever_the_steps_nothing_else_changes(count: int, begun: Path, here: Path) -> None:
    flags = [f"--training.steps={max(count, 2)}"]
    recipe = as_begun(recipe_for(begun / "text.txt", flags), here, asked_for(flags), FOUND_FOR_A_TEXT)
    refuse_changes(config(here), recipe)
    assert recipe.training.steps == max(count, 2)


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


@pytest.fixture
def relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a project with a run of a recipe whose paths are relative; the working folder is another."""
    monkeypatch.delenv("ORRERY_RUNS", raising=False)
    project, other = tmp_path / "project", tmp_path / "other"
    (project / "data").mkdir(parents=True)
    other.mkdir()
    text = "".join(f"the cat sat on the mat {n} times\n" for n in range(300))
    for name in ("train", "val"):
        (project / "data" / f"{name}.txt").write_text(text)
    (project / "data" / "recipe.yaml").write_text(
        "name: mine\ndata: {train: data/train.txt, val: data/val.txt}\n"
        "model: {family: gpt2, config: {n_embd: 16, n_layer: 1, n_head: 2, n_positions: 32}}\n"
        "tokenizer: {kind: character}\nobjective: {kind: causal}\n"
        "batches: {length: 32, size: 2}\n"
        "training: {steps: 3, precision: float32, optimizer: {kind: adamw, rate: 0.001}, schedule: {warmup: 1}}\n"
    )
    monkeypatch.chdir(project)
    assert run(["train", "data/recipe.yaml"]) == 0
    monkeypatch.chdir(other)
    return project


NAMED = {
    "its folder": (["train", "{}/runs/mine"], ""),
    "its recipe": (["train", "{}/runs/mine/config.yaml"], ""),
    "a relative path": (["train", "../project/runs/mine"], ""),
    "itself as output": (["train", "{}/runs/mine", "--output", "../project/runs/mine"], ""),
    "from inside": (["train", "."], "runs/mine"),
    "its recipe from inside": (["train", "config.yaml"], "runs/mine"),
    "from a folder of the project": (["train", "../runs/mine"], "data"),
}


@pytest.mark.parametrize("way", NAMED)
def test_a_run_with_relative_paths_goes_on_from_any_folder(
    way: str, relative: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, place = NAMED[way]
    if place:
        monkeypatch.chdir(relative / place)
    here, mine = Path.cwd(), relative / "runs" / "mine"
    before = config(mine)
    for count in (4, 5):
        assert run([*(word.format(relative) for word in words), "--resume", f"--training.steps={count}"]) == 0
        assert f"relative paths are those of {relative}" in capsys.readouterr().err
        assert steps(mine) == count
    assert Path.cwd() == here
    assert config(mine)["data"] == before["data"]
    assert sorted(path.name for path in relative.parent.joinpath("other").iterdir()) == []


def test_python_goes_on_from_any_folder(relative: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORRERY_TRAINING__STEPS", "4")
    assert orrery.train("../project/runs/mine", resume=True, quiet=True).folder == relative / "runs" / "mine"
    assert steps(relative / "runs" / "mine") == 4


def test_a_project_that_was_moved_or_an_older_run_is_found_from_the_working_folder(
    relative: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = relative.parent / "moved"
    relative.rename(moved)
    mine = moved / "runs" / "mine"
    go_on = ["train", str(mine), "--resume", "--training.steps=4"]
    assert run(go_on) == 3  # the paths mean this folder, where there is no data
    assert "data/train.txt" in capsys.readouterr().err
    (relative / "data").mkdir(parents=True)  # the old folder is there again, and empty
    monkeypatch.chdir(moved)
    assert run(go_on) == 0
    assert "relative paths" not in capsys.readouterr().err
    assert json.loads((mine / "run.json").read_text())["folder"] == str(moved)
    facts = json.loads((mine / "run.json").read_text())
    for folder in (None, 5, "", "/no/such/folder", "a\0b", ["x"]):
        (mine / "run.json").write_text(json.dumps({**facts, "folder": folder}))
        assert run([*go_on[:-1], "--training.steps=5"]) == 0
    del facts["folder"]
    (mine / "run.json").write_text(json.dumps(facts))
    assert run([*go_on[:-1], "--training.steps=6"]) == 0
    assert steps(mine) == 6


def test_another_base_is_looked_for_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()
    there = str(tmp_path / "base")
    assert from_here(["--model.from=base", "--x.y=base"]) == (f"--model.from={there}", "--x.y=base")
    assert from_here(["--model.from", "base", "base"]) == ("--model.from", there, "base")
    assert from_here(["--model.from", "hf:org/name", "--model.from"]) == ("--model.from", "hf:org/name", "--model.from")


def test_a_fine_tuning_with_relative_paths_goes_on_from_any_folder(
    tuned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    shutil.copytree(tuned, project)
    monkeypatch.chdir(project)
    words = ["--from", "base", "--train", "rows.csv", "--output", "mine"]
    assert run(["finetune", "classification", *words, "--training.steps=20"]) == 0
    monkeypatch.chdir(tmp_path)
    assert run(["finetune", "project/mine", "--resume", "--training.steps=22"]) == 0
    assert steps(project / "mine") == 22
    done = finetune("project/mine", resume=True, quiet=True, recipe={"training": {"steps": 23}})
    assert done.folder == project / "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]


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
