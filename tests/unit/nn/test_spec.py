"""Specs: JSON there and back, and nothing from outside the package."""

import dataclasses
import json

import pytest

from orrery.errors import ModelFileError
from orrery.families import load_family
from orrery.laws.models import CONFIGS
from orrery.nn.masks import Causal, Window
from orrery.nn.norms import LayerNorm, RMSNorm
from orrery.nn.spec import from_json, to_json, traverse


@pytest.mark.parametrize("family", CONFIGS)
def test_a_whole_model_survives_json(family):
    spec = load_family(family).spec(CONFIGS[family])
    assert from_json(json.loads(json.dumps(to_json(spec)))) == spec


def test_masks_survive_json_too():
    mask = Causal() & Window(length=5)
    assert from_json(to_json(mask)) == mask


def test_kind_is_the_place_in_the_package():
    assert to_json(LayerNorm.Spec(eps=0.0)) == {
        "kind": "nn.norms.LayerNorm",
        "eps": 0.0,
        "bias": True,
        "gain": True,
        "offset": 0.0,
    }


def test_a_spec_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RMSNorm.Spec().eps = 1.0


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"kind": "nn.norms.Missing"}, "no such kind"),
        ({"kind": "nn.missing.Norm"}, "no such kind"),
        ({"kind": "os.system"}, "not a kind of this package"),
        ({"kind": "nn.os.system"}, "not a kind of this package"),
        ({"kind": "checkpoints.rules.Rule"}, "not a kind of this package"),
        ({"kind": "nn..norms.LayerNorm"}, "not a kind of this package"),
        ({"kind": 3}, "not a kind of this package"),
        ({"kind": "nn.norms.Tensor"}, "not a spec"),
        ({"kind": "nn.stack.UsageError"}, "not a spec"),
        ({"kind": "nn.norms.LayerNorm", "epsilon": 1}, "no field 'epsilon'"),
        ({"kind": "nn.masks.Window"}, "length"),
    ],
    ids=str,
)
def test_refuses_by_name_and_place(tree, message):
    with pytest.raises(ModelFileError, match=message) as caught:
        from_json({"kind": "nn.masks.Both", "first": tree, "second": {"kind": "nn.masks.Causal"}})
    assert "spec.first" in caught.value.message
    assert caught.value.hint


def test_traverse_names_every_node():
    spec = load_family("llama").spec(CONFIGS["llama"])
    by_path = dict(traverse(spec))
    assert by_path[""] is spec
    assert by_path["stack.blocks.1.residuals.attention.branch.source"].kind == "nn.attention.sources.SelfSource"
    assert by_path["stack.masks.causal"] == Causal()
