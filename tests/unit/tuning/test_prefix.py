"""Prefixes: peft's logits, the definition with the keys of real tokens, and the same numbers in every kind of call."""

import warnings

import pytest
import torch
import transformers
from torch.nn import functional as F

from orrery import tuning
from orrery.errors import UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.own import save_own
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.attention.stored_pattern import stored_pattern
from orrery.tuning.prefix import Prefix
from tiny_models import ALL, TOKENIZER, randomised, tiny

PREFIX = Prefix(tokens=3)
IDS = torch.randint(3, 60, (2, 9), generator=torch.Generator().manual_seed(1))


def of_family(family):
    rules = load_family(family)
    return randomised(rules.spec(rules.TINY).build(0)).double().eval()


def drawn(model):
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".prefix_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=rng) * 0.5)
    return model


@torch.no_grad()
def logits(model, ids=IDS, **call):
    return model.logits(*([ids] * len(model.spec.inputs)), **call)


def apart(a, b):
    return float((a - b).abs().max() / b.abs().max().clamp(min=1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "bloom", "opt"])
def test_the_logits_are_pefts(tmp_path, family):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import peft
    rules = load_family(family)
    # With a window peft's prefix falls out of it; ours is seen through every mask.
    settings = {**rules.TINY, **({"sliding_window": None} if family == "mistral" else {})}
    plain = randomised(rules.spec(settings).build(0))
    save_model(tmp_path, plain, family, settings)
    theirs = getattr(transformers, rules.ARCHITECTURE).from_pretrained(tmp_path, dtype=torch.float64)
    config = peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    theirs = peft.get_peft_model(theirs, config).double().eval()
    ours = drawn(PREFIX.apply(plain.double().eval()))
    numbers = dict(ours.named_parameters())
    depth = len(ours.stack.blocks)
    name = next(n for n in numbers if n.endswith("prefix_k")).replace(".0.", ".{}.", 1)
    parts = [numbers[name.format(i).replace("prefix_k", f"prefix_{x}")] for i in range(depth) for x in "kv"]
    with torch.no_grad():
        table = next(p for n, p in theirs.named_parameters() if n.endswith("embedding.weight") and "prompt" in n)
        table.copy_(torch.cat(parts, dim=1))
        expected = theirs(input_ids=IDS, attention_mask=torch.ones_like(IDS)).logits
    assert apart(logits(ours), expected) < (1e-9 if family in ("gpt2", "opt") else 1e-5)
    assert apart(logits(PREFIX.apply(of_family(family))), expected) > 1e-3


@pytest.mark.parametrize("family", ["gpt2", "llama", "bloom"])
def test_a_prefix_of_the_keys_of_tokens_is_those_tokens_before_the_text(family):
    """What the attentions of a plain model keep of three tokens, learned as a prefix, is a text that begins so."""
    plain, model = of_family(family), PREFIX.apply(of_family(family))
    kept = {}

    class Taps:
        def __call__(self, key, value):
            kept[key] = value
            return value

    first = torch.tensor([[7, 11, 13]])
    with torch.no_grad():
        plain.logits(first, taps=Taps(), kernel=eager)
        for name, parameter in model.named_parameters():
            if ".prefix_" in name:
                layer, side = name.split(".")[2], name[-1]
                key = next(k for k in kept if k.startswith(f"blocks.{layer}.") and k.endswith(f".{side}"))
                parameter.copy_(kept[key][0].transpose(0, 1).flatten(1))
    whole = logits(plain, torch.cat([first.expand(2, -1), IDS], dim=1))[:, 3:]
    assert apart(logits(model), whole) < 1e-9


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "bloom", "gemma2", "bert", "t5", "bart"])
def test_every_kernel_and_padding_give_the_same(family):
    model = drawn(PREFIX.apply(of_family(family)))
    expected = logits(model, kernel=eager)
    assert not torch.equal(expected, logits(of_family(family), kernel=eager))
    if family != "gemma2":  # it caps its scores
        assert apart(logits(model, kernel=sdpa), expected) < 1e-9
        assert apart(logits(model, kernel=stored_pattern), expected) < 1e-9
    if len(model.spec.inputs) == 1:
        real = torch.tensor([[True] * 9 + [False] * 2] * 2)
        assert apart(logits(model, F.pad(IDS, (0, 2)), real=real)[:, :9], expected) < 1e-9
        left = torch.tensor([[False] * 2 + [True] * 9] * 2)
        assert apart(logits(model, F.pad(IDS, (2, 0)), real=left)[:, 2:], expected) < 1e-9


@pytest.mark.parametrize("family", ["gpt2", "llama", "bloom", "gemma2"])
def test_packed_documents_are_those_documents_alone(family):
    model = drawn(PREFIX.apply(of_family(family)))
    documents = torch.tensor([[0] * 9 + [1] * 5])
    packed = logits(model, torch.cat([IDS[0], IDS[1, :5]])[None], documents=documents)[0]
    alone = torch.cat([logits(model, IDS[:1])[0], logits(model, IDS[1:, :5])[0]])
    assert apart(packed, alone) < 1e-9


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "bloom", "gemma2"])
@torch.no_grad()
def test_cached_steps_are_the_full_forward(family):
    model = drawn(PREFIX.apply(of_family(family)))
    full = logits(model)
    first, session = model.start(F.pad(IDS[:, :4], (0, 1)), 9, [4, 4])
    steps = [first[:, None], model.step(IDS[:, 4:7], session), model.step(IDS[:, 7:8], session)]
    assert apart(torch.cat(steps, dim=1), full[:, 3:8]) < 1e-9


def test_it_alone_learns_and_every_token_teaches_it():
    model = PREFIX.apply(tiny("llama"))
    learns = {name.rpartition(".")[2] for name, p in model.named_parameters() if p.requires_grad}
    assert learns == {"prefix_k", "prefix_v"}
    model.logits(IDS).square().sum().backward()
    assert all((p.grad is not None) == p.requires_grad for p in model.parameters())
    numbers = weights_of(PREFIX.apply(tiny("llama"), 1)), weights_of(PREFIX.apply(tiny("llama"), 2))
    name = "stack.blocks.0.attention.branch.source.prefix_k"
    assert not torch.equal(numbers[0][name], numbers[1][name])


def test_it_is_saved_and_read_again(tmp_path):
    model = drawn(PREFIX.apply(tiny("llama", torch.float32)))
    save_own(tmp_path, model, TOKENIZER, family="llama", config=ALL["llama"])
    again = read(tmp_path).model
    before, after = weights_of(model), weights_of(again)
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert torch.equal(logits(again), logits(model))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Prefix(tokens=0), "prefix: tokens is 0"),
        (lambda: PREFIX.apply(PREFIX.apply(tiny("llama"))), "stack has a prefix already"),
        (lambda: PREFIX.apply(of_family("deberta")), "which no prefix of keys and values fits"),
        (lambda: PREFIX.apply(of_family("deepseek_v2")), "which no prefix of keys and values fits"),
        (lambda: PREFIX.apply(of_family("gru")), "no prefix of keys and values fits|nothing reads a prefix"),
        (lambda: tuning.merge(PREFIX.apply(tiny("llama"))), "prefix cannot be merged"),
        (lambda: logits(Prefix(tokens=40).apply(tiny("gpt2"))), "49 tokens, but this model has 48 positions"),
    ],
)
def test_what_cannot_be_is_refused(make, says):
    with pytest.raises(UsageError, match=says):
        make()
