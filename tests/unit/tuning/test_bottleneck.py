"""Bottleneck adapters: nothing at first, the formula then, alone what learns, and the same in every way to call."""

import pytest
import torch
from torch.nn import functional as F

from orrery import tuning
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.own import save_own
from orrery.families import load_family
from orrery.generation.generate import generate
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.tuning.bottleneck import Bottleneck, BottleneckNetwork
from orrery.tuning.lora import LoRA
from tiny_models import ALL, TOKENIZER, randomised, tiny

HOULSBY = Bottleneck(size=3)
PFEIFFER = Bottleneck(size=3, activation="tanh", targets=("*.feed_forward",))
IDS = torch.randint(0, TOKENIZER.size, (2, 9), generator=torch.Generator().manual_seed(1))


def of_family(family):
    rules = load_family(family)
    return randomised(rules.spec(rules.TINY).build(0)).double().eval()


def learned(model):
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".dropout." in name:
                parameter.copy_(torch.randn(parameter.shape, generator=rng) * 0.3)
    return model


@torch.no_grad()
def logits(model, ids=IDS, **call):
    return model.logits(*([ids] * len(model.spec.inputs)), **call)


@pytest.mark.parametrize("family", ["llama", "gpt2", "gptj", "gemma2", "albert", "bert", "t5", "mixtral"])
def test_a_new_one_changes_no_number_and_a_learned_one_does(family):
    ids = IDS % 60
    before = logits(of_family(family), ids)
    model = HOULSBY.apply(of_family(family))
    assert torch.equal(logits(model, ids), before)
    assert not torch.equal(logits(learned(model), ids), before)


def test_it_computes_the_formula_behind_each_sublayer():
    """The residual's branch, wrapped by hand, gives the same logits."""
    model, plain = learned(HOULSBY.apply(tiny("llama"))), tiny("llama")
    numbers = dict(model.named_parameters())
    for number, block in enumerate(plain.stack.blocks):
        for name, residual in block.named_children():
            place = f"stack.blocks.{number}.{name}.dropout"
            down, up = ((numbers[f"{place}.{part}.weight"], numbers[f"{place}.{part}.bias"]) for part in ("down", "up"))

            def wrapped(module, given, x, down=down, up=up):
                return x + F.linear(F.linear(x, *down).relu(), *up)

            residual.branch.register_forward_hook(wrapped)
    assert float((logits(plain) - logits(model)).abs().max()) < 1e-9


@pytest.mark.parametrize(("transform", "sublayers"), [(HOULSBY, 4), (PFEIFFER, 2)])
def test_it_alone_learns_where_its_targets_are(transform, sublayers):
    model = transform.apply(tiny("llama"))
    assert sum(isinstance(part, BottleneckNetwork) for part in model.modules()) == sublayers
    learns = {name for name, p in model.named_parameters() if p.requires_grad}
    assert len(learns) == 4 * sublayers
    assert all(".dropout." in name for name in learns)
    model.logits(IDS).square().sum().backward()
    assert all((p.grad is not None) == p.requires_grad for p in model.parameters())


def test_what_earlier_adapters_let_learn_goes_on_learning():
    model = HOULSBY.apply(LoRA(rank=2, learn=("embed.*",)).apply(tiny("llama")))
    learns = {name.rpartition(".")[2] for name, p in model.named_parameters() if p.requires_grad}
    assert {"lora_a", "lora_b", "bias"} < learns
    assert model.embed.token.weight.requires_grad
    assert not model.stack.blocks[0].attention.branch.q.weight.requires_grad


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_packing_padding_and_the_cache_hold(family):
    model = learned(HOULSBY.apply(tiny(family)))
    rows = [IDS[0, :5], IDS[1, :4]]
    apart = torch.cat([logits(model, row[None])[0] for row in rows])
    packed = logits(model, torch.cat(rows)[None], documents=torch.tensor([[0] * 5 + [1] * 4]))[0]
    assert float((packed - apart).abs().max()) < 1e-9
    padded = torch.stack([rows[0], F.pad(rows[1], (0, 1))])
    real = torch.tensor([[True] * 5, [True] * 4 + [False]])
    assert float((logits(model, padded, real=real)[real] - apart).abs().max()) < 1e-9
    prompt = TOKENIZER.encode("the cat sat")
    greedy = sampler(temperature=0, vocabulary=TOKENIZER.size)
    answer = generate(model, [prompt], TOKENIZER, Limits(8, 48), sampler=greedy)[0].ids
    for n, id in enumerate(answer):
        assert int(logits(model, torch.tensor([[*prompt, *answer[:n]]]))[0, -1].argmax()) == id


def test_it_is_saved_and_read_again(tmp_path):
    model = learned(Bottleneck(size=3, learn=("head.*",)).apply(tiny("llama", torch.float32)))
    save_own(tmp_path, model, TOKENIZER, family="llama", config=ALL["llama"])
    again = read(tmp_path).model
    before, after = weights_of(model), weights_of(again)
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    learns = [{n for n, p in m.named_parameters() if p.requires_grad} for m in (model, again)]
    assert learns[0] == learns[1]
    assert "head.vocabulary.weight" in learns[0]


def test_both_sides_of_an_encoder_decoder_have_them():
    model = HOULSBY.apply(of_family("t5"))
    assert isinstance(model, EncoderDecoder)
    places = {name.split(".blocks")[0] for name, m in model.named_modules() if isinstance(m, BottleneckNetwork)}
    assert places == {"reader.stack", "decoder"}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Bottleneck(size=0), "bottleneck: size is 0"),
        (lambda: Bottleneck(activation="step"), "no activation 'step'"),
        (lambda: Bottleneck(targets=("*.ffn",)).apply(tiny("llama")), r"no sublayer is called '\*\.ffn'"),
        (lambda: Bottleneck(targets=()).apply(tiny("llama")), "name no sublayer"),
        (lambda: HOULSBY.apply(HOULSBY.apply(tiny("llama"))), r"blocks\.0\.attention has an adapter already"),
        (lambda: tuning.merge(HOULSBY.apply(tiny("llama"))), "bottleneck cannot be merged"),
        (lambda: Bottleneck(learn=("heads.*",)).apply(tiny("llama")), r"learn: no parameter is called 'heads\.\*'"),
        (lambda: tuning.from_json([{"kind": "bottleneck", "activation": "step"}]), "no activation 'step'"),
    ],
)
def test_senseless_settings_are_refused(make, says):
    with pytest.raises((UsageError, ModelFileError), match=says):
        make()
