"""The law of resume: a run that was cut off and continued ends with the bytes of one that never was."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from orrery.errors import RunError
from orrery.laws.evidence import CannotRunError, Evidence, exactly_equal
from orrery.laws.models import Writer, random_ids
from orrery.objectives.protocols import Batch

STEPS, CUT = 6, 4


def check(family: str) -> Iterator[Evidence]:
    """Train six steps with dropout and accumulation, once through, and once with a failure in the fifth.

    Raises:
        CannotRunError: the training loop is not part of this installation.
    """
    try:
        import orrery.training.loop  # noqa: F401
    except ImportError as error:
        raise CannotRunError("the training loop is not there", "it comes with training") from error
    with TemporaryDirectory() as folder:
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        train(family, whole, fail_at=None)
        try:
            train(family, broken, fail_at=CUT)
        except RunError:
            train(family, broken, fail_at=None)
        files = final_files(whole)
        differing = sum(files[name] != final_files(broken).get(name) for name in files)
    yield exactly_equal("files of weights and optimizer whose bytes differ", "resume", family, differing)


class Source:
    """Batches as a pure function of the step; one that fails once, as a machine does."""

    def __init__(self, fail_at: int | None) -> None:
        self.fail_at = fail_at

    def batch(self, step: int) -> Batch:
        """Return four rows of nine tokens."""
        if step == self.fail_at:
            raise RunError("this run was told to fail", "it is a test")
        ids = random_ids(4, 10, seed=step)
        return {"ids": ids[:, :-1], "targets": ids[:, 1:]}

    def state(self) -> dict[str, Any]:
        """Return nothing: the step says all."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take nothing back."""


def train(family: str, folder: Path, fail_at: int | None) -> None:
    """Train a tiny model, from the newest checkpoint in the folder if there is one."""
    from orrery.families import load_family
    from orrery.models.dropout import with_dropout
    from orrery.models.encoder_decoder import ConditionalDecoder
    from orrery.objectives.causal import CausalLanguageModel
    from orrery.training.folder import open_run_folder
    from orrery.training.loop import Parts, Trainer

    generator_state = torch.get_rng_state()
    torch.manual_seed(0)
    spec = with_dropout(load_family(family).spec(load_family(family).TINY), 0.2)
    built = spec.build(0)
    model = Writer(built) if isinstance(built, ConditionalDecoder) else built
    parts = Parts(model, CausalLanguageModel(), Source(fail_at))
    with open_run_folder(folder, resume=folder.exists()) as opened:
        Trainer(parts, recipe(), opened).run()
    torch.set_rng_state(generator_state)


def recipe() -> Any:
    """Return the settings of the run."""
    from orrery.training.recipes import check_recipe

    optimizer = {"kind": "adamw", "rate": 0.01}
    training = {"steps": STEPS, "micro_batch": 3, "precision": "float32", "device": "cpu", "optimizer": optimizer}
    values = {
        "name": "resume-law",
        "model": {"family": "tiny"},
        "tokenizer": {"kind": "character"},
        "data": {"train": "none"},
        "batches": {"length": 9, "size": 4},
        "training": training,
        "checkpoints": {"every": 2, "keep": 2},
    }
    return check_recipe(values, "the law of resume")


def final_files(folder: Path) -> dict[str, bytes]:
    """Return the tensors of the last checkpoint, as bytes."""
    last = max((folder / "checkpoints").glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}
