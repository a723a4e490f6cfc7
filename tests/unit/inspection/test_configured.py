"""Edits of the configuration: the numbers are those of a model that was configured so, and its weights stay shared."""

from collections.abc import Mapping

import pytest
import torch

from orrery.errors import UsageError
from orrery.generation.generate import generate
from orrery.generation.row import Limits
from orrery.inspection.interventions.configured import attentions, rotations
from orrery.inspection.interventions.interventions import Interventions
from orrery.inspection.interventions.writing import EditedWriter
from orrery.inspection.trace import trace
from orrery.nn.spec import from_json, to_json
from tiny_models import TOKENIZER, randomised, smallest, tiny

FAMILIES = (
    "llama", "gpt2", "gemma2", "deepseek_v2", "deberta_v2", "gpt_oss", "modernbert", "ministral3", "albert", "bart",
    "t5", "diffllama", "smollm3", "olmo2",
)  # fmt: skip
FACTOR, BASE = 0.37, 321.0
ALL = ({"at": "*blocks.*", "op": "rescale", "scale": FACTOR}, {"at": "*positions.*", "op": "rebase", "value": BASE})


def configured_anew(model, factor=None, base=None):
    """Return a model built from a configuration with another scale and base, and its weights copied."""
    made = from_json(changed(to_json(model.spec), factor, base)).build(0).to(model.dtype).eval()
    made.load_state_dict(model.state_dict())
    return made


def changed(node, factor, base):
    if isinstance(node, list | tuple):
        return [changed(item, factor, base) for item in node]
    if not isinstance(node, Mapping):
        return node
    node = {name: changed(item, factor, base) for name, item in node.items()}
    if "scoring" in node and factor is not None:
        scale = node["scoring"]["scale"] or squares(node) ** -0.5
        node["scoring"] = {**node["scoring"], "scale": factor * scale}
    if node.get("kind") == "nn.positions.rotary.Rotary" and base is not None:
        node["base"] = base
    return node


def squares(node):
    if "widths" in node:
        return node["widths"]["plain"] + node["widths"]["rotated"]
    return node["head_width"] * (1 + len(node.get("terms", ())))


def texts(model):
    rng = torch.Generator().manual_seed(3)
    return [torch.randint(5, 40, (1, length), generator=rng) for length in (11, 9)[: len(model.spec.inputs)]]


def furthest(one, other):
    assert list(one) == list(other)
    return max(float((one[key].double() - other[key].double()).abs().nan_to_num(0.0).max()) for key in one)


def edits_for(model):
    return [one for one, parts in zip(ALL, (attentions, rotations), strict=True) if list(parts(model))]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_number_is_that_of_a_model_configured_so(family):
    model = smallest(family)
    inside = trace(model, *texts(model))
    edits = edits_for(model)
    edited = inside.edit(edits).run()
    assert furthest(edited, trace(configured_anew(model, FACTOR, BASE), *texts(model))) < 1e-12
    assert all(check.passed for check in edited.checks)
    for wrong in ((1.01 * FACTOR, BASE), (FACTOR, 1.01 * BASE))[: len(edits)]:
        assert furthest(edited, trace(configured_anew(model, *wrong), *texts(model))) > 1e-9
    assert furthest(trace(model, *texts(model)), inside) == 0.0


@pytest.mark.parametrize("op", range(2))
def test_each_acts_alone(op):
    model = smallest("llama")
    edited = trace(model, *texts(model)).edit([ALL[op]]).run()
    alone = configured_anew(model, *((FACTOR, None), (None, BASE))[op])
    assert furthest(edited, trace(alone, *texts(model))) < 1e-12


def test_json_and_python_hold_them():
    edits = Interventions.of(ALL)
    assert Interventions.from_json(edits.to_json()) == edits
    names = {"inside": trace(smallest("llama"), *texts(smallest("llama")))}
    exec(edits.python_source(), names)
    assert furthest(names["edited"], names["inside"].edit(ALL).run()) == 0.0


def test_one_layer_is_named_and_more_edits_act_behind():
    model = smallest("llama")
    inside = trace(model, *texts(model))
    one = inside.edit().rescale("blocks.1.attention", FACTOR).run()
    assert torch.equal(one["blocks.0.resid_post"], inside["blocks.0.resid_post"])
    assert not torch.equal(one["blocks.1.attention.scores"], inside["blocks.1.attention.scores"])
    seen = inside["blocks.1.attention.scores"].isfinite()
    scores = one["blocks.1.attention.scores"][seen] - FACTOR * inside["blocks.1.attention.scores"][seen]
    assert float(scores.abs().max()) < 1e-12
    twice = one.edit().rescale("blocks.*.attention", 2.0).zero("blocks.1.attention.mixed", head=0).run()
    both = [{**ALL[0], "at": "blocks.1.attention"}, {**ALL[0], "scale": 2.0}]
    again = inside.edit([*both, {"at": "blocks.1.attention.mixed", "op": "zero", "head": 0}]).run()
    assert furthest(twice, again) == 0.0
    assert len(twice.interventions.edits) == 3


def test_weights_are_shared_and_the_given_model_stays():
    model = randomised(smallest("gemma2"))
    before = {name: part.scale for name, part in attentions(model)}
    other = Interventions.of(ALL).model(model)
    held = dict(other.named_parameters(remove_duplicate=False))
    assert all(held[name] is one for name, one in model.named_parameters(remove_duplicate=False))
    assert {name: part.scale for name, part in attentions(model)} == before
    assert {name: part.scale / FACTOR for name, part in attentions(other)} == pytest.approx(before)
    assert {part.base for _, part in rotations(other)} == {BASE}
    assert Interventions.of([{"at": "logits", "op": "zero"}]).model(model) is model


def test_a_writer_writes_as_a_model_configured_so():
    model, limits = tiny("llama"), Limits(12, 40)
    edits = Interventions.of(ALL)
    written = generate(EditedWriter(model, edits), [[5, 9, 7, 22]], TOKENIZER, limits)
    plain = generate(configured_anew(model, FACTOR, BASE), [[5, 9, 7, 22]], TOKENIZER, limits)
    assert written[0].ids == plain[0].ids != generate(model, [[5, 9, 7, 22]], TOKENIZER, limits)[0].ids


def test_what_is_not_there_is_refused():
    for family, edit, words in (
        ("llama", {**ALL[0], "at": "blocks.9.attention"}, "blocks.0.attention, blocks.1.attention"),
        ("gpt2", ALL[1], "no rotary positions in this model"),
        ("mamba", ALL[0], "no attention with a scale in this model"),
    ):
        model = smallest(family)
        with pytest.raises(UsageError, match="reaches nothing") as told:
            trace(model, *texts(model)).edit([edit]).run()
        assert words in told.value.hint
    shared = smallest("albert")
    with pytest.raises(UsageError, match="one depth of a block that stands at"):
        trace(shared, *texts(shared)).edit([{**ALL[0], "at": "blocks.0.attention"}]).run()
