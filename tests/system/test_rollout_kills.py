"""PPO and GRPO killed inside a rollout, an update and a save end with the bytes of a run that never was."""

import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import programs

SCRIPT = Path(__file__).parents[1] / "rollout_kills.py"
MODEL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
}
KINDS: dict[str, dict[str, Any]] = {
    "ppo": {"samples": 1, "minibatches": 2, "passes": 2},
    "grpo": {"samples": 4, "minibatches": 1, "passes": 2},
}
CALLS = {"rollout": (2, 90), "update": (3, 900), "save": (2, 40)}
"""Which calls of a run of 24 steps fall into the places: the first and the last that may be taken."""


def recipe(kind: str, steps: int) -> dict[str, Any]:
    return {
        "name": "killed",
        "model": {"family": "llama", "config": MODEL},
        "tokenizer": {"kind": "character"},
        "data": {"kind": "rollouts", "train": "addition", "val": "addition/val", "max_new_tokens": 4, **KINDS[kind]},
        "batches": {"length": 16, "size": 16},
        "objective": {"kind": kind},
        "rewards": ["arithmetic", {"kind": "length", "tokens": 3, "weight": 0.3}],
        "training": {"steps": steps, "micro_batch": 6, "precision": "float32", "optimizer": {"rate": 0.003}},
        "evaluation": {"every": 12, "batches": 1},
        "checkpoints": {"every": 3, "keep": 2},
        "logging": {"every": 4},
    }


def run(folder: Path, place: str, count: int) -> int:
    words = ["train", "recipe.yaml", "--output", folder.name, "--resume"]
    command = [sys.executable, SCRIPT, place, str(count), *words]
    return programs.run(command, cwd=folder.parent, capture_output=True).returncode


def killed(kind: str, folder: Path, places: list[str], steps: int = 24, seed: int = 0) -> int:
    """Kill a run at each of some places, end it, compare it with one that was not killed; return the kills."""
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe(kind, steps)))
    assert run(folder / "whole", "nowhere", 0) == 0
    rng, kills = random.Random(seed), 0
    for place in places:
        first, last = CALLS[place]
        code = run(folder / "killed", place, rng.randint(first, last // 3))
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
    assert run(folder / "killed", "nowhere", 0) == 0
    whole, again = (sorted((folder / name / "final").iterdir()) for name in ("whole", "killed"))
    assert [path.name for path in whole] == [path.name for path in again]
    for one, other in zip(whole, again, strict=True):
        assert one.read_bytes() == other.read_bytes() or one.name == "README.md"
    newest = [max((folder / name / "checkpoints").glob("step-*")) for name in ("whole", "killed")]
    for path in sorted(newest[0].glob("*.safetensors")):
        assert path.read_bytes() == (newest[1] / path.name).read_bytes(), path.name
    return kills


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_killed_ends_with_the_same_bytes(kind: str, tmp_path: Path) -> None:
    assert killed(kind, tmp_path, ["rollout", "update", "save"]) >= 2


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_twenty_kills(kind: str, tmp_path: Path) -> None:
    places = ["rollout", "update", "save"] * 7
    assert killed(kind, tmp_path, places[:20], steps=120, seed=1) == 20
