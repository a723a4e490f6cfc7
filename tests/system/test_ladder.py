"""``orrery ladder``: tiny sizes in seconds, stopped and continued, and its refusals."""

import json
from pathlib import Path

import pytest
import yaml

from demo_toy import write_ring
from ladder_toy import write_ladder
from orrery.cli.program import run
from orrery.language_model.load import load
from orrery.training.loop import Trainer

FILES = {"ladder.json", "ladder.html", "loss-by-parameters.svg", "loss-by-operations.svg"}


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_ring(tmp_path / "ring", documents=40, length=8)
    write_ladder(tmp_path / "toy.yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORRERY_RUNS", raising=False)
    return tmp_path


def result(folder):
    return json.loads(Path(folder, "ladder.json").read_text())


def losses(folder):
    return [(one["parameters"], one["seed"], one["loss"]) for one in result(folder)["runs"]]


def stop_at(monkeypatch, steps, seed):
    """Let Ctrl-C arrive in the middle of one training."""
    update = Trainer._update

    def signalled(trainer):
        update(trainer)
        if trainer.recipe.training.steps == steps and trainer.recipe.seed == seed and trainer.progress.step == 3:
            trainer.signals.received = 2

    monkeypatch.setattr(Trainer, "_update", signalled)


def test_a_ladder_is_trained_and_the_largest_size_is_predicted_before(place, monkeypatch, capsys):
    assert run(["ladder", "toy.yaml", "--output", "whole", "--ladder.tokens_per_parameter", "0.08"]) == 0
    said = capsys.readouterr().out
    assert said.index("smaller trainings predicts") < said.index("size 4 of 4")
    assert "a miss of " in said
    assert {path.name for path in Path("whole").glob("*.*")} == FILES
    ladder = result("whole")
    assert len(ladder["runs"]) == 3 * 2 + 1
    one = ladder["forecasts"]["parameters"]
    assert one["miss"] == pytest.approx(one["predicted"][0] / ladder["runs"][-1]["loss"] - 1)
    largest = f"whole/{ladder['sizes'][-1]['parameters']}-parameters-seed-1"
    assert load(largest, say=lambda line: None).generate("The", max_new_tokens=2)


@pytest.mark.slow
def test_a_ladder_that_is_stopped_twice_ends_as_one_that_is_not(place, monkeypatch, capsys):
    assert run(["ladder", "toy.yaml", "--output", "whole"]) == 0
    ladder = result("whole")
    one = ladder["forecasts"]["parameters"]
    for size in (1, 3):  # inside a training of a smaller size, and of the largest
        number = ladder["sizes"][size]
        stop_at(monkeypatch, number["steps"], seed=1)
        again = ["--resume"] if size == 3 else []
        assert run(["ladder", "toy.yaml", "--output", "cut", *again]) == 130
        monkeypatch.undo()
        monkeypatch.chdir(place)
        assert len(losses("cut")) == 2 * size
        assert ("parameters" in result("cut")["forecasts"]) == (size == 3)
    assert result("cut")["forecasts"]["parameters"]["predicted"] == one["predicted"]
    capsys.readouterr()
    Path("cut").rename("moved")  # the training that was cut finds the tokenizer where it is now
    assert run(["ladder", "toy.yaml", "--output", str(place / "moved"), "--resume"]) == 0
    assert "seed 2: done before" in capsys.readouterr().out
    assert losses("moved") == losses("whole")
    assert result("moved")["forecasts"] == ladder["forecasts"]


def test_a_plan_trains_nothing(place, capsys):
    assert run(["ladder", "toy.yaml", "--dry-run", "--ladder.tokens_per_parameter", "2"]) == 0
    said = capsys.readouterr().out
    assert "minutes of training in all" in said
    assert "what is repeated teaches less" in said
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["ladder", "plain.yaml"], 2, "has no section 'ladder'"),
        (["train", "toy.yaml"], 2, "`orrery ladder toy.yaml` carries it out"),
        (["plan", "toy.yaml"], 2, "`orrery ladder toy.yaml` carries it out"),
        (["ladder", "toy.yaml", "--output", "ring"], 2, "and no scaling ladder"),
        (["ladder", "toy.yaml", "--output", "toy.yaml"], 2, "toy.yaml is a file"),
        (["ladder", "toy.yaml", "--ladder.seeds", "1"], 2, "seeds"),
        (["ladder", "toy.yaml", "--data", "{train: ring}"], 3, "no text is held back"),
        (["ladder", "toy.yaml", "--model.config.num_attention_heads", "3"], 4, "num_attention_heads"),
    ],
)
def test_what_is_wrong_is_said(words, code, said, place, capsys):
    plain = {key: value for key, value in yaml.safe_load(Path("toy.yaml").read_text()).items() if key != "ladder"}
    Path("plain.yaml").write_text(yaml.safe_dump(plain))
    assert run(words) == code
    assert said in capsys.readouterr().err
    assert not Path("runs/toy/ladder.json").exists()


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"settings": 5, "corpus": {}, "sizes": [], "runs": []}', "[" * 100_000]
)
def test_a_file_that_is_of_no_ladder_is_refused(content, place, capsys):
    Path("out").mkdir()
    Path("out/ladder.json").write_text(content)
    assert run(["ladder", "toy.yaml", "--output", "out", "--resume"]) == 2
    assert "ladder.json is not of a scaling ladder" in capsys.readouterr().err


def test_only_the_same_ladder_is_gone_on_with(place, monkeypatch, capsys):
    stop_at(monkeypatch, steps_of(width=12), seed=1)
    assert run(["ladder", "toy.yaml"]) == 130
    assert run(["ladder", "toy.yaml"]) == 2
    assert "add --resume" in capsys.readouterr().err
    assert run(["ladder", "toy.yaml", "--resume", "--ladder.rate_exponent", "0.5"]) == 2
    assert "--resume: ladder.rate_exponent was 0.25 and is now 0.5" in capsys.readouterr().err
    (place / "ring" / "00.txt").write_text("another text")
    assert run(["ladder", "toy.yaml", "--resume"]) == 3
    assert "not the one that this scaling ladder began with" in capsys.readouterr().err


def steps_of(width):
    """The steps of a size: 0.2 tokens for each of its parameters, in batches of 64."""
    return round(0.2 * (4 * width * width + 3 * width * 16 + 2 * width) / 64)
