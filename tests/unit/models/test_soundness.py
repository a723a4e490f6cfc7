"""A tree of specs is a model only if its numbers can be meant."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import MachineError, ModelFileError, OrreryError
from orrery.exchange.reading.architecture import own
from orrery.families import load_family, names
from orrery.models.limits import check_memory
from orrery.models.soundness import check_whole
from orrery.nn.spec import to_json
from orrery.recipes.config import ModelSettings
from orrery.runs.building import read_spec

TREE = to_json(load_family("gpt2").spec(load_family("gpt2").TINY))


@pytest.mark.parametrize("name", names())
def test_every_family_is_sound(name: str) -> None:
    family = load_family(name)
    check_whole(family.spec(family.TINY))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of every scalar of a tree."""
    if isinstance(value, dict):
        return [place for key, item in value.items() for place in places(item, (*path, key))]
    if isinstance(value, list):
        return [place for key, item in enumerate(value) for place in places(item, (*path, key))]
    return [path]


PLACES = places(TREE)
WRONG = st.sampled_from(
    [0, -1, 2**63, 10**30, 1.5, -0.5, 1e308, True, "", "x", None, [], [1], {}, {"kind": "nn.norms.RMSNorm"}]
)


@given(st.sampled_from(PLACES), WRONG)
def test_a_spec_with_any_value_changed_is_built_or_refused(tmp_path_factory, place, value) -> None:
    tree = json.loads(json.dumps(TREE))
    inner = tree
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    file = tmp_path_factory.mktemp("spec") / "spec.json"
    file.write_text(json.dumps(tree))
    try:
        read_spec(ModelSettings(spec=file), {})
    except OrreryError:
        return


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "is missing"),
        ("", "is empty"),
        ("\x00\xff", "not JSON"),
        ("[]", "no JSON object"),
        ("[" * 100_000, "not JSON"),
        ('{"kind": ' * 300 + "1" + "}" * 300, "describes no model"),
        ("{}", "not a whole model"),
    ],
)
def test_a_spec_file_that_is_none(content: str | None, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    if content is not None:
        file.write_text(content, encoding="latin-1")
    for reading in (lambda: own(file), lambda: read_spec(ModelSettings(spec=file), {})):
        with pytest.raises(ModelFileError, match=r"spec\.json") as caught:
            reading()
        assert reason in caught.value.message or "not a kind" in caught.value.message


def test_a_folder_is_no_spec_file(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no regular file"):
        read_spec(ModelSettings(spec=tmp_path), {})


@pytest.mark.parametrize(
    ("family", "config", "reason"),
    [
        ("gpt2", {"n_layer": 10**9}, "n_layer"),
        ("llama", {"num_hidden_layers": 0}, "no blocks|num_hidden_layers = .0. is not more than zero"),
        ("llama", {"head_dim": 0}, "head_"),
        ("gpt2", {"attn_pdrop": 2.0}, "dropout"),
        ("gpt2", {"n_positions": 0}, "is 0"),
        ("llama", {"vocab_size": -1}, "vocab_size"),
    ],
)
def test_a_configuration_that_describes_no_model(family: str, config: dict[str, Any], reason: str) -> None:
    settings = ModelSettings(family=family, config={**load_family(family).TINY, **config})
    with pytest.raises(ModelFileError, match=reason):
        read_spec(settings, settings.config)


def test_a_model_beyond_this_machine_is_refused_before_it_is_built() -> None:
    config = {**load_family("gpt2").TINY, "n_layer": 1000, "n_embd": 65536, "n_head": 1}
    settings = ModelSettings(family="gpt2", config=config)
    with pytest.raises(MachineError, match="parameters"):
        read_spec(settings, config)


def test_the_memory_counts_every_copy() -> None:
    spec = load_family("gpt2").spec(load_family("gpt2").TINY)
    check_memory(spec, 2, "it")
    with pytest.raises(MachineError, match="this machine has"):
        check_memory(replace(spec, stack=spec.stack), 10**12, "it")
