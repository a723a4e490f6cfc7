"""Interventions: data that JSON holds, carried out on the named part alone, refused by name where they do not fit."""

import json

import pytest
import torch

from orrery.errors import DataError, UsageError
from orrery.inspection.interventions.intervention import OPERATIONS, Intervention
from orrery.inspection.interventions.interventions import MOST, Interventions
from orrery.inspection.trace import trace
from tiny_models import smallest, tiny

RNG = torch.Generator().manual_seed(0)
IDS, OTHER = torch.randint(0, 61, (2, 1, 9), generator=RNG)
LONGER = torch.randint(0, 61, (1, 12), generator=RNG)
MIXED, SCORES, STREAM = "blocks.1.attention.mixed", "blocks.1.attention.scores", "blocks.0.resid_post"


@pytest.fixture(scope="module")
def model():
    return tiny("gpt2")


@pytest.fixture(scope="module")
def inside(model):
    return trace(model, IDS)


@pytest.fixture(scope="module")
def other(model):
    return trace(model, OTHER)


def expected(before, places, value):
    after = before.clone()
    after[places] = value
    return after


EVERY = [
    {"at": MIXED, "op": "zero", "head": [1, -1], "position": [0, 3]},
    {"at": STREAM, "op": "mean", "from": "other"},
    {"at": "blocks.*.feed_forward.hidden", "op": "scale", "channel": 5, "scale": 0.5},
    {"at": STREAM, "op": "add", "position": -1, "vector": [0.5] * 32, "scale": 4.0},
    {"at": "blocks.0.feed_forward.hidden", "op": "set", "channel": [1, 2], "value": -1.5},
    {"at": STREAM, "op": "patch", "position": [1, 2], "from": "other", "from_position": [3, 4]},
    {"at": SCORES, "op": "mask", "position": 5, "head": 2, "key": [0, 1]},
    {"at": "ids", "op": "replace", "position": 2, "token": 7},
    {"at": "blocks.1.attention", "op": "rescale", "scale": 0.5},
]


def test_json_holds_every_operation_and_gives_it_back(inside, other):
    assert {one["op"] for one in EVERY} == set(OPERATIONS) - {"rebase"}  # see test_configured: this model turns nothing
    edits = inside.edit(EVERY, {"other": other})
    assert edits.plain() == EVERY
    assert Interventions.from_json(edits.to_json(), {"other": other}) == Interventions.of(EVERY, {"other": other})
    assert json.loads(edits.to_json()) == EVERY
    assert not torch.equal(edits.run().logits, inside.logits)


def test_the_lines_of_python_do_the_same(model, inside, other):
    edits = inside.edit(EVERY, {"other": other})
    names = {"inside": inside, "other": other}
    exec(edits.python_source(), names)
    assert torch.equal(names["edited"].logits, edits.run().logits)
    names = {"trace": trace, "model": model, "IDS": IDS, "t2": other}
    exec(edits.python_source("trace(model, IDS)", {"other": "t2"}), names)
    assert torch.equal(names["edited"].logits, edits.run().logits)
    assert names["edited"].interventions.plain() == EVERY


@pytest.mark.parametrize(
    ("edit", "key", "places", "value"),
    [
        ({"op": "zero", "head": 1}, MIXED, (slice(None), 1), 0),
        ({"op": "zero", "head": [0, 2], "position": -2}, MIXED, (0, [0, 2], -2), 0),
        ({"op": "zero", "position": 3}, "blocks.1.attention.k", (0, slice(None), 3), 0),
        ({"op": "set", "channel": [4, 9], "value": 2.5}, STREAM, (0, slice(None), [4, 9]), 2.5),
        ({"op": "zero", "head": 1, "position": 4, "key": 2}, "blocks.1.attention.pattern", (0, 1, 4, 2), 0),
    ],
)
def test_the_named_part_changes_and_no_other_bit(inside, edit, key, places, value):
    edited = inside.edit([{"at": key, **edit}]).run()
    assert torch.equal(edited[key], expected(inside[key], places, value))


def test_what_each_operation_makes(inside, other):
    def of(key, **fields):
        return inside.edit([{"at": key, **fields}], {"other": other, "v": vector}).run()[key]

    vector = torch.randn(32, dtype=torch.float64)
    x_BLD, y_BLD = inside[STREAM], other[STREAM]
    assert torch.equal(of(STREAM, op="scale", scale=-3), -3 * x_BLD)
    assert torch.equal(of(STREAM, op="mean"), x_BLD.mean(1, keepdim=True).expand_as(x_BLD))
    assert torch.equal(of(STREAM, op="mean", **{"from": "other"}), y_BLD.mean(1, keepdim=True).expand_as(x_BLD))
    assert torch.equal(of(STREAM, op="add", vector=vector, scale=2), x_BLD + 2 * vector)
    assert torch.equal(of(STREAM, op="add", vector="v"), x_BLD + vector)
    steering = {"op": "add", "from": "other", "scale": -0.5}
    assert torch.equal(of(STREAM, **steering, from_position=-2), x_BLD - 0.5 * other[STREAM][:, -2:-1])
    assert torch.equal(of(STREAM, **steering), x_BLD - 0.5 * other[STREAM])
    steered = of(STREAM, op="add", vector=vector.tolist(), position=[1])
    assert torch.equal(steered, expected(x_BLD, (0, 1), x_BLD[0, 1] + vector))
    assert torch.equal(of(STREAM, op="patch", position=2, **{"from": "other"}), expected(x_BLD, (0, 2), y_BLD[0, 2]))
    moved = of(STREAM, op="patch", position=[2, -1], **{"from": "other", "from_position": [0, 3]})
    assert torch.equal(moved, expected(x_BLD, (0, [2, -1]), y_BLD[0, [0, 3]]))


def test_texts_of_other_lengths_can_be_patched_place_by_place(model, inside):
    longer = trace(model, LONGER)
    edited = inside.edit(sources={"B": longer}).patch(STREAM, "B", position=-1).run()
    assert torch.equal(edited[STREAM][0, -1], longer[STREAM][0, -1])
    with pytest.raises(UsageError, match=r"has 12 positions of .*, and this run has 9"):
        inside.edit(sources={"B": longer}).patch(STREAM, "B").run()


def test_edits_of_one_tensor_act_in_the_order_of_the_list(inside):
    both = inside.edit().set(STREAM, 2.0).scale("blocks.0.*post", 3.0).add(STREAM, [1.0] * 32).run()
    assert bool((both[STREAM] == 7).all())
    turned = inside.edit().scale("blocks.0.*post", 3.0).set(STREAM, 2.0).run()
    assert bool((turned[STREAM] == 2).all())


def test_a_trace_with_edits_of_its_own_keeps_them(model):
    halved = trace(model, IDS, edit={STREAM: lambda x, key: x / 2})
    zeroed = halved.edit().zero("blocks.1.feed_forward.added").run()
    assert torch.equal(zeroed[STREAM], halved[STREAM])
    twice = zeroed.edit().scale(STREAM, 2.0)
    assert len(twice.edits) == 2
    torch.testing.assert_close(twice.run()[STREAM], trace(model, IDS)[STREAM], rtol=0, atol=1e-12)
    assert twice.without(1).edits == zeroed.interventions.edits


def test_hidden_scores_stay_hidden(inside):
    edited = inside.edit().zero(SCORES).run()
    pattern_BHLS = edited["blocks.1.attention.pattern"]
    assert bool((pattern_BHLS.triu(1) == 0).all())
    assert torch.allclose(pattern_BHLS[0, 0, 4, :5], torch.full((5,), 0.2, dtype=torch.float64))


def test_a_replaced_token_is_read(model, inside):
    changed = IDS.clone()
    changed[0, [2, -1]] = 11
    edited = inside.edit().replace([2, -1], 11).run()
    assert torch.equal(edited.logits, trace(model, changed).logits)
    assert torch.equal(edited.ids, changed)


def test_an_encoder_decoder_is_edited_on_both_sides():
    model = smallest("t5")
    inside = trace(model, IDS, OTHER)
    source = next(iter(model.spec.inputs))
    edited = inside.edit().replace(1, 9, at=source).zero("encoder.blocks.0.attention.mixed", head=0).run()
    changed = IDS.clone()
    changed[0, 1] = 9

    def nothing(value, key):
        return expected(value, (slice(None), 0), 0)

    assert torch.equal(
        edited.logits, trace(model, changed, OTHER, edit={"encoder.blocks.0.attention.mixed": nothing}).logits
    )
    assert torch.equal(edited.ids, OTHER)


def test_a_dead_key_is_named_with_its_neighbours(inside):
    with pytest.raises(UsageError, match=r"nothing is called 'blocks\.1\.attention\.mixt'") as error:
        inside.edit().zero("blocks.1.attention.mixt").run()
    assert MIXED in error.value.hint


WRONG = [
    ({"at": STREAM, "op": "zeroed"}, "no operation 'zeroed'", "'zero'"),
    ({"at": STREAM, "op": "zero", "heads": 1}, "no field 'heads'", "'head'"),
    ({"op": "zero"}, "without 'at'", ""),
    ({"at": STREAM}, "without 'op'", ""),
    ({"at": "", "op": "zero"}, "is no name", ""),
    ({"at": STREAM, "op": "scale"}, "scale at .* has no scale", ""),
    ({"at": STREAM, "op": "patch"}, "has no from", ""),
    ({"at": "ids", "op": "replace", "token": 3}, "has no position", ""),
    ({"at": "ids", "op": "replace", "position": "all", "token": 3}, "has no position", "by number"),
    ({"at": STREAM, "op": "zero", "value": 1.0}, "zero at .* takes no value", "position, head, channel, key"),
    ({"at": STREAM, "op": "scale", "scale": float("nan")}, "no finite number", ""),
    ({"at": STREAM, "op": "scale", "scale": True}, "no finite number", ""),
    ({"at": STREAM, "op": "zero", "position": 1.5}, "names no places", "all"),
    ({"at": STREAM, "op": "zero", "position": "last"}, "names no places", "all"),
    ({"at": STREAM, "op": "zero", "position": []}, "names no places", ""),
    ({"at": STREAM, "op": "zero", "head": "all"}, "names no places", ""),
    ({"at": STREAM, "op": "add", "vector": []}, "one list of numbers", ""),
    ({"at": STREAM, "op": "add"}, "neither a vector nor another trace", "from_position"),
    ({"at": STREAM, "op": "add", "vector": [1.0], "from": "B"}, "a vector and another trace", "one of them"),
    ({"at": STREAM, "op": "add", "from": "B", "from_position": [1, 2]}, "takes one from_position", ""),
    ({"at": STREAM, "op": "add", "vector": [1.0, float("inf")]}, "no finite number", ""),
    ({"at": MIXED, "op": "zero", "head": 1, "channel": 1}, "heads and channels", ""),
    ({"at": "ids", "op": "replace", "position": 1, "token": -1}, "no id", ""),
    ({"at": STREAM, "op": "patch", "from": "B", "position": [1, 2], "from_position": 3}, "1 positions .* for 2", ""),
    ({"at": "positions.*", "op": "rebase", "value": 1}, "a base of 1 turns no positions", "above 1"),
    ({"at": "positions.*", "op": "rebase", "scale": 2}, "has no value", "base"),
    ({"at": "blocks.*", "op": "rescale", "scale": 2, "head": 1}, "takes no head", "scale"),
    (7, "an object with fields", ""),
]


@pytest.mark.parametrize(("plain", "says", "hint"), WRONG)
def test_what_no_model_can_carry_out_is_refused_with_its_number(plain, says, hint):
    with pytest.raises(UsageError, match=f"edit 1: .*{says}") as error:
        Interventions.of([EVERY[0], plain])
    assert hint in error.value.hint


@pytest.mark.parametrize("plain", ["zero", {"at": STREAM}, 3])
def test_what_is_no_list_is_refused(plain):
    with pytest.raises(UsageError, match="a list of objects"):
        Interventions.of(plain)
    with pytest.raises(UsageError, match="no JSON"):
        Interventions.from_json("[{")


MISFITS = [
    ({"at": MIXED, "op": "zero", "head": 4}, "has 4 heads, and head 4 is named", "0 to 3"),
    ({"at": STREAM, "op": "zero", "position": 9}, "has 9 positions, and position 9 is named", "0 to 8"),
    ({"at": STREAM, "op": "zero", "position": -10}, "has 9 positions, and position -10", ""),
    ({"at": STREAM, "op": "zero", "channel": 32}, "has 32 channels", ""),
    ({"at": STREAM, "op": "zero", "head": 0}, "has no heads to choose from", "leave head out"),
    ({"at": STREAM, "op": "zero", "key": 0}, "has no keys to choose from", ""),
    ({"at": SCORES, "op": "zero", "channel": 0}, "has no channels to choose from", ""),
    ({"at": SCORES, "op": "mean"}, "has no mean over positions", ""),
    ({"at": SCORES, "op": "add", "vector": [0.0] * 9}, "has no channels that a vector", ""),
    ({"at": STREAM, "op": "add", "vector": [1.0] * 31}, "a vector of 31 numbers .* 32 channels", ""),
    ({"at": STREAM, "op": "add", "vector": "w"}, "takes from 'w', which is not given", "there is: B"),
    ({"at": STREAM, "op": "add", "vector": "B"}, "'B' is no vector", ""),
    ({"at": STREAM, "op": "add", "from": "D", "from_position": 99}, "position 99 .* is added from 'D'", "0 to"),
    ({"at": STREAM, "op": "patch", "from": "A"}, "takes from 'A', which is not given", ""),
    ({"at": STREAM, "op": "patch", "from": "v"}, "'v' is a tensor", ""),
    ({"at": STREAM, "op": "patch", "from": "B"}, "'B' has not kept", "keep="),
    ({"at": STREAM, "op": "patch", "from": "C"}, r"\[1, 9, 32\], and \[1, 9, 24\] in 'C'", ""),
    ({"at": STREAM, "op": "patch", "from": "D", "position": 1, "from_position": 9}, "position 9 .* 9 positions", ""),
    ({"at": "blocks.1.attention.pattern", "op": "mask", "key": 0}, "masked at scores", SCORES),
    ({"at": SCORES, "op": "mask", "position": 0, "key": 0}, "query 0 of head 0 would see nothing", ""),
    ({"at": "input", "op": "replace", "position": 0, "token": 1}, "does not read", "ids"),
    ({"at": "ids", "op": "replace", "position": 9, "token": 1}, "token 9 of 9", "0 to 8"),
]  # fmt: skip


@pytest.mark.parametrize(("plain", "says", "hint"), MISFITS)
def test_what_does_not_fit_the_run_is_refused(model, inside, plain, says, hint):
    sources = {
        "B": trace(model, IDS, keep=[MIXED]),
        "C": {STREAM: torch.zeros(1, 9, 24)},
        "D": inside,
        "v": torch.zeros(3, 3),
    }
    with pytest.raises(UsageError, match=says) as error:
        inside.edit([plain], sources).run()
    assert hint in error.value.hint


def test_limits(inside):
    with pytest.raises(UsageError, match=f"65 edits are more than {MOST}"):
        Interventions.of([EVERY[0]] * 65)
    with pytest.raises(DataError, match="vocabulary"):
        inside.edit().replace(0, 10_000).run()
    with pytest.raises(UsageError, match="belong to no text"):
        Interventions.of([EVERY[0]]).run()
    for number in (1, -1):
        with pytest.raises(UsageError, match=f"there is no edit {number}") as error:
            inside.edit().zero(STREAM).without(number)
        assert error.value.hint == "there are 1, counted from 0"
    with pytest.raises(UsageError, match="no field 'heads'"):
        Intervention.of({"at": MIXED, "op": "zero", "heads": 1})
    vision = smallest("vit")
    replaced = Interventions.of([{"at": next(iter(vision.spec.inputs)), "op": "replace", "position": 0, "token": 0}])
    with pytest.raises(UsageError, match="are no tokens"):
        replaced.read(vision, [torch.zeros(1)])
