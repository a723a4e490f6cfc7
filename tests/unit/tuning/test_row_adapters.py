"""Rows of one batch with adapters of their own: each is the merged model's, the others the base's bit for bit."""

import copy
from types import SimpleNamespace

import pytest
import torch

from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.adapters import read_adapters, read_pairs
from orrery.exchange.reading.read import Stored, read
from orrery.exchange.saving.own import save_own
from orrery.exchange.saving.save import save_model
from orrery.generation.compiled_step import stepping
from orrery.generation.engine import Engine
from orrery.generation.generate import generate
from orrery.generation.requests import Request
from orrery.generation.row import Limits
from orrery.generation.samplers import GREEDY, sampler
from orrery.laws.evidence import deviation
from orrery.tuning import RowAdapters, lora_pairs, merge
from orrery.tuning.lora import LoRA
from orrery.tuning.peft import save_adapter
from tiny_models import CONFIGS, TOKENIZER, smallest, tiny

CONTEXT = 24
SETTINGS = {
    "small": LoRA(rank=2, alpha=6.0),
    "wide": LoRA(rank=5, alpha=3.0, targets=("*.q", "*.out", "*.feed_forward.*")),
    "same": LoRA(rank=2, alpha=1.0),
}
ROWS = [None, "small", "wide", "small", None, "same"]


def adapted(model, settings, seed):
    """Return a copy of a model with an adapter that has learned."""
    other = settings.apply(copy.deepcopy(model))
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, part in other.named_parameters():
            if name.endswith((".lora_a", ".lora_b")):
                part.copy_(torch.randn(part.shape, generator=rng, dtype=torch.float64) * 0.3)
    return other


def of(model):
    """Return the adapters of a model, and the model merged with each."""
    adapters, merged = RowAdapters(model), {None: model}
    for seed, (name, settings) in enumerate(SETTINGS.items()):
        other = adapted(model, settings, seed)
        adapters.add(name, lora_pairs(other))
        merged[name] = merge(other)
    return adapters, merged


@torch.no_grad()
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
@pytest.mark.parametrize("family", ["llama", "gpt2", "t5", "gemma2"])
def test_each_row_is_that_of_the_merged_model_alone(family, dtype, bound):
    model = smallest(family, dtype)
    adapters, merged = of(model)
    ids = torch.randint(3, 60, (len(ROWS), 9), generator=torch.Generator().manual_seed(1))
    with adapters.rows(ROWS):
        logits, session = model.start(ids[:, :5], CONTEXT)
        steps = [logits] + [model.step(ids[:, t, None], session)[:, 0] for t in range(5, 9)]
    base, session = model.start(ids[:, :5], CONTEXT)
    plain = [base] + [model.step(ids[:, t, None], session)[:, 0] for t in range(5, 9)]
    for row, name in enumerate(ROWS):
        alone, session = merged[name].start(ids[row : row + 1, :5], CONTEXT)
        expected = [alone] + [merged[name].step(ids[row : row + 1, t, None], session)[:, 0] for t in range(5, 9)]
        for own, theirs, without in zip(steps, expected, plain, strict=True):
            assert deviation(own[row], theirs[0]) <= bound
            assert torch.equal(own[row], without[row]) == (name is None)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
def test_the_engine_answers_each_request_as_its_merged_model_does(compiled, deterministic):
    model = smallest("llama", torch.float32 if compiled else torch.float64)
    writer = stepping(model, "compiled") if compiled else model
    adapters, merged = of(model)  # after the step was compiled, which sees no hooks
    how = {"most_rows": 3, "chunk": 6, "kept_tokens": 300, "adapters": adapters, "deterministic": deterministic}
    engine = Engine(writer, TOKENIZER, CONTEXT, **how)
    engine.prefixes.least = 3
    chosen = [GREEDY, sampler(temperature=0.9)]
    prompt = [5, 9, 31, 5, 9, 31, 5, 8]
    requests = [
        Request(prompt[: 5 + i % 4], Limits(6, CONTEXT), chosen[i % 2], seed=i, adapter=ROWS[i % len(ROWS)])
        for i in range(18)
    ]
    answers = [engine.add(request) for request in requests]
    while engine.advance():
        pass
    for request, own in zip(requests, answers, strict=True):
        how = {"sampler": request.sampler, "seed": request.seed}
        (alone,) = generate(merged[request.adapter], [request.prompt], TOKENIZER, request.limits, **how)
        assert own.result().ids == alone.ids
    assert any(own.reused for own in answers)
    assert len({tuple(own.result().ids) for own in answers}) > 6


def test_names_are_known_and_given_once():
    model = smallest("llama")
    adapters, _ = of(model)
    pairs = lora_pairs(adapted(model, SETTINGS["small"], 7))
    with pytest.raises(UsageError, match="there is or was an adapter 'small'"):
        adapters.add("small", pairs)
    adapters.remove("small")
    assert adapters.names == ("wide", "same")
    with pytest.raises(UsageError, match="there is or was"):
        adapters.add("small", pairs)
    with pytest.raises(UsageError, match="no adapter 'small'"):
        adapters.remove("small")
    for engine in (Engine(model, TOKENIZER, CONTEXT, adapters=adapters), Engine(model, TOKENIZER, CONTEXT)):
        with pytest.raises(UsageError, match="no adapter 'small'"):
            engine.add(Request([5, 6], Limits(2, CONTEXT), adapter="small"))
    for name in adapters.names:
        adapters.remove(name)
    assert not any(part._forward_hooks for part in model.modules())


def test_what_cannot_be_one_row_s_own_is_refused():
    model = smallest("llama")
    pairs = lora_pairs(adapted(model, SETTINGS["small"], 7))
    name = next(iter(pairs))
    a, b = pairs[name]
    adapters = RowAdapters(model)
    with pytest.raises(UsageError, match="A and B of"):
        adapters.add("short", {name: (a[:, :3], b)})
    with pytest.raises(UsageError, match="no linear is called"):
        adapters.add("unknown", {"blocks.nowhere": (a, b)})
    with pytest.raises(UsageError, match="has no LoRA"):
        lora_pairs(model)
    with pytest.raises(UsageError, match="whole matrices"):
        lora_pairs(LoRA(learn=("head.*",)).apply(smallest("llama")))
    mixture = smallest("mixtral")
    experts = lora_pairs(adapted(mixture, LoRA(targets=("*.experts.*",)), 1))
    with pytest.raises(UsageError, match="cannot be told apart"):
        RowAdapters(mixture).add("experts", experts)
    assert not any(part._forward_hooks for part in mixture.modules())


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_adapters_are_read_from_folders_of_both_kinds(family, tmp_path):
    config = CONFIGS[family]
    save_model(tmp_path / "base", tiny(family, torch.float32), family, config, TOKENIZER)
    base = read(tmp_path / "base")
    other = adapted(base.model, SETTINGS["small"], 4)
    lora = Stored(tmp_path / "base", other, family, config)
    save_adapter(lora, tmp_path / "peft")
    save_own(tmp_path / "own", other, TOKENIZER, family=family, config=config)
    before = [part.clone() for part in base.model.parameters()]
    adapters = read_adapters(base, {"peft": tmp_path / "peft", "own": tmp_path / "own"})
    assert all(map(torch.equal, before, base.model.parameters()))
    ids = torch.randint(3, 60, (3, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad(), adapters.rows(["peft", None, "own"]):
        logits_read = base.model.logits(ids)
    with torch.no_grad():
        expected, plain = merge(other).logits(ids), base.model.logits(ids)
    for row, logits in enumerate((expected, plain, expected)):
        assert deviation(logits_read[row], logits[row]) <= 1e-5
    stranger = SimpleNamespace(model=tiny(family, torch.float32), family=family, config=config, folder=tmp_path)
    with torch.no_grad():
        next(stranger.model.parameters()).add_(1.0)
    with pytest.raises(ModelFileError, match="differs"):
        read_pairs(stranger, tmp_path / "own")
