"""A file that several processes write has the bytes of one; what one of them cannot write makes no checkpoint."""

from pathlib import Path

import pytest
import torch

from orrery.checkpoints.manifest import file_sha256
from orrery.checkpoints.store import Checkpoint
from orrery.checkpoints.tensors import write_tensors
from orrery.errors import MachineError
from orrery.training.distributed import Alone
from orrery.training.parallel.saving import lead, save_together

TENSORS = {
    "rows": torch.arange(12.0).reshape(4, 3).t(),
    "half": torch.arange(5).to(torch.bfloat16),
    "step": torch.tensor(3.0),
    "none": torch.zeros(0, 4),
}
CHECKPOINT = Checkpoint(3, TENSORS, {}, {}, {})


class Told(Alone):
    """One of two processes, whose other one is played: what the first says, and whether a process has failed."""

    def __init__(self, rank: int, *said: str, failed: bool = False) -> None:
        self.rank, self.said, self.failed, self.own = rank, list(said), failed, []

    def told(self, text: str) -> str:
        self.own.append(text)
        return self.said.pop(0) if self.rank else text

    def any(self, flag: bool) -> bool:
        return flag or self.failed


def test_the_bytes_are_those_of_one_process(tmp_path: Path) -> None:
    ranks = Told(0)
    digest = lead(ranks, tmp_path / "many", TENSORS)
    assert digest == write_tensors(tmp_path / "one", TENSORS) == file_sha256(tmp_path / "many")
    assert ranks.own == [str(tmp_path / "many")]


def test_the_others_hear_that_the_first_could_not_save() -> None:
    def full(write: object) -> None:
        raise MachineError("the disk is full", "make room")

    ranks = Told(0)
    with pytest.raises(MachineError, match="the disk is full"):
        save_together(ranks, CHECKPOINT, full)
    assert ranks.own == ["\nthe disk is full"]
    with pytest.raises(MachineError, match="nothing was saved: the disk is full"):
        save_together(Told(1, *ranks.own), CHECKPOINT, full)
    save_together(Told(1, ""), CHECKPOINT, full)  # all is saved


def test_the_first_hears_that_another_could_not_write(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="another process could not write its part of"):
        lead(Told(0, failed=True), tmp_path / "many", TENSORS)
    missing = Told(1, str(tmp_path / "elsewhere" / "model.safetensors"), "\nanother process could not write")
    with pytest.raises(MachineError, match=r"nothing was saved: .*No such file"):
        save_together(missing, CHECKPOINT, lambda write: None)
