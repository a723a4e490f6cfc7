"""Who opens the folder of a run that several processes train, and who waits until it is open."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from orrery.checkpoints.succession import NEW
from orrery.runs import execute as executing
from orrery.training.folder import RunFolder
from orrery.training.loop import Outcome
from orrery.training.progress import Silent
from stand_ins import stand_in
from training_toy import toy_recipe


@pytest.mark.parametrize(("overwrite", "place"), [(False, "run"), (True, f"run/{NEW}")])
def test_another_process_waits_for_the_first_and_then_trains_in_its_folder(
    overwrite: bool, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[object] = []
    outcome = stand_in(Outcome)

    def waits(flag: bool) -> bool:
        did.append(("waits", flag))
        return flag

    def trains(parts: object, recipe: object, folder: RunFolder, ranks: object) -> Outcome:
        did.append(folder.path)
        return outcome

    def makes(recipe: object) -> str:
        did.append("makes")
        return "parts"

    monkeypatch.setattr(executing, "find_ranks", lambda device, degrees: SimpleNamespace(rank=1, any=waits))
    monkeypatch.setattr(executing, "make_parts", makes)
    monkeypatch.setattr(executing, "train", trains)
    assert outcome is executing.execute(toy_recipe(), tmp_path / "run", Silent(), resume=False, overwrite=overwrite)
    assert did == [("waits", False), "makes", tmp_path / place]
    assert not (tmp_path / "run").exists()  # the first process makes it
