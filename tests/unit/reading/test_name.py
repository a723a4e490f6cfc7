from pathlib import Path

import pytest

from orrery.reading.read import name_of


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("models/tiny", "tiny"),
        ("runs/countries/final", "countries"),
        ("runs/countries/checkpoints/step-000100", "countries-step-000100"),
        ("hub/models--org--name/snapshots/0123abc", "org/name"),
    ],
)
def test_a_model_is_called_by_its_run_its_repository_or_its_folder(folder, name):
    assert name_of(Path(folder)) == name
