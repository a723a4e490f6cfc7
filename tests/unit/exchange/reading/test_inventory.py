"""The models on a machine: named as every verb takes them, with what the heads of their files say."""

import json
from pathlib import Path

import pytest
from tests.parity.test_gguf import saved

from gguf_files import rewritten
from orrery.cli.program import run
from orrery.exchange.exporting.export import export_gguf
from orrery.exchange.reading.inventory import ListedModel, inventory
from orrery.exchange.reading.read import read
from orrery.language_model.load import load

WIDE = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 1, "num_attention_heads": 4}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders and files of many kinds, some of them damaged."""
    root = tmp_path_factory.mktemp("models")
    folder = saved(root / "deep" / "folder", "llama", **WIDE)
    plain = export_gguf(read(folder), root / "plain.gguf", "f32").path
    rewritten(plain, root / "deep" / "small.gguf", "Q4_K")
    (root / "cut.gguf").write_bytes(plain.read_bytes()[:1000])
    for number in (1, 3):
        (root / f"split-{number:05}-of-00003.gguf").write_bytes(b"GGUF")
    new = root / "unknown"
    new.mkdir()
    (new / "config.json").write_text('{"model_type": "a_new_one"}')
    (new / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    pickled = root / "pickled"
    pickled.mkdir()
    (pickled / "config.json").write_bytes((folder / "config.json").read_bytes())
    (pickled / "pytorch_model.bin").write_bytes(b"x")
    (root / "nothing").mkdir()
    for name in ("up", "again"):  # links that lead round in circles
        (root / "deep" / name).symlink_to(root)
    return root


def by_name(listed: list[ListedModel], root: Path) -> dict[str, ListedModel]:
    return {str(Path(one.name).relative_to(root)): one for one in listed}


def test_what_lies_below_a_path_is_found_with_its_facts(place: Path) -> None:
    listed = by_name(list(inventory([place])), place)
    names = ["cut.gguf", "deep/folder", "deep/small.gguf", "pickled", "plain.gguf", "split-00001-of-00003.gguf"]
    assert sorted(listed) == [*names, "split-00003-of-00003.gguf", "unknown"]
    plain, small, folder = listed["plain.gguf"], listed["deep/small.gguf"], listed["deep/folder"]
    assert plain.family == small.family == folder.family == "llama"
    assert plain.parameters == small.parameters == folder.parameters > 100_000
    assert (plain.numbers, small.numbers[0], folder.numbers) == (("F32",), "Q4_K", ("F32",))
    assert small.size < plain.size / 4
    assert plain.can == small.can == folder.can == ("write", "embed")
    assert {one.fault for one in (plain, small, folder)} == {""}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cut.gguf", "cut short"), ("split-00001-of-00003.gguf", "lacks 1 of 3 files"),
        ("unknown", "a_new_one"), ("pickled", "a pickle"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_says_why(name: str, words: str, place: Path) -> None:
    one = by_name(list(inventory([place])), place)[name]
    assert words in one.fault
    assert one.can == ()


def test_every_name_is_taken_by_a_verb(place: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs, hub = tmp_path / "runs", tmp_path / "hub"
    saved(runs / "first" / "final", "llama", **WIDE)
    commit = "0123456789" * 4
    saved(hub / "models--some--model" / "snapshots" / commit, "llama", **WIDE)
    monkeypatch.setenv("ORRERY_RUNS", str(runs))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("orrery.settings.OLLAMA_SERVICE", tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(hub))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(hub))
    names = [one.name for one in inventory()]
    assert names == ["first", f"hf:some/model@{commit}"]
    for name in (*names, str(place / "deep" / "small.gguf"), str(place / "deep" / "folder")):
        assert load(name, say=str).model.spec.width == 256


def test_the_verb_prints_a_table_or_objects(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", str(place)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "size", "family", "numbers", "stored", "as", "can"]
    assert any("small.gguf" in line and "Q4_K" in line and "write embed" in line for line in lines)
    assert run(["models", "--json", str(place)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == len(lines) - 1
    assert run(["models", str(place / "nothing")]) == 0
    assert "no models in" in capsys.readouterr().out
    assert run(["models", str(place / "absent")]) == 3
    assert "no such file or folder" in capsys.readouterr().err
