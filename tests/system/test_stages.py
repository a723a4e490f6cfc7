"""``orrery train`` with a recipe of stages, as a user runs it, on a toy."""

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import orrery
import programs
from orrery.cli.program import run
from orrery.errors import UsageError
from orrery.studies.stages import run as stages
from orrery.studies.stages.folder import weights_hash
from orrery.studies.stages.recipe import load_staged
from programs import DEVNULL, PIPE
from stages_toy import recipe, values

NAMES = ("base", "sft", "reward", "ppo", "dpo", "grpo")


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A recipe, and the folder in which it has run; a copy would not do: stages know the absolute places of others."""
    folder = tmp_path_factory.mktemp("stages")
    file = recipe(folder, values(folder))
    assert run(["train", file, "--output", str(folder / "run")]) == 0
    return file, folder / "run"


def test_every_stage_leaves_a_model_and_the_report_compares_them(toy: tuple[str, Path]) -> None:
    told = json.loads((toy[1] / "report.json").read_text())
    assert list(told["runs"]) == ["base", "sft", "reward", "ppo", "dpo", "grpo"]
    assert list(told["stages"]) == ["base", "sft", "ppo", "dpo", "grpo"]  # the reward model writes nothing
    for name, stage in told["stages"].items():
        names = set(stage["scores"])
        wins = set() if name == "sft" else {"wins"}
        assert names == {"perplexity", "reward", "KL", "length", "ends", "leaks", "format"} | wins
        assert stage["conversations"]["held"] == 3
        assert all("low" in score for score in stage["scores"].values())
    assert told["stages"]["sft"]["scores"]["KL"]["score"] == 0.0
    assert len(told["samples"]) == 2
    assert set(told["samples"][0]["answers"]) == set(told["stages"])
    state = json.loads((toy[1] / "stages.json").read_text())
    assert state["ppo"]["begun"] == {name: state[name]["weights"] for name in ("sft", "reward")}


def test_the_page_holds_the_picture_and_needs_nothing_else(toy: tuple[str, Path]) -> None:
    page = (toy[1] / "report.html").read_text()
    for said in ("Supervised fine-tuning", "Reward model", "stage ppo", "Conversations of 2 turns", "Side by side"):
        assert said in page
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_each_stage_talks(toy: tuple[str, Path]) -> None:
    lm = orrery.load(toy[1] / "ppo", say=lambda line: None)
    assert isinstance(lm.reply([{"role": "user", "content": "cat"}], max_new_tokens=3).text, str)


def test_what_is_finished_is_not_run_again(toy: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: (toy[1] / name / "run.json").stat().st_mtime_ns for name in NAMES}
    assert run(["train", toy[0], "--output", str(toy[1])]) == 2
    assert "add --resume to go on with them or --overwrite" in capsys.readouterr().err
    assert run(["train", toy[0], "--output", str(toy[1]), "--resume"]) == 0
    said = capsys.readouterr().out
    assert all(f"{name} is finished" in said for name in NAMES)
    assert before == {name: (toy[1] / name / "run.json").stat().st_mtime_ns for name in NAMES}


def test_a_changed_stage_is_refused_by_its_name(toy: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", toy[0], "--output", str(toy[1]), "--resume", "--stages.dpo.objective.beta", "0.5"]
    assert run(words) == 2
    said = capsys.readouterr().err
    assert "stage dpo: --resume: objective.beta was 0.1 and is now 0.5" in said
    assert "to train it again" in said


def test_a_stage_whose_base_has_changed_is_refused(toy: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    file = toy[1] / "stages.json"
    before = file.read_text()
    state = json.loads(before)
    state["dpo"]["begun"]["sft"] = "0" * 64
    file.write_text(json.dumps(state))
    try:
        assert run(["train", toy[0], "--output", str(toy[1]), "--resume"]) == 2
        assert "stage dpo began from another sft than" in capsys.readouterr().err
    finally:
        file.write_text(before)


def test_an_overwrite_that_was_stopped_goes_on_with_what_it_had_not_replaced(
    toy: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(toy[1], tmp_path / "run")
    words = ["train", toy[0], "--output", str(tmp_path / "run"), "--stages.base.training.optimizer.rate", "0.02"]
    train = stages._train
    with monkeypatch.context() as stopped:
        stopped.setattr(
            stages, "_train", lambda folder, stage, *more: 2 if stage.name == "sft" else train(folder, stage, *more)
        )
        assert run([*words, "--overwrite"]) == 130
    capsys.readouterr()
    assert run([*words, "--resume"]) == 0
    said = capsys.readouterr().out
    assert [name for name in NAMES if f"{name} is finished" in said] == ["base"]
    for name in NAMES:
        assert weights_hash(tmp_path / "run" / name) != weights_hash(toy[1] / name)
    state = json.loads((tmp_path / "run" / "stages.json").read_text())
    assert state["ppo"]["begun"] == {name: weights_hash(tmp_path / "run" / name) for name in ("sft", "reward")}
    assert run([*words, "--resume"]) == 0


def test_the_plan_names_every_stage_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recipe(tmp_path, values(tmp_path))
    assert run(["train", file, "--output", str(tmp_path / "run"), "--dry-run", "--stages.sft.training.steps=7"]) == 0
    said = capsys.readouterr().out
    assert "stage 4 of 6: ppo" in said
    assert "7 steps" in said
    assert not (tmp_path / "run").exists()
    assert run(["train", file, "--print-config"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["stages"]["ppo"]["model"] == {"from": "stage:sft"}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no stages": ({"name": "toy", "stages": {}}, "stages"),
    "a list": ({"name": "toy", "stages": []}, "stages"),
    "an unknown stage": (
        {"name": "toy", "stages": {"one": {"model": {"from": "stage:two"}}}}, "stages.one names the stage 'two'",
    ),
    "a circle": (
        {"name": "toy", "stages": {"one": {"model": {"from": "stage:two"}}, "two": {"model": {"from": "stage:one"}}}},
        "in a circle: one from two from one",
    ),
    "itself": ({"name": "toy", "stages": {"one": {"model": {"from": "stage:one"}}}}, "in a circle: one from one"),
    "a number": ({"name": "toy", "stages": {"one": 3}}, "stages.one is neither a recipe nor the file of one"),
    "a missing file": ({"name": "toy", "stages": {"one": "none.yaml"}}, "cannot read the recipe"),
    "a name": ({"name": "toy", "stages": {"../one": {}}}, "stages"),
    "a judge": (
        {"name": "toy", "stages": {"one": {}}, "report": {"judge": "two", "against": "one", "dialogues": "x"}},
        "report.judge: no stage is called two",
    ),
    "a key": ({"name": "toy", "stages": {"one": {}}, "stage": 3}, "unknown key"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_recipes(case: str, tmp_path: Path) -> None:
    content, said = BAD[case]
    with pytest.raises(UsageError, match=said):
        load_staged(Path(recipe(tmp_path, content)))


def test_from_python_the_verb_is_named(tmp_path: Path) -> None:
    file = recipe(tmp_path, values(tmp_path))
    with pytest.raises(UsageError, match="has stages") as refused:
        orrery.train(file)
    assert refused.value.hint == f"orrery train {file} trains them all"


def test_two_stages_of_one_name(tmp_path: Path) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text("name: toy\nstages:\n  one: {}\n  one: {}\n")
    with pytest.raises(UsageError, match=r"twice.yaml:4: .*key 'one' twice"):
        load_staged(file)


def test_a_flag_of_no_stage_and_a_bad_key_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recipe(tmp_path, values(tmp_path))
    assert run(["train", file, "--stages.nope.training.steps", "3"]) == 2
    assert "stages.nope: no stage is called so" in capsys.readouterr().err
    assert run(["train", file, "--stages.sft.training.steps", "many", "--output", str(tmp_path / "run")]) == 2
    assert "stages.sft: training.steps" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_stage_from_a_file_with_changes(tmp_path: Path) -> None:
    (tmp_path / "part.yaml").write_text("name: part\nmodel: {from: x}\ndata: {kind: text, train: a}\nseed: 3\n")
    content = {"name": "toy", "seed": 9, "stages": {"one": {"recipe": "part.yaml", "data": {"train": "b"}}}}
    staged = load_staged(Path(recipe(tmp_path, content)))
    assert staged.stages[0].values == {
        "name": "toy-one", "model": {"from": "x"}, "data": {"kind": "text", "train": "b"}, "seed": 9,
    }  # fmt: skip


def test_a_folder_of_other_things_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recipe(tmp_path, values(tmp_path))
    assert run(["train", file, "--output", str(tmp_path)]) == 2
    assert "which is no stage of this recipe" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("place", ["base", "sft", "ppo"])
def test_killed_in_a_stage_and_resumed_gives_the_same_bytes(place: str, tmp_path: Path, toy: tuple[str, Path]) -> None:
    file = recipe(tmp_path, values(tmp_path, save=1))
    words = [*programs.ORRERY, "train", file, "--output", str(tmp_path / "run")]
    process = programs.Program(words, stdout=DEVNULL, stderr=PIPE, text=True)
    kept = tmp_path / "run" / place / "checkpoints"
    until = time.monotonic() + 120
    while not (kept.is_dir() and any(kept.iterdir())) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "run" / "report.json").exists()
    assert programs.run([*words, "--resume"], capture_output=True).returncode == 0
    for name in ("base", "sft"):
        final = Path(name) / "final" / "model.safetensors"
        assert (tmp_path / "run" / final).read_bytes() == (toy[1] / final).read_bytes()
    assert (tmp_path / "run" / "report.json").is_file()
