"""No value of any key ends in an error of Python's or torch's: a family describes a model that runs, or refuses."""

import pytest
import torch

from orrery import families
from orrery.errors import ModelFileError, OrreryError
from orrery.families import load_family, names
from orrery.families._keys import key_of

IDS = torch.arange(2, 12).reshape(2, 5)


def answer(spec):
    """Return what a model says about two rows."""
    model = spec.build(0).eval()
    with torch.no_grad():
        if spec.vocabulary is None:
            return sight(model, spec)
        if spec.reads_source:
            return model.logits(IDS, IDS)
        return model.logits(IDS) if spec.head_names else model.hidden(IDS)


def sight(model, spec):
    """Return what a model says about two grey images."""
    images = torch.full((2, *spec.inputs["images"].shape), 0.5)
    return model.logits(images, IDS) if spec.writes else model.hidden(images)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.each_family
@pytest.mark.parametrize("name", names())
def test_every_key_with_senseless_values(name):
    family = load_family(name)
    for key in family.DEFAULTS:
        for value in (None, -1, 0, "x"):
            try:
                logits = answer(family.spec({**family.TINY, key: value}))
            except OrreryError:
                continue
            assert logits.isfinite().all(), f"{key} = {value!r}"


@pytest.mark.parametrize(
    ("name", "key", "value", "says"),
    [
        ("gptj", "rotary_dim", None, "rotary_dim = 'None' is null, not a number"),
        ("llama", "num_hidden_layers", -1, "num_hidden_layers = '-1' is less than zero"),
        ("llama", "num_key_value_heads", "2", "num_key_value_heads = '2' is a text, not a number"),
        ("gpt_neox", "rotary_emb_base", 0, "rotary_emb_base = '0' is not more than zero"),
        ("deberta", "pos_att_type", 1, "a number, not a text or a list"),
        ("deepseek_v2", "n_group", None, "n_group"),
    ],
)
def test_it_is_refused_by_name(name, key, value, says):
    family = load_family(name)
    with pytest.raises(ModelFileError, match=says):
        family.spec({**family.TINY, key: value})


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("llama", "tie_word_embeddings", None),
        ("gemma2", "final_logit_softcapping", None),
        ("mistral", "head_dim", None),
    ],
)
def test_null_where_it_has_a_meaning(name, key, value):
    family = load_family(name)
    answer(family.spec({**family.TINY, key: value}))


@pytest.mark.each_family
@pytest.mark.parametrize("name", names())
def test_every_key_that_is_null_by_default_has_its_kinds_told(name):
    said = {name: key_of(default) for name, default in load_family(name).DEFAULTS.items()}
    assert [name for name, key in said.items() if key.default is None and not key.kinds] == []


@pytest.mark.parametrize("key", ["num_hidden_layers", "num_key_value_heads", "head_dim"])
def test_what_counts_is_whole_also_where_its_default_is_null(key):
    family = load_family("llama")
    with pytest.raises(ModelFileError, match=rf"{key} = '2\.5' is not a whole number"):
        family.spec({**family.TINY, key: 2.5})
    assert family.spec({**family.TINY, key: 2.0}) == family.spec({**family.TINY, key: 2})


FROM_OUTSIDE = """
from orrery.families import llama
from orrery.families._config import Config
ARCHITECTURE, WEIGHTS, TINY = "OutsideForCausalLM", llama.WEIGHTS, llama.TINY
DEFAULTS = {**llama.DEFAULTS, "wheel_teeth": None}
TEETH = []

def spec(config):
    c = Config("outside", config, DEFAULTS)
    TEETH.append(c["wheel_teeth"])
    return llama.spec({key: value for key, value in config.items() if key != "wheel_teeth"})
"""


def test_a_family_from_outside_may_have_null_for_any_kind(tmp_path, monkeypatch):
    (tmp_path / "outside.py").write_text(FROM_OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(families._registry, "_registered", {})
    families.register("outside")
    family = load_family("outside")
    values = [None, [8, 60, 12], "many", {"inner": 8}, -1, 0, True]
    for value in values:
        family.spec({**family.TINY, "wheel_teeth": value})
    assert values == family.TEETH
    with pytest.raises(ModelFileError, match=r"outside: head_dim = '\[8\]' is a list, not a number"):
        family.spec({**family.TINY, "head_dim": [8]})
