"""An edit of a gate acts at its step, and every later step sees it."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.inspection.recorder import Recorder
from orrery.inspection.trace import trace
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.context import Execution
from tiny_models import randomised

IDS = torch.randint(61, (2, 9), generator=torch.Generator().manual_seed(1))
KERNELS = pytest.mark.parametrize("kernel", [eager, sdpa], ids=["steps", "engine"])
GATES = {"lstm": ["input_gate", "forget_gate", "candidate", "output_gate", "cell"]}
GATES |= {"gru": ["reset_gate", "update_gate", "candidate"]}
EVERY = pytest.mark.parametrize(
    ("family", "gate"), [(family, gate) for family, gates in GATES.items() for gate in gates]
)


def built(family):
    rules = load_family(family)
    return randomised(rules.spec(rules.TINY).build(0).double().eval())


def looked(model, edit, kernel=sdpa, ids=IDS, **call):
    """Return all values under an edit; an encoder-decoder reads the same tokens."""
    recorder = Recorder(edit=edit)
    with torch.no_grad():
        model.logits(*[ids] * (2 if hasattr(model, "target") else 1), kernel=kernel, taps=recorder, **call)
    return recorder.values


def at(place, factor):
    """Return the edit that multiplies a gate at one token."""

    def edit(value, key):
        value = value.clone()
        value[..., place, :] *= factor
        return value

    return edit


def by_hand(model, gate, place, factor):
    """Return the logits of a decoder whose first layer steps with one gate multiplied at one token."""
    recurrence = model.stack.blocks[0].recurrence.branch
    plain = recurrence.step

    def forward(x_BLD, ctx):
        state, said = recurrence.begin(x_BLD), []
        for t, x_BD in enumerate(x_BLD.unbind(1)):

            def change(name, value, t=t):
                return value * factor if (name, t) == (gate, place) else value

            y_BD, state = plain(x_BD, state, change)
            said.append(y_BD)
        return torch.stack(said, 1)

    recurrence.forward = forward
    with torch.no_grad():
        logits = model.logits(IDS)
    del recurrence.forward
    return logits


@KERNELS
@EVERY
def test_an_edit_at_one_token_is_that_of_the_recurrence_by_hand(family, gate, kernel):
    model = built(family)
    key = f"blocks.0.recurrence.{gate}"
    plain, traced = looked(model, {}, kernel), looked(model, {key: at(4, -0.5)}, kernel)
    torch.testing.assert_close(traced["logits"], by_hand(model, gate, 4, -0.5), rtol=0, atol=1e-12)
    torch.testing.assert_close(traced[key][:, 4], -0.5 * plain[key][:, 4], rtol=0, atol=1e-12)
    assert torch.equal(traced[key][:, :4], plain[key][:, :4])
    later = [
        (traced[name] - plain[name])[:, 5:].abs().max() for name in traced if name.startswith("blocks.0.recurrence.")
    ]
    assert min(later) > 1e-6  # every gate of every later token has heard of it


@EVERY
def test_an_edit_that_changes_nothing_changes_nothing(family, gate):
    model = built(family)
    traced = trace(model, IDS, edit={f"blocks.*.recurrence.{gate}": lambda value, key: value})
    torch.testing.assert_close(traced.logits, trace(model, IDS).logits, rtol=0, atol=1e-12)
    assert all(check.passed for check in traced.checks)


def test_an_lstm_that_forgets_everything_has_the_cells_of_each_token_alone():
    traced = trace(built("lstm"), IDS, edit={"blocks.*.recurrence.forget_gate": lambda value, key: value * 0})
    for depth in range(2):
        cell, gate, candidate = (traced[f"blocks.{depth}.recurrence.{n}"] for n in ("cell", "input_gate", "candidate"))
        assert traced[f"blocks.{depth}.recurrence.forget_gate"].abs().max() == 0
        torch.testing.assert_close(cell, gate * candidate, rtol=0, atol=1e-15)
    assert not any("eager" in note for note in traced.notes)


def test_an_edit_sees_the_row_up_to_its_step_as_it_is():
    """The gate of each token becomes the mean of the tokens so far: what it is given must be theirs."""

    def mean_so_far(value, key):
        assert value.shape == (2, 9, 16)
        assert key == "blocks.0.recurrence.input_gate"
        return value.cumsum(1) / torch.arange(1, 10, dtype=value.dtype)[:, None]

    model = built("lstm")
    traced = looked(model, {"blocks.0.recurrence.input_gate": mean_so_far})
    recurrence, x = model.stack.blocks[0].recurrence, traced["embedded"]
    state, before, means = recurrence.branch.begin(x), [], []

    def change(name, value):
        if name != "input_gate":
            return value
        before.append(value)
        means.append(torch.stack(before).mean(0))
        return means[-1]

    with torch.no_grad():
        for x_BD in recurrence.pre(x).unbind(1):
            _, state = recurrence.branch.step(x_BD, state, change)
    torch.testing.assert_close(traced["blocks.0.recurrence.input_gate"], torch.stack(means, 1), rtol=0, atol=1e-12)
    torch.testing.assert_close(traced["blocks.0.recurrence.state"][:, -1], state[0], rtol=0, atol=1e-12)


@KERNELS
@pytest.mark.parametrize("family", ["lstm", "gru"])
def test_padding_and_documents_keep_their_gates_apart(family, kernel):
    model, halve = built(family), {"blocks.*.recurrence.candidate": lambda value, key: value / 2}
    real = torch.tensor([[True] * 9, [False, True, True, False, True, True, True, False, False]])
    logits = looked(model, halve, kernel, real=real)["logits"]
    alone = looked(model, halve, kernel, IDS[1:, real[1]])["logits"]
    torch.testing.assert_close(logits[1, real[1]], alone[0], rtol=0, atol=1e-12)
    documents = torch.tensor([[0] * 4 + [1] * 5]).expand(2, -1)
    packed = looked(model, halve, kernel, documents=documents)["logits"]
    apart = [looked(model, halve, kernel, part)["logits"] for part in (IDS[:, :4], IDS[:, 4:])]
    torch.testing.assert_close(packed, torch.cat(apart, 1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("family", ["lstm", "gru"])
def test_an_edit_of_a_gate_acts_on_cached_steps(family):
    model, halve = built(family), {"blocks.*.recurrence.candidate": lambda value, key: value / 2}
    whole = looked(model, halve)["logits"]
    with torch.no_grad():
        logits, state = model.start(IDS[:, :3], 9, execution=Execution(taps=Recorder(edit=halve)))
        steps = [logits[:, None]]
        for tokens in (IDS[:, 3:4], IDS[:, 4:9]):
            logits = model.step(tokens, state, execution=Execution(taps=Recorder(edit=halve)))
            steps.append(logits)
    torch.testing.assert_close(torch.cat(steps, 1), whole[:, 2:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("family", ["rnnsearch", "luong"])
def test_a_decoder_that_looks_at_the_first_word_alone(family):
    """Each step of an attention decoder goes on with what it found, so an edited pattern must act within the loop."""

    def first(value, key):
        assert value.shape[:3] == (2, 1, 9)
        pattern = torch.zeros_like(value)
        pattern[..., -IDS.shape[1]] = 1  # before the words stand the reader's last states, where there are any
        return pattern

    model = built(family)
    plain, traced = (trace(model, IDS, IDS, edit=edit) for edit in ({}, {"blocks.0.cross.pattern": first}))
    encoder_states = traced["blocks.0.cross.v"]
    expected = encoder_states[:, :, -IDS.shape[1]][:, :, None].expand_as(traced["blocks.0.cross.mixed"])
    torch.testing.assert_close(traced["blocks.0.cross.mixed"], expected, rtol=0, atol=1e-12)
    assert (traced.logits - plain.logits).abs().max() > 1e-3
    assert all(check.passed for check in traced.checks)
    assert not any("eager" in note for note in traced.notes)


@pytest.mark.parametrize(
    ("family", "gate"),
    [
        *[("rnnsearch", gate) for gate in ("reset_gate", "update_gate", "candidate", "pattern", "mixed")],
        *[("luong", gate) for gate in ("forget_gate.0", "cell.1", "output_gate.1", "pattern", "mixed")],
    ],
)
def test_an_attention_decoder_hears_of_an_edit_at_every_later_step(family, gate):
    model, key = built(family), f"blocks.0.cross.{gate}"
    plain, edited = looked(model, {}), looked(model, {key: at(4, -0.5)})
    torch.testing.assert_close(edited[key][..., 4, :], -0.5 * plain[key][..., 4, :], rtol=0, atol=1e-12)
    for name in edited:
        if name.startswith("blocks.0.cross") and name not in (key, "blocks.0.cross.v"):
            difference = (edited[name] - plain[name]).abs()
            assert difference[..., :4, :].max() < 1e-12
            assert difference[..., 5:, :].max() > 1e-9
    same = looked(model, {key: lambda value, key: value})
    torch.testing.assert_close(same["logits"], plain["logits"], rtol=0, atol=1e-12)
    traced = trace(model, IDS, IDS, edit={key: at(4, -0.5)})
    assert all(check.passed for check in traced.checks)


def test_a_gradient_reaches_the_strength_of_an_edit():
    model, strength = built("lstm"), torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    def loss(factor):
        recorder = Recorder(keep=(), edit={"blocks.0.recurrence.forget_gate": lambda value, key: value * factor})
        return model.logits(IDS, taps=recorder).pow(2).mean()

    (gradient,) = torch.autograd.grad(loss(strength), strength)
    with torch.no_grad():
        around = [loss(strength + step) for step in (1e-5, -1e-5)]
    torch.testing.assert_close(gradient, (around[0] - around[1]) / 2e-5, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("family", "name"), [("lstm", "recurrence.stepwise"), ("rnnsearch", "cross.v")])
def test_what_is_only_shown_is_not_edited(family, name):
    with pytest.raises(UsageError, match="is shown, not edited"):
        looked(built(family), {f"blocks.0.{name}": lambda value, key: value * 0})


def test_an_edit_that_changes_the_shape_of_a_gate_is_refused():
    with pytest.raises(UsageError, match=r"edit of blocks\.0\.recurrence\.cell returned"):
        looked(built("lstm"), {"*.cell": lambda value, key: value[:, :1]})
