"""Initial weights have the deviations of GPT-2."""

import math

import torch

from orrery.families import load_family
from orrery.models.initialise import initialise

CONFIG = {"vocab_size": 300, "n_positions": 64, "n_embd": 96, "n_layer": 4, "n_head": 4}


def made(seed=0):
    model = load_family("gpt2").spec(CONFIG).build(0)
    initialise(model, depth=4, seed=seed)
    return model


def test_deviations():
    for name, parameter in made().named_parameters():
        parameter = parameter.detach()
        last = name.rpartition(".")[2]
        if parameter.ndim == 2:
            into_the_stream = name.split(".")[-2] in ("out", "down")
            expected = 0.02 / 8**0.5 if into_the_stream else 0.02
            assert abs(float(parameter.std()) / expected - 1) < 0.05, name
            assert abs(float(parameter.mean())) < 0.003, name
        else:
            assert torch.equal(parameter, torch.full_like(parameter, float(last == "weight"))), name


def test_the_seed_is_everything():
    a, b, c = (made(seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["embed.token.weight"], c["embed.token.weight"])


def test_a_new_model_predicts_about_uniformly():
    ids = torch.randint(300, (4, 32), generator=torch.Generator().manual_seed(0))
    logits = made().eval().logits(ids)
    loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).detach()
    assert abs(float(loss) - math.log(300)) < 0.1


def test_a_recurrent_encoder_decoder_has_wider_embeddings_and_uniform_gates():
    config = {"vocab_size": 3000, "hidden_size": 64, "tie_word_embeddings": True}
    model = load_family("rnnsearch").spec(config).build(0)
    initialise(model, depth=1, seed=0)
    assert abs(float(model.reader.embed.token.weight.detach().std()) * 8 - 1) < 0.02
    assert model.head.vocabulary.weight is model.reader.embed.token.weight
    state = model.decoder.blocks[0].cross.branch.state
    assert abs(float(state.weight.detach().abs().max()) * 8 - 1) < 0.01
    assert not state.bias.detach().any()


def test_the_words_of_the_original_transformer_enter_with_variance_one():
    model = load_family("transformer").spec({"vocab_size": 3000, "d_model": 64, "num_heads": 4}).build(0)
    initialise(model, depth=6, seed=0)
    table = model.reader.embed.token.weight.detach()
    assert abs(float(model.reader.stack.enter(table).std()) - 1) < 0.02
    for family, louder in (("bart", True), ("bart", False), ("t5", False)):
        config = {"vocab_size": 3000, "d_model": 48} | ({"scale_embedding": louder} if family == "bart" else {})
        model = load_family(family).spec({**load_family(family).TINY, **config}).build(0)
        initialise(model, depth=6, seed=0)
        assert abs(float(model.reader.embed.token.weight.detach().std()) * (48**0.5 if louder else 50) - 1) < 0.02, (
            family
        )


def test_a_recurrence_reads_words_as_large_as_torch_draws_them():
    config = {"vocab_size": 300, "hidden_size": 64, "num_layers": 2}
    for family, tied, expected in (("elman_rnn", False, 1.0), ("lstm", False, 1.0), ("gru", True, 0.02)):
        model = load_family(family).spec({**config, "tie_word_embeddings": tied}).build(0)
        initialise(model, depth=2, seed=0)
        assert abs(float(model.embed.token.weight.detach().std()) / expected - 1) < 0.05, family
        assert abs(float(model.head.vocabulary.weight.detach().std()) / 0.02 - 1) < 0.05, family
        engine = model.stack.blocks[0].recurrence.branch.engine.weight_hh_l0.detach()
        assert float(engine.abs().max()) <= 64**-0.5
