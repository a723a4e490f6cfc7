"""Transforms: names are kept, spec.json lists them, what is saved loads again, and what cannot be saved is refused."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
import transformers
from torch import nn

from orrery import tuning
from orrery.checkpoints.tensors import read_tensors
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.exporting.export import export_gguf, export_hf
from orrery.exchange.reading.read import Stored, read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving.own import save_own
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.language_model.load import load
from orrery.tuning import Transform
from orrery.tuning._registry import KINDS
from orrery.tuning.lora import LoRA
from orrery.tuning.quantise import Quantise
from tiny_models import ALL, CONFIGS, TOKENIZER, randomised, saved, tiny

LORA = LoRA(rank=2, alpha=6.0)
EVERYTHING = LoRA(rank=2, targets=("*",), leave=("head.vocabulary", "*.router.*"))
IDS = torch.randint(0, TOKENIZER.size, (2, 9), generator=torch.Generator().manual_seed(1))


def learned(model):
    """Give every adapter numbers, as training does: a new one changes nothing."""
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(".lora_b"):
                parameter.copy_(torch.randn(parameter.shape, generator=rng) * 0.3)
    return model


def adapted(family="llama", dtype=torch.float32, transform=LORA, **config):
    return learned(transform.apply(tiny(family, dtype, **config)))


@torch.no_grad()
def logits(model):
    return model.logits(IDS)


# Names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_what_is_wrapped_keeps_its_names_and_its_objects(family):
    model = tiny(family)
    before = dict(model.named_parameters(remove_duplicate=False))
    LORA.apply(model)
    after = dict(model.named_parameters(remove_duplicate=False))
    assert all(after[name] is before[name] for name in before)
    added = after.keys() - before.keys()
    assert {name.rpartition(".")[2] for name in added} == {"lora_a", "lora_b"}
    assert {name.rpartition(".")[0] + ".weight" for name in added} <= before.keys()


def test_integer_weights_have_the_place_of_the_matrix_and_a_scale_beside_it():
    model = tiny("llama")
    names = list(dict(model.named_parameters()))
    Quantise().apply(model)
    after = dict(model.named_parameters())
    assert {n for n in after if not n.endswith(".weight_scale")} == set(names)
    whole = {name for name, tensor in after.items() if tensor.dtype == torch.int8}
    assert whole == {name for name in names if ".blocks." in name and after[name].dim() == 2}
    assert all(after[f"{name}_scale"].shape == (len(after[name]), 1) for name in whole)


def test_a_tied_table_stays_tied():
    model = adapted("gpt2", transform=EVERYTHING)
    assert model.head.vocabulary.weight is model.embed.token.weight
    assert tuning.merge(model).head.vocabulary.weight is model.embed.token.weight


@pytest.mark.parametrize("transform", [LoRA(targets=("head.vocabulary",)), Quantise(targets=("head.*",))], ids=str)
def test_a_tied_matrix_is_refused_by_name_and_nothing_is_changed(transform):
    model = tiny("gpt2")
    before = logits(model)
    with pytest.raises(UsageError, match=r"head\.vocabulary\.weight is tied to embed\.token"):
        transform.apply(model)
    assert not model.transforms
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert torch.equal(logits(model), before)
    untied = transform.apply(tiny("gpt2", tie_word_embeddings=False))
    assert "head.vocabulary.weight" in dict(untied.named_parameters())


def test_a_block_at_several_depths_is_one_and_is_adapted_at_each():
    rules = load_family("albert")
    model = randomised(
        rules.spec({**rules.TINY, "num_hidden_layers": 3, "num_hidden_groups": 1, "inner_group_num": 1}).build(0).eval()
    )
    ids, plain = IDS % 61, sum(p.numel() for p in model.parameters())
    learned(LoRA(rank=2).apply(model))
    names = [name for name in dict(model.named_parameters()) if name.endswith("lora_a")]
    assert len(names) == 2
    assert sum(p.numel() for p in model.parameters()) > plain
    before = model.hidden(ids).detach()
    with torch.no_grad():
        assert float((tuning.merge(model).hidden(ids) - before).abs().max()) < 1e-5
    assert sum(p.numel() for p in model.parameters()) == plain


def test_one_linear_at_two_places_is_replaced_at_both():
    model = tiny("llama", torch.float32)
    one, other = (block.attention.branch for block in model.stack.blocks)
    other.q = one.q
    learned(LORA.apply(model))
    assert one.q is other.q
    before = logits(model)
    tuning.merge(model)
    assert one.q is other.q
    assert float((logits(model) - before).abs().max()) < 1e-5


# Numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-9)], ids=str)
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_applied_equals_merged(family, dtype, bound):
    model = adapted(family, dtype, EVERYTHING)
    applied, plain = logits(model), logits(tiny(family, dtype))
    assert float((applied - plain).abs().max()) > 0.1
    merged = tuning.merge(model)
    assert float((logits(merged) - applied).abs().max()) / max(1.0, float(applied.abs().max())) < bound
    assert {name: tensor.shape for name, tensor in weights_of(merged).items()} == {
        name: tensor.shape for name, tensor in weights_of(tiny(family)).items()
    }
    assert all(type(module) is nn.Linear for module in merged.modules() if hasattr(module, "in_features"))
    assert all(parameter.requires_grad for parameter in merged.parameters())
    assert merged.transforms == ()


def test_a_merge_that_forgets_the_scale_is_seen(monkeypatch):
    model = adapted()
    applied = logits(model)
    for module in model.modules():
        if hasattr(module, "lora_a"):
            module.scale = module.scale + 1
    assert float((logits(tuning.merge(model)) - applied).abs().max()) > 1e-2


def test_a_new_adapter_changes_nothing_and_only_adapters_learn():
    model = tiny("llama", torch.float32)
    before = logits(model)
    LORA.apply(model)
    assert torch.equal(logits(model), before)
    assert {name.rpartition(".")[2] for name, p in model.named_parameters() if p.requires_grad} == {"lora_a", "lora_b"}
    model.logits(IDS).sum().backward()
    assert all((p.grad is not None) == p.requires_grad for p in model.parameters())


def test_the_seed_alone_decides_what_an_adapter_begins_with():
    first, same, other = (
        weights_of(LORA.apply(tiny("llama"), seed))["stack.blocks.0.attention.branch.q.lora_a"] for seed in (1, 1, 2)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert float(first.abs().max()) <= 32**-0.5


def test_dropout_is_on_what_goes_into_the_adapter_and_only_in_training():
    model = adapted(transform=LoRA(rank=2, dropout=0.5))
    assert torch.equal(logits(model), logits(adapted(transform=LoRA(rank=2))))
    model.train()
    assert not torch.equal(logits(model), logits(model))


def test_the_formula_is_that_of_the_reference(tmp_path):
    """``W + alpha / r B A`` put into transformers' own Llama gives the logits of the adapted one."""
    folder = saved(tmp_path / "model", "llama", torch.float64)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    model = adapted("llama", torch.float64)
    ours = weights_of(model)
    with torch.no_grad():
        for number, layer in enumerate(theirs.model.layers):
            for name, linear in (("q", layer.self_attn.q_proj), ("v", layer.self_attn.v_proj)):
                a, b = (ours[f"stack.blocks.{number}.attention.branch.{name}.lora_{x}"] for x in "ab")
                linear.weight += 6.0 / 2 * b @ a
        assert float((theirs(IDS).logits - logits(model)).abs().max()) < 1e-6


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_integer_weights_compute_what_the_dequantised_ones_do(family):
    model, plain = tiny(family, torch.float32), tiny(family, torch.float32)
    whole = logits(Quantise().apply(model))
    assert float((logits(tuning.merge(model)) - whole).abs().max()) < 1e-5  # few rows: a kernel with sums of its own
    by_hand = dict(plain.named_parameters())
    with torch.no_grad():
        for name, weight in by_hand.items():
            if ".blocks." in name and weight.dim() == 2:
                scale = (weight.abs().amax(1, keepdim=True) / 127).half().float()
                weight.copy_((weight / scale).round() * scale)
    assert torch.equal(logits(plain), whole)
    assert 0 < float((whole - logits(tiny(family, torch.float32))).abs().max()) < 0.2


def test_a_row_of_zeros_stays_zero_and_the_peak_is_as_near_as_a_scale_in_float16():
    model = tiny("llama", torch.float32)
    linear = model.stack.blocks[0].attention.branch.q
    with torch.no_grad():
        linear.weight[0] = 0
    peak = linear.weight.detach().abs().amax(1)
    Quantise().apply(model)
    quantised = model.stack.blocks[0].attention.branch.q
    matrix, scale = quantised.matrix(), quantised.weight_scale[:, 0]
    assert not matrix[0].any()
    assert torch.equal(scale, scale.half().float())
    assert torch.equal(scale[1:], (peak / 127).half().float()[1:])
    assert torch.allclose(matrix.abs().amax(1), peak, rtol=2**-11 + 1e-6)


def test_an_adapter_over_integer_weights():
    model = learned(LORA.apply(Quantise().apply(tiny("llama", torch.float32))))
    applied = logits(model)
    model.logits(IDS).sum().backward()
    assert all((p.grad is not None) == name.endswith(("lora_a", "lora_b")) for name, p in model.named_parameters())
    assert [t["kind"] for t in tuning.describe(model)["transforms"]] == ["quantise", "lora"]
    assert float((logits(tuning.merge(model)) - applied).abs().max()) < 1e-5


# Refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LoRA(rank=0), "lora: rank is 0"),
        (lambda: LoRA(alpha=float("nan")), "lora: alpha is nan"),
        (lambda: LoRA(dropout=1.0), "lora: dropout is 1.0"),
        (lambda: LoRA(targets=("*.nothing",)).apply(tiny("llama")), r"no linear is called '\*\.nothing'"),
        (lambda: LoRA(targets=()).apply(tiny("llama")), "name no linear"),
        (lambda: LoRA(leave=("*",)).apply(tiny("llama")), "name no linear"),
        (lambda: LORA.apply(adapted()), r"blocks\.0\.attention\.branch\.q has an adapter already"),
        (lambda: Quantise().apply(adapted()), r"q is no plain linear any more"),
        (lambda: Quantise().apply(Quantise().apply(tiny("llama"))), "is in whole numbers already"),
    ],
)
def test_senseless_settings_are_refused(make, says):
    with pytest.raises(UsageError, match=says):
        make()


def test_a_router_is_refused_by_name_and_left_out_by_default():
    rules = load_family("mixtral")
    with pytest.raises(UsageError, match=r"router\.linear belongs to a SoftmaxRouter"):
        LoRA(targets=("*",)).apply(rules.spec(rules.TINY).build(0))
    model = Quantise().apply(rules.spec(rules.TINY).build(0))
    assert not any("router" in name for name in dict(model.named_parameters()) if name.endswith("_scale"))


def test_numbers_that_are_none_are_not_quantised():
    model = tiny("llama")
    with torch.no_grad():
        model.stack.blocks[1].attention.branch.k.weight[0, 0] = float("nan")
    with pytest.raises(UsageError, match=r"blocks\.1\.attention\.branch\.k\.weight has numbers that are not finite"):
        Quantise().apply(model)
    assert not model.transforms


def test_a_quantised_model_is_not_trained():
    model = Quantise().apply(tiny("llama"))
    with pytest.raises(UsageError, match=r"q\.weight is stored in int8"):
        tuning.refuse_untrainable(model)
    tuning.refuse_untrainable(LORA.apply(model))
    with pytest.raises(UsageError, match="every tensor is frozen"):
        tuning.refuse_untrainable(tiny("llama").requires_grad_(False))


# Files -------------------------------------------------------------------------------------------------------------

BOTH = (Quantise(), LORA)


def transformed(family, transforms, dtype=torch.float32):
    model = tiny(family, dtype)
    for transform in transforms:
        transform.apply(model)
    return learned(model)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "transforms", [(), (LORA,), (Quantise(),), BOTH], ids=lambda some: "+".join(t.kind for t in some)
)
@pytest.mark.parametrize("family", ["llama", "gpt2", "rnnsearch"])
def test_our_own_layout_gives_back_every_byte(tmp_path, family, transforms, dtype):
    if family == "rnnsearch":
        transforms = tuple(LoRA(rank=2, targets=("*.readout",)) for _ in transforms[:1])
    model = transformed(family, transforms, dtype)
    save_own(tmp_path, model, TOKENIZER, family=family, config=ALL[family])
    stored = read(tmp_path)
    before, after = weights_of(model), weights_of(stored.model)
    assert list(before) == list(after)
    assert all(before[n].dtype == after[n].dtype and torch.equal(before[n], after[n]) for n in before)
    assert stored.model.transforms == transforms
    assert (stored.family, stored.tokenizer.fingerprint) == (family, TOKENIZER.fingerprint)
    learns = [{n for n, p in m.named_parameters() if p.requires_grad} for m in (model, stored.model)]
    assert learns[0] == learns[1]


def test_a_model_of_a_user_goes_through_files_and_comes_out_merged(tmp_path):
    lm = load(saved(tmp_path / "base", "llama"), say=lambda line: None)
    learned(LORA.apply(Quantise().apply(lm.model)))
    text = lm.generate("the cat", max_new_tokens=8)
    lm.save(tmp_path / "own", layout="own")
    again = load(tmp_path / "own", say=lambda line: None)
    assert again.generate("the cat", max_new_tokens=8) == text
    with pytest.raises(
        UsageError, match=r"Hugging Face's layout cannot hold a model with transforms \(quantise, lora\)"
    ):
        again.save(tmp_path / "hf")
    assert not (tmp_path / "hf").exists()
    tuning.merge(again.model)
    again.save(tmp_path / "hf")
    assert load(tmp_path / "hf", say=lambda line: None).generate("the cat", max_new_tokens=8) == text


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "auto", "stored"])
def test_whole_numbers_stay_so_in_every_dtype(tmp_path, dtype):
    save_own(tmp_path, transformed("llama", BOTH, torch.float64), TOKENIZER)
    model = load(tmp_path, dtype=dtype, say=lambda line: None).model
    expected = getattr(torch, dtype, torch.float64)
    assert {p.dtype for p in model.parameters()} == {torch.int8, expected}


def test_export_refuses_transforms_and_merges_when_asked(tmp_path):
    stored = Stored(
        tmp_path, adapted(intermediate_size=64), "llama", {**CONFIGS["llama"], "intermediate_size": 64}, {}, TOKENIZER
    )
    for write, what in ((export_gguf, "GGUF"), (export_hf, "Hugging Face's layout")):
        with pytest.raises(UsageError, match=rf"{what} cannot hold a model with transforms \(lora\)") as caught:
            write(stored, tmp_path / "out")
        assert "--merge" in caught.value.hint
        assert not (tmp_path / "out").exists()


class Wrapped(nn.Module):
    """A linear map with a low-rank addition, as other libraries leave it."""

    def __init__(self, linear):
        super().__init__()
        self.base, self.lora_a = linear, nn.Linear(linear.in_features, 2, bias=False)

    def forward(self, x):
        return self.base(x)


class Beside(nn.Linear):
    """A linear with tensors of its own beside the usual ones, the weight under its name."""

    def __init__(self, linear):
        super().__init__(linear.in_features, linear.out_features, bias=False)
        self.weight = linear.weight
        self.lora_a = nn.Parameter(torch.zeros(2, linear.in_features))


def whole(linear):
    module = nn.Module()
    module.weight = nn.Parameter(linear.weight.detach().round().to(torch.int8), requires_grad=False)
    module.register_buffer("weight_scale", torch.ones(linear.out_features, 1))
    return module


def extra_parameter(model):
    model.extra = nn.Parameter(torch.ones(3))


def extra_buffer(model):
    model.head.register_buffer("extra", torch.ones(3))


def replaced(make):
    def change(model):
        branch = model.stack.blocks[1].attention.branch
        branch.q = make(branch.q)

    return change


Q = r"stack\.blocks\.1\.attention\.branch\.q"
STRANGE = {
    "a parameter": (extra_parameter, "extra"),
    "a buffer": (extra_buffer, r"head\.extra"),
    "a wrapper that renames": (replaced(Wrapped), rf"{Q}\.base\.weight"),
    "tensors beside": (replaced(Beside), rf"{Q}\.lora_a"),
    "integers with a scale": (replaced(whole), rf"{Q}\.weight"),
    "a head that is no longer tied": (
        lambda model: setattr(model.head.vocabulary, "weight", nn.Parameter(model.head.vocabulary.weight.detach() + 1)),
        r"head\.vocabulary\.weight",
    ),
}


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("layout", ["own", "hf", "gguf"])
def test_a_tensor_that_nothing_describes_is_refused_by_name_in_every_layout(tmp_path, layout, strange):
    change, name = STRANGE[strange]
    config = {**CONFIGS["llama"], "intermediate_size": 64, "tie_word_embeddings": True}
    model = tiny("llama", torch.float32, **config)
    change(model)
    stored = Stored(tmp_path / "from", model, "llama", config, {}, TOKENIZER)
    write = {
        "own": lambda: save_own(tmp_path / "out", model, TOKENIZER),
        "hf": lambda: save_model(tmp_path / "out", model, "llama", config, TOKENIZER),
        "gguf": lambda: export_gguf(stored, tmp_path / "out"),
    }[layout]
    with pytest.raises(UsageError, match=name):
        write()
    assert not (tmp_path / "out").exists()


def spec_of(folder, change):
    content = json.loads((folder / "spec.json").read_text())
    change(content)
    (folder / "spec.json").write_text(json.dumps(content))
    (folder / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c["transforms"][0].update(kind="../lora"), "no transform '../lora'"),
        (lambda c: c["transforms"][0].update(kind="_linear"), "no transform '_linear'"),
        (lambda c: c["transforms"][0].update(kind=["lora"]), "no transform"),
        (lambda c: c["transforms"][0].update(width=3), "lora has no field 'width'"),
        (lambda c: c["transforms"][0].update(rank="2"), "rank"),
        (lambda c: c["transforms"][0].update(rank=-1), "rank is -1"),
        (lambda c: c["transforms"][0].update(rank=3), "of another shape"),
        (lambda c: c["transforms"][0].update(rank=2**40), "more than any model has"),
        (lambda c: c["transforms"][0].update(targets=["*.q", "*.nothing"]), "no linear is called"),
        (lambda c: c["transforms"][0].update(targets=["*.q"]), "unexpected"),
        (lambda c: c["transforms"][0].update(targets=[1]), "targets"),
        (lambda c: c["transforms"].append(c["transforms"][0]), "has an adapter already"),
        (lambda c: c.update(transforms="lora"), "transforms is no list"),
        (lambda c: c.update(transforms=["lora"]), "transforms is no list"),
        (lambda c: c.pop("transforms"), "unexpected"),
        (lambda c: c.update(transforms=[{"kind": "quantise"}]), "of whole numbers|missing|of other numbers"),
        (lambda c: c.update(family=3), "family or config is of another type"),
        (lambda c: c.update(config=[3]), "family or config is of another type"),
    ],
)
def test_a_spoilt_list_of_transforms_is_refused_by_name(tmp_path, change, says):
    save_own(tmp_path, adapted(), TOKENIZER, family="llama", config=CONFIGS["llama"])
    spec_of(tmp_path, change)
    with pytest.raises(ModelFileError, match=says):
        read(tmp_path)


def test_floats_where_whole_numbers_belong_are_refused(tmp_path):
    from orrery.checkpoints.tensors import write_tensors

    save_own(tmp_path, Quantise().apply(tiny("llama", torch.float32)), TOKENIZER)
    tensors = read_tensors(tmp_path / "model.safetensors")
    name = next(name for name, tensor in tensors.items() if tensor.dtype == torch.int8)
    (tmp_path / "manifest.json").unlink()
    for dtype in (torch.float32, torch.int16):
        write_tensors(tmp_path / "model.safetensors", {**tensors, name: tensors[name].to(dtype)})
        with pytest.raises(ModelFileError, match="of other numbers"):
            read(tmp_path)


# From Python --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Still(Transform):
    """Nothing learns."""

    kind: ClassVar[str] = "still"

    def apply(self, model, seed=1337):
        model.requires_grad_(False)
        model.transforms = (*model.transforms, self)
        return model


def test_a_transform_from_outside_is_registered_in_python(tmp_path, monkeypatch):
    monkeypatch.setattr(KINDS, "_parts", dict(KINDS._parts))
    assert tuning.names() == ["blocks", "bottleneck", "lora", "prefix", "quantise"]
    assert tuning.register(Still) is Still
    model = tuning.load_transform("still")().apply(tiny("llama"))
    save_own(tmp_path / "out", model)
    assert not any(p.requires_grad for p in read(tmp_path / "out").model.parameters())

    class Other(Still):
        """Another of the same name."""

    with pytest.raises(UsageError, match="still is taken"):
        tuning.register(Other)
