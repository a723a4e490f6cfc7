"""``orrery train`` for a recipe with ``stages``: each trained in its turn, and a report that compares them."""

import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from orrery.settings import runs_folder
from orrery.stages.recipe import load_staged


def train(
    config: Path,
    overrides: Sequence[str],
    *,
    resume: bool,
    overwrite: bool,
    dry_run: bool,
    print_config: bool,
    output: Path | None,
) -> int:
    """Carry out what the flags of ``orrery train`` ask of a recipe of stages; return the exit code."""
    from orrery.stages.plan import plan

    staged = load_staged(config, overrides, os.environ)
    folder = output or runs_folder() / staged.name
    if print_config:
        print(yaml.safe_dump(staged.as_values(), sort_keys=False, allow_unicode=True), end="")
        return 0
    if dry_run:
        print(plan(staged, folder))
        return 0
    from orrery.stages.run import run_stages
    from orrery.training.progress import find_reporter

    def say(line: str) -> None:
        print(line, flush=True)

    signal = run_stages(staged, folder, find_reporter, say, resume=resume, overwrite=overwrite, inputs=[config])
    if signal:
        say("--resume continues")
    return 128 + signal if signal else 0
