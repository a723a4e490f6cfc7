"""``orrery train`` for a recipe with ``stages``: each trained in its turn, and a report that compares them."""

import os

import yaml

from orrery.cli.train.asked import TrainRequest
from orrery.studies.stages.recipe import load_staged


def train(request: TrainRequest) -> int:
    """Carry out what the flags of ``orrery train`` ask of a recipe of stages; return the exit code."""
    from orrery.studies.stages.plan import plan

    staged = load_staged(request.config, request.overrides, os.environ)
    folder = request.folder(staged.name)
    if request.print_config:
        print(yaml.safe_dump(staged.as_values(), sort_keys=False, allow_unicode=True), end="")
        return 0
    if request.dry_run:
        print(plan(staged, folder))
        return 0
    from orrery.studies.stages.run import run_stages
    from orrery.training.progress import find_reporter

    def say(line: str) -> None:
        print(line, flush=True)

    how = {"resume": request.resume, "overwrite": request.overwrite}
    signal = run_stages(staged, folder, find_reporter, say, **how, inputs=[request.config])
    if signal:
        say("--resume continues")
    return 128 + signal if signal else 0
