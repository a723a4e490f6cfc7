from pathlib import Path

import pytest

from orrery.exchange.reading.stored import name_of


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


def test_a_link_and_a_folder_one_is_in_have_the_names_they_are_called_by(tmp_path, monkeypatch):
    (tmp_path / "run-7" / "final").mkdir(parents=True)
    (tmp_path / "best").symlink_to(tmp_path / "run-7")
    assert name_of(tmp_path / "best") == name_of(tmp_path / "best" / "final") == "best"
    monkeypatch.chdir(tmp_path / "run-7")
    assert [name_of(Path(path)) for path in (".", "../best", "final", "../run-7/.")] == [
        "run-7",
        "best",
        "run-7",
        "run-7",
    ]
