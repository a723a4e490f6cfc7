"""Recurrences against the formulas of the course, against torch's engines, and against whole rows alone."""

import numpy as np
import pytest
import torch
from torch import nn

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.inspection.trace import trace
from orrery.nn.cache.kinds import cache_for, growing
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.recurrent.engine import fitting
from orrery.nn.recurrent.gru import GRU
from orrery.nn.recurrent.lstm import LSTM
from orrery.nn.recurrent.rnn import ElmanRNN
from stand_ins import stand_in

FAMILIES = ("elman_rnn", "lstm", "gru")
KINDS = {ElmanRNN: nn.RNN, LSTM: nn.LSTM, GRU: nn.GRU}


def built(family):
    rules = load_family(family)
    torch.manual_seed(0)
    return rules.spec(rules.TINY).build(0).double().eval()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(cell, weights, x_LD):
    """The formulas of the slides in numpy, each gate with matrices of its own."""
    W, U, b, d = weights
    h = c = np.zeros(U.shape[1])
    said = []
    for x in x_LD:
        if cell is ElmanRNN:
            h = np.tanh(W @ x + b + U @ h + d)
        elif cell is LSTM:
            i, f, g, o = np.split(W @ x + b + U @ h + d, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            (wr, wz, wn), (ur, uz, un) = np.split(W @ x + b, 3), np.split(U @ h + d, 3)
            r, z = sigmoid(wr + ur), sigmoid(wz + uz)
            h = (1 - z) * np.tanh(wn + r * un) + z * h
        said.append(h)
    return np.stack(said)


@pytest.mark.parametrize("cell", KINDS, ids=lambda cell: cell.__name__)
def test_the_step_and_the_engine_are_the_formula(cell):
    torch.manual_seed(1)
    recurrence = cell.Spec().build(6).double()
    x_BLD = torch.randn(1, 9, 6, dtype=torch.float64)
    weights = [parameter.detach().numpy() for parameter in recurrence.engine.parameters()]
    expected = torch.from_numpy(by_hand(cell, weights, x_BLD[0].numpy()))
    state = (torch.zeros(1, 6, dtype=torch.float64),) * recurrence.states
    with torch.no_grad():
        steps, last = recurrence.compute("step", x_BLD, None, state)
        engine, _ = recurrence.engine(x_BLD)
    assert torch.allclose(steps[0], expected, atol=1e-12)
    assert torch.allclose(engine[0], expected, atol=1e-12)
    assert torch.allclose(last[0][0], expected[-1], atol=1e-12)


def test_hello_is_learnt_character_by_character():
    """The character model of the course: one-hot h, e, l, o in, the next of "hello" out."""
    torch.manual_seed(0)
    letters = "helo"
    ids = torch.tensor([[letters.index(letter) for letter in "hello"]])
    rules = load_family("elman_rnn")
    model = rules.spec({"vocab_size": 4, "hidden_size": 8, "num_layers": 1}).build(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        loss = nn.functional.cross_entropy(model.logits(ids[:, :-1])[0], ids[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    written = "h"
    logits, state = model.start(ids[:, :1], 10)
    for _ in range(4):
        token = logits.argmax(-1)
        written += letters[int(token)]
        stepped = model.step(token[:, None], state)
        logits = stepped[:, -1]
    assert written == "hello"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_trace_shows_every_gate_and_they_give_the_states(family):
    model, ids = built(family), torch.randint(61, (2, 7))
    seen = trace(model, ids)
    assert all(check.passed for check in seen.checks)
    gates = {"lstm": {"input_gate", "forget_gate", "candidate", "output_gate", "cell"}}
    gates |= {"gru": {"reset_gate", "update_gate", "candidate"}, "elman_rnn": set()}
    for gate in gates[family]:
        assert seen[f"blocks.1.recurrence.{gate}"].shape == (2, 7, 16)
    if family == "lstm":
        parts = {name: seen[f"blocks.0.recurrence.{name}"] for name in [*gates["lstm"], "state"]}
        rebuilt = parts["output_gate"] * torch.tanh(parts["cell"])
        assert torch.allclose(rebuilt, parts["state"], atol=1e-12)
        grown = parts["forget_gate"][:, 1:] * parts["cell"][:, :-1] + (parts["input_gate"] * parts["candidate"])[:, 1:]
        assert torch.allclose(grown, parts["cell"][:, 1:], atol=1e-12)


def test_the_check_of_the_gates_fails_on_a_broken_step(monkeypatch):
    model, whole = built("lstm"), LSTM.step

    def broken(self, x_BD, state, show):
        _, (h_BD, c_BD) = whole(self, x_BD, state, show)
        return h_BD + 1e-3, (h_BD + 1e-3, c_BD)

    monkeypatch.setattr(LSTM, "step", broken)
    failed = [check for check in trace(model, torch.randint(61, (1, 5))).checks if not check.passed]
    assert [check.name for check in failed] == ["gates step by step give the engine's states"]


def test_an_edit_of_the_state_acts_and_one_of_what_is_only_compared_is_refused():
    model, ids = built("lstm"), torch.randint(61, (1, 5))
    plain = trace(model, ids)
    edited = trace(model, ids, edit={"blocks.0.recurrence.state": lambda state, key: state * 0})
    assert not torch.equal(plain.logits, edited.logits)
    assert all(check.passed for check in edited.checks)
    with pytest.raises(UsageError, match="stepwise of a recurrence is shown"):
        trace(model, ids, edit={"blocks.0.recurrence.stepwise": lambda state, key: state * 0})


@pytest.mark.parametrize("form", ["step", "parallel"])
@pytest.mark.parametrize("family", FAMILIES)
def test_padding_inside_a_row_is_passed_over(family, form):
    model, ids = built(family), torch.randint(61, (1, 9))
    real = torch.tensor([[False, True, True, False, False, True, True, True, False]])
    with torch.no_grad():
        logits = model.logits(ids, real=real, scan=form)[real]
        assert torch.allclose(logits, model.logits(ids[real][None], scan=form)[0], atol=1e-12)


def test_a_state_has_one_size_and_cannot_go_back():
    model = built("gru")
    _, state = model.start(torch.randint(61, (2, 3)), 40)
    size = state.bytes()
    model.step(torch.randint(61, (2, 20)), state)
    assert state.bytes() == size == 2 * 2 * 16 * 8
    with pytest.raises(UsageError, match="cannot go back"):
        state.truncate(torch.tensor([5, 5]))
    state = state.truncate(torch.tensor([23, 30]))
    with pytest.raises(UsageError, match="cannot be joined"):
        state.cache.join(growing(1, 40))


def test_a_stack_of_attentions_and_recurrences_keeps_a_cache_of_each_kind():
    cache = cache_for({"past": RecurrentPast(), "causal": Causal()}, 2, 30)
    assert cache.kind == "past: recurrent, causal: growing"
    cache.store_state("past", (0, "a"), (torch.ones(2, 4),))
    assert torch.equal(cache.load_state("past", (0, "a"))[0], torch.ones(2, 4))
    assert cache.load_state("past", (0, "b")) is None  # another branch of the same block
    with pytest.raises(UsageError, match="not the state"):
        cache.load_state("causal", (0, "a"))
    with pytest.raises(UsageError, match="keeps no keys"):
        cache.extend("past", 0, torch.ones(1), torch.ones(1))


@pytest.mark.parametrize("training", [True, False])
def test_on_a_card_an_engine_rounds_no_factor_and_gives_gradients_in_evaluation_too(monkeypatch, training):
    cudnn = torch.backends.cudnn
    engine = torch.nn.LSTM(2, 2).train(training)
    x = stand_in(torch.Tensor, device=torch.device("cuda"))
    before = (cudnn.enabled, cudnn.allow_tf32)
    with fitting(engine, x):
        assert (cudnn.enabled, cudnn.allow_tf32) == (training, False)
        with torch.no_grad(), fitting(engine, x):
            assert cudnn.allow_tf32 is False
    assert (cudnn.enabled, cudnn.allow_tf32) == before
