"""Recurrent encoder-decoders against their papers' formulas, written out in numpy one sentence at a time."""

import numpy as np
import pytest
import torch

from orrery.families import load_family
from orrery.inspection.trace import trace
from orrery.nn.attention.alignment_score import Additive, Dot, General
from orrery.nn.recurrent.encoders import ReversedSource, StackedLSTMEncoder

FAMILIES = ("rnnenc", "rnnsearch", "sutskever", "luong")
SOURCE, TARGET = [5, 9, 2, 17, 30], [1, 7, 7, 40]


def built(family, **config):
    rules = load_family(family)
    torch.manual_seed(0)
    model = rules.spec({**rules.TINY, **config}).build(0).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn_like(parameter))
    return model


def weights(model):
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


def gru(new, old, h):
    (wr, wz, wn), (ur, uz, un) = np.split(new, 3), np.split(old, 3)
    z = sigmoid(wz + uz)
    return (1 - z) * np.tanh(wn + sigmoid(wr + ur) * un) + z * h


def lstm(mixed, c):
    i, f, g, o = np.split(mixed, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def read_gru(w, x, suffix):
    h, said = np.zeros(x.shape[1]), []
    name = "reader.recurrence.engine.{}_{}_l0" + suffix
    for word in x:
        new = w[name.format("weight", "ih")] @ word + w[name.format("bias", "ih")]
        old = w[name.format("weight", "hh")] @ h + w[name.format("bias", "hh")]
        h = gru(new, old, h)
        said.append(h)
    return np.stack(said)


def search(w, encoder_states, targets):
    """Bahdanau et al. 2015, appendix A.2: look, step, and speak by a maxout layer."""

    def of(part, x):
        return w[f"{own}.{part}.weight"] @ x + w.get(f"{own}.{part}.bias", 0)

    own, patterns, logits = "decoder.blocks.0.cross.branch", [], []
    s = np.tanh(of("first", encoder_states[0]))
    for word in w["reader.embed.token.weight"][targets]:
        energies = [of("scoring.v", np.tanh(of("scoring.q", s) + of("scoring.k", m)))[0] for m in encoder_states]
        patterns.append(softmax(np.array(energies)))
        c = patterns[-1] @ encoder_states
        spoken = of("readout", np.concatenate([s, c, word])).reshape(-1, 2).max(1)
        s = gru(of("word", word) + of("context", c), of("state", s), s)
        logits.append(w["head.vocabulary.weight"] @ spoken + w["head.vocabulary.bias"])
    return np.stack(logits), np.stack(patterns)


def test_rnnsearch_is_the_paper():
    model = built("rnnsearch")
    w = weights(model)
    x = w["reader.embed.token.weight"][SOURCE]
    encoder_states = np.concatenate([read_gru(w, x, ""), read_gru(w, x[::-1], "_reverse")[::-1]], 1)
    logits, pattern = search(w, encoder_states, TARGET)
    seen = trace(model, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    np.testing.assert_allclose(seen.logits[0], logits, atol=1e-10)
    np.testing.assert_allclose(seen["blocks.0.cross.pattern"][0, 0], pattern, atol=1e-12)
    assert all(check.passed for check in seen.checks)
    assert model.spec.reader.out_width(model.spec.width) == encoder_states.shape[1]


def test_rnnenc_hears_one_vector():
    model = built("rnnenc")
    w = weights(model)
    h = read_gru(w, w["reader.embed.token.weight"][SOURCE], "")[-1]
    encoder_states = np.tanh(w["reader.recurrence.summary.weight"] @ h + w["reader.recurrence.summary.bias"])[None]
    seen = trace(model, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    np.testing.assert_allclose(seen.logits[0], search(w, encoder_states, TARGET)[0], atol=1e-10)
    assert bool((seen["blocks.0.cross.pattern"] == 1).all())


def unrolled(w, prefix, x, layers):
    """A stack of LSTMs with torch's names; returns the top h of every word and the last states."""
    last = []
    for layer in range(layers):
        h = c = np.zeros(x.shape[1])
        said = []
        for word in x:
            mixed = sum(
                w[f"{prefix}.weight_{side}_l{layer}"] @ value + w[f"{prefix}.bias_{side}_l{layer}"]
                for side, value in (("ih", word), ("hh", h))
            )
            h, c = lstm(mixed, c)
            said.append(h)
        x = np.stack(said)
        last += [h, c]
    return x, last


def steps(w, x, states, layers):
    """One step of a decoder's layers, whose first matrix has already been applied."""
    own, after = "decoder.blocks.0.cross.branch.layers", []
    for layer in range(layers):
        h, c = states[2 * layer : 2 * layer + 2]
        h, c = lstm(x + w[f"{own}.states.{layer}.weight"] @ h + w[f"{own}.states.{layer}.bias"], c)
        after += [h, c]
        if layer + 1 < layers:
            x = w[f"{own}.inputs.{layer}.weight"] @ h + w[f"{own}.inputs.{layer}.bias"]
    return h, after


def test_sutskever_reads_backwards_and_begins_where_the_encoder_ended():
    model = built("sutskever")
    w, own = weights(model), "decoder.blocks.0.cross.branch"
    _, states = unrolled(w, "reader.recurrence.reader.engine", w["reader.embed.token.weight"][SOURCE[::-1]], 2)
    logits = []
    for word in w["reader.embed.token.weight"][TARGET]:
        h, states = steps(w, w[f"{own}.word.weight"] @ word + w[f"{own}.word.bias"], states, 2)
        logits.append(w["head.vocabulary.weight"] @ h + w["head.vocabulary.bias"])
    logits_found = model.logits(torch.tensor([SOURCE]), torch.tensor([TARGET])).detach()[0]
    np.testing.assert_allclose(logits_found, np.stack(logits), atol=1e-10)


@pytest.mark.parametrize("score", ["dot", "general", "concat"])
def test_luong_steps_then_looks_and_feeds_what_it_found(score):
    model = built("luong", score=score)
    w, own = weights(model), "decoder.blocks.0.cross.branch"
    encoder_states, states = unrolled(w, "reader.recurrence.engine", w["reader.embed.token.weight"][SOURCE], 2)
    scores = {
        "dot": lambda h, m: h @ m,
        "general": lambda h, m: h @ w[f"{own}.scoring.k.weight"] @ m,
        "concat": lambda h, m: (
            w[f"{own}.scoring.v.weight"]
            @ np.tanh(
                np.concatenate([w[f"{own}.scoring.q.weight"], w[f"{own}.scoring.k.weight"]], 1) @ np.concatenate([h, m])
            )
        )[0],
    }
    fed, logits, patterns = np.zeros(12), [], []
    for word in w["reader.embed.token.weight"][TARGET]:
        x = w[f"{own}.word.weight"] @ word + w[f"{own}.word.bias"] + w[f"{own}.fed.weight"] @ fed
        h, states = steps(w, x, states, 2)
        patterns.append(softmax(np.array([scores[score](h, m) for m in encoder_states])))
        fed = np.tanh(w[f"{own}.combine.weight"] @ np.concatenate([patterns[-1] @ encoder_states, h]))
        logits.append(w["head.vocabulary.weight"] @ fed + w["head.vocabulary.bias"])
    seen = trace(model, torch.tensor([SOURCE]), torch.tensor([TARGET]))
    np.testing.assert_allclose(seen.logits[0], np.stack(logits), atol=1e-10)
    states_hidden = seen["blocks.0.cross.pattern"][0, 0]
    assert bool((states_hidden[:, :4] == 0).all())  # the last states stand before the words and are never looked at
    np.testing.assert_allclose(states_hidden[:, 4:], np.stack(patterns), atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_sources_are_the_sources_alone(family, side):
    model, target = built(family), torch.tensor([TARGET])
    sources = [SOURCE, SOURCE[:2], SOURCE[1:4]]
    padded, real = torch.zeros(3, 6, dtype=torch.long), torch.zeros(3, 6, dtype=torch.bool)
    for row, source in enumerate(sources):
        place = slice(0, len(source)) if side == "right" else slice(6 - len(source), 6)
        padded[row, place], real[row, place] = torch.tensor(source), True
    with torch.no_grad():
        together = model.logits(padded, target.expand(3, -1), source_real=real)
        for row, source in enumerate(sources):
            assert torch.allclose(together[row], model.logits(torch.tensor([source]), target)[0], atol=1e-12)


def test_an_empty_source_is_heard_as_nothing_and_gives_no_nan():
    for family in FAMILIES:
        model = built(family)
        real = torch.tensor([[True, True], [False, False]])
        logits = model.logits(torch.tensor([[3, 4], [3, 4]]), torch.tensor([[1], [1]]), source_real=real)
        logits.sum().backward()
        assert not logits.isnan().any()
        assert not any(parameter.grad.isnan().any() for parameter in model.parameters() if parameter.grad is not None)


def test_states_of_sources_of_unequal_lengths_can_be_joined():
    for family in FAMILIES:
        model = built(family)
        _, one = model.start(torch.tensor([SOURCE]), 10)
        _, other = model.start(torch.tensor([SOURCE[:2]]), 10)
        step = torch.tensor([[7], [9]])
        with torch.no_grad():
            together = model.step(step, one.join(other))
            for row, source in enumerate((SOURCE, SOURCE[:2])):
                _, alone = model.start(torch.tensor([source]), 10)
                assert torch.allclose(together[row], model.step(step[row : row + 1], alone)[0], atol=1e-12)


def test_backwards_puts_each_word_back():
    torch.manual_seed(0)
    x, real = torch.randn(1, 4, 6), torch.tensor([[True, True, True, False]])
    reader = ReversedSource.Spec(reader=StackedLSTMEncoder.Spec(layers=1)).build(6)
    encoder_states, seen = reader(x, real)
    turned, _ = reader.reader(x[:, :3].flip(1), real[:, :3])
    assert torch.allclose(encoder_states[:, :2], turned[:, :2])
    assert torch.allclose(encoder_states[:, 2:5], turned[:, 2:].flip(1), atol=1e-6)
    assert seen.tolist() == [[False, False, True, True, True, False]]


def test_scores_of_a_batch_are_the_definition():
    q, encoder_states = torch.randn(2, 4), torch.randn(2, 3, 4)
    for spec in (Dot.Spec(), General.Spec(encoder_width=4), Additive.Spec(encoder_width=4, hidden=5)):
        scoring = spec.build(4)
        assert scoring(q, scoring.keys(encoder_states)).shape == (2, 3)
