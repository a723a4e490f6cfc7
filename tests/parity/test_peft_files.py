"""Adapters as files: what peft writes gives its logits here, and what is written here gives ours in peft."""

import json
import shutil
import warnings

import pytest
import tokenizers
import torch
import transformers

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # theirs, about other libraries
    import peft

import orrery
from orrery.cli.program import run as main
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.read import read
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.tuning import merge
from orrery.tuning.lora import AdaptedLinear, LoRA
from orrery.tuning.peft import load_adapter, save_adapter
from orrery.tuning.quantise import Quantise
from tiny_models import randomised

# Each asks transformers, or torch, by a name that is to go; GPT-2's matrices are turned, of which peft tells.
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
FAMILIES = {
    "bert": ["query", "value", "dense"],
    "roberta": ["query", "key", "value"],
    "distilbert": ["q_lin", "lin2"],
    "gpt2": ["c_attn", "c_fc", "mlp.c_proj"],
    "gpt_neox": ["query_key_value", "dense"],
    "bloom": ["query_key_value"],
    "falcon": ["query_key_value"],
    "llama": ["q_proj", "v_proj", "down_proj"],
    "mistral": ["q_proj", "k_proj", "gate_proj"],
    "gemma2": ["q_proj", "o_proj"],
    "phi3": ["qkv_proj", "gate_up_proj"],
    "t5": ["q", "v", "wo"],
    "bart": ["q_proj", "fc1", "out_proj"],
    "albert": ["query", "ffn"],
}


@pytest.fixture(scope="module", params=FAMILIES)
def base(request, tmp_path_factory):
    """The folder of a tiny model of the family."""
    folder, rules = tmp_path_factory.mktemp(request.param) / "base", load_family(request.param)
    save_model(folder, randomised(rules.spec(rules.TINY).build(0)), request.param, rules.TINY)
    return folder


def theirs_of(folder, dtype=torch.float64):
    config = json.loads((folder / "config.json").read_text())
    cls = getattr(transformers, config["architectures"][0])
    return cls.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


def family_of(folder):
    return json.loads((folder / "config.json").read_text())["model_type"]


def drawn(parameters, seed=5):
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in parameters:
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64) * 0.2)


def inputs_of(spec):
    rng = torch.Generator().manual_seed(2)
    return {name: torch.randint(3, part.vocabulary, (2, 9), generator=rng) for name, part in spec.inputs.items()}


@torch.no_grad()
def both(theirs, ours):
    """Return the logits of the two on the same tokens."""
    names = {"source_ids": "input_ids", "source": "input_ids", "ids": "decoder_input_ids"}
    batch = inputs_of(ours.spec)
    if len(batch) == 1:
        names["ids"] = "input_ids"
    given = {names[name]: ids for name, ids in batch.items()}
    return theirs(**given).logits, ours.logits(*batch.values())


def apart(a, b):
    return float((a - b).abs().max() / b.abs().max().clamp(min=1))


def written_by_peft(base, folder, *, tokens=None, **settings):
    """Let peft write an adapter with random numbers, and return its model; it may be taught more tokens before."""
    task = "SEQ_2_SEQ_LM" if family_of(base) in ("t5", "bart") else None
    config = {"r": 3, "lora_alpha": 5, "target_modules": FAMILIES[family_of(base)], "task_type": task, **settings}
    theirs = theirs_of(base)
    if tokens is not None:
        theirs.resize_token_embeddings(tokens)
    model = peft.get_peft_model(theirs, peft.LoraConfig(**config)).eval()
    drawn(p for name, p in model.named_parameters() if p.requires_grad or "lora_" in name or "modules_to_save" in name)
    model.double().save_pretrained(folder)
    return model


@pytest.mark.parametrize("settings", ["plain", "patterns"])
def test_what_peft_wrote_gives_its_logits(base, tmp_path, settings):
    last = FAMILIES[family_of(base)][-1]
    patterns = {"use_rslora": True, "rank_pattern": {last: 5}, "alpha_pattern": {last: 7}}
    theirs = written_by_peft(base, tmp_path / "adapter", **(patterns if settings == "patterns" else {}))
    stored = read(base)
    stored.model.double()
    load_adapter(stored, tmp_path / "adapter")
    expected, logits = both(theirs, stored.model)
    assert apart(logits, expected) < BOUND.get(family_of(base), 1e-9)
    assert apart(logits, both(theirs_of(base), stored.model)[0]) > 1e-3  # the adapter counts
    merged = both(theirs.merge_and_unload(), merge(stored.model))
    assert apart(*merged) < BOUND.get(family_of(base), 1e-9)


BOUND = {family: 1e-5 for family in ("llama", "mistral", "gemma2", "phi3", "t5", "falcon", "gpt_neox", "bloom")}
"""Their norms, or their rotations, are computed in float32."""


def test_what_is_written_here_gives_our_logits_in_peft(base, tmp_path):
    stored = read(base)
    model = stored.model.double()
    leave = ("head.*", "heads.*")
    LoRA(rank=2, alpha=5, targets=("*.q",), leave=leave).apply(model)
    LoRA(rank=3, alpha=4, targets=("*.v", "*.out"), leave=leave).apply(model)
    drawn(p for name, p in model.named_parameters() if "lora_" in name)
    save_adapter(stored, tmp_path / "adapter")
    theirs = peft.PeftModel.from_pretrained(theirs_of(base), tmp_path / "adapter").double().eval()
    expected, logits = both(theirs, model)
    assert apart(logits, expected) < BOUND.get(family_of(base), 1e-9)
    again = read(base)
    again.model.double()
    load_adapter(again, tmp_path / "adapter")
    assert apart(both(theirs, again.model)[1], logits) < 1e-12
    save_adapter(again, tmp_path / "second")
    files = [(tmp_path / name / "adapter_model.safetensors").read_bytes() for name in ("adapter", "second")]
    assert files[0] == files[1]


def test_merged_is_applied_and_is_pefts_in_single_precision(base, tmp_path):
    written_by_peft(base, tmp_path / "adapter")
    stored = read(base)
    stored.model.float()
    load_adapter(stored, tmp_path / "adapter")
    theirs = peft.PeftModel.from_pretrained(theirs_of(base, torch.float32), tmp_path / "adapter").float().eval()
    expected, applied = both(theirs, stored.model)
    merged = both(theirs, merge(stored.model))[1]
    assert applied.dtype == expected.dtype == torch.float32
    assert apart(merged, applied) < 1e-5
    assert apart(applied, expected) < 1e-5


# The details, on one family each ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder, rules = tmp_path_factory.mktemp("llama") / "base", load_family("llama")
    save_model(folder, randomised(rules.spec(rules.TINY).build(0)), "llama", rules.TINY)
    return folder


@pytest.mark.parametrize(
    "settings",
    [
        {"target_modules": "all-linear"},
        {"target_modules": r".*layers\.1\..*_proj"},
        {"layers_to_transform": [1]},
        {"layers_to_transform": 0, "layers_pattern": "layers"},
        {"exclude_modules": ["layers.0.self_attn.q_proj"]},
        {"lora_dropout": 0.3, "init_lora_weights": "gaussian"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_every_way_to_name_targets(llama, tmp_path, settings):
    theirs = written_by_peft(llama, tmp_path, **settings)
    stored = read(llama)
    stored.model.double()
    transforms = load_adapter(stored, tmp_path)
    assert transforms[0].dropout == settings.get("lora_dropout", 0.0)
    adapted = sum(isinstance(part, AdaptedLinear) for part in stored.model.modules())
    assert adapted == sum(name.endswith("lora_A.default.weight") for name, _ in theirs.named_parameters())
    assert apart(*both(theirs, stored.model)) < 1e-5


def test_a_head_that_was_saved_whole_goes_both_ways(tmp_path):
    config = {
        **load_family("bert").TINY, "architectures": ["BertForSequenceClassification"], "num_labels": 3,
        "id2label": {str(i): f"L{i}" for i in range(3)}, "label2id": {f"L{i}": i for i in range(3)},
    }  # fmt: skip
    config.pop("num_labels")
    model = randomised(load_family("bert").spec(config).build(0))
    save_model(tmp_path / "base", model, "bert", config)
    theirs = written_by_peft(tmp_path / "base", tmp_path / "adapter", task_type="SEQ_CLS")
    stored = read(tmp_path / "base")
    stored.model.double()
    before = both(theirs, stored.model)[1]
    transforms = load_adapter(stored, tmp_path / "adapter")
    assert apart(*both(theirs, stored.model)) < 1e-9
    assert apart(before, both(theirs, stored.model)[0]) > 1e-2
    assert transforms[0].learn == ("heads.sequence.labels.bias", "heads.sequence.labels.weight")
    learns = {name for name, p in stored.model.named_parameters() if p.requires_grad and "lora" not in name}
    assert learns == set(transforms[0].learn)
    save_adapter(stored, tmp_path / "ours")
    again = peft.PeftModel.from_pretrained(theirs_of(tmp_path / "base"), tmp_path / "ours").double().eval()
    assert apart(both(again, stored.model)[0], both(theirs, stored.model)[0]) < 1e-12


def test_a_folder_of_peft_is_loaded_as_a_model(llama, tmp_path, capsys):
    theirs = written_by_peft(llama, tmp_path / "adapter")
    for lm in (
        orrery.load(tmp_path / "adapter", dtype="float64", say=lambda line: None),
        orrery.load(llama, dtype="float64", adapter=tmp_path / "adapter", say=lambda line: None),
    ):
        assert apart(*both(theirs, lm.model)) < 1e-5
    lm.save(tmp_path / "own", layout="own")
    main(["export", str(tmp_path / "own"), "peft", str(tmp_path / "out")])
    assert "peft's layout, llama" in capsys.readouterr().out
    back = peft.PeftModel.from_pretrained(theirs_of(llama), tmp_path / "out").double().eval()
    assert apart(*both(back, lm.model)) < 1e-5


@pytest.fixture(scope="module")
def tied(tmp_path_factory):
    """The same with one table for what is read and what is written."""
    folder, rules = tmp_path_factory.mktemp("tied") / "base", load_family("llama")
    config = {**rules.TINY, "tie_word_embeddings": True}
    save_model(folder, randomised(rules.spec(config).build(0)), "llama", config)
    return folder


@pytest.mark.parametrize("shared", [False, True], ids=["two tables", "one table"])
@pytest.mark.parametrize(
    "settings",
    [
        {"tokens": 80},
        {"tokens": 80, "modules_to_save": ["embed_tokens", "lm_head"]},
        {"tokens": 40},
        {"modules_to_save": ["embed_tokens", "lm_head"]},
        {"modules_to_save": ["embed_tokens"]},
        {"modules_to_save": ["embed_tokens"], "ensure_weight_tying": True},
        {"trainable_token_indices": [7, 3]},
        {"trainable_token_indices": {"embed_tokens": [5]}},
    ],
    ids=str,
)
def test_tables_of_tokens_that_were_taught_or_resized_are_read(llama, tied, tmp_path, settings, shared):
    base = tied if shared else llama
    theirs = written_by_peft(base, tmp_path / "adapter", **settings)
    ids = torch.randint(3, 40, (2, 9), generator=torch.Generator().manual_seed(2))
    for lm in (
        orrery.load(tmp_path / "adapter", dtype="float64", say=lambda line: None),
        orrery.load(base, dtype="float64", adapter=tmp_path / "adapter", say=lambda line: None),
    ):
        with torch.no_grad():
            expected, logits = theirs(input_ids=ids).logits, lm.logits(ids)
        assert expected.shape == logits.shape
        assert apart(logits, expected) < 1e-5
        assert lm.model.spec.vocabulary == settings.get("tokens", 61)


@pytest.mark.parametrize("bias", ["all", "lora_only"])
def test_biases_that_were_trained_are_read(tmp_path, bias):
    rules = load_family("gpt2")
    save_model(tmp_path / "base", randomised(rules.spec(rules.TINY).build(0)), "gpt2", rules.TINY)
    theirs = written_by_peft(tmp_path / "base", tmp_path / "adapter", bias=bias)
    stored = read(tmp_path / "adapter")
    stored.model.double()
    assert apart(*both(theirs, stored.model)) < 1e-7  # their biases are rounded to the single precision of the base
    with pytest.raises(UsageError, match="has an adapter, and learns whole too"):
        save_adapter(stored, tmp_path / "again")


def test_the_tokenizer_and_the_template_of_an_adapter_are_taken(llama, tmp_path):
    """The base may have none, or another: what was learnt is to answer texts that were written by these."""
    written_by_peft(llama, tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0]['content'] }}!")
    words = {"[UNK]": 0, "the": 1, "cat": 2}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    model.save(str(tmp_path / "tokenizer.json"))
    said = []
    stored = read(tmp_path, said.append)
    assert stored.tokenizer.size == 3
    assert stored.chat == {"default": "{{ messages[0]['content'] }}!"}
    assert any("its own tokenizer and chat template" in line for line in said)


def test_a_config_beside_an_adapter_is_no_model(llama, tmp_path):
    theirs = written_by_peft(llama, tmp_path)
    shutil.copy(llama / "config.json", tmp_path)
    stored = read(tmp_path)
    stored.model.double()
    assert apart(*both(theirs, stored.model)) < 1e-5
    shutil.copy(llama / "model.safetensors", tmp_path)
    with pytest.raises(ModelFileError, match=r"a whole model \(model.safetensors\) and an adapter"):
        read(tmp_path)


def test_a_base_is_found_in_the_cache_of_the_hub(llama, tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    theirs = written_by_peft(llama, tmp_path / "adapter")
    edited(tmp_path / "adapter", base_model_name_or_path="them/tiny")
    with pytest.raises(ModelFileError, match="is for the base 'them/tiny'") as refused:
        read(tmp_path / "adapter")
    assert "hf download them/tiny" in refused.value.hint
    commit, cache = "a" * 40, tmp_path / "hub" / "models--them--tiny"
    shutil.copytree(llama, cache / "snapshots" / commit)
    for name in ("main", "v1"):
        (cache / "refs").mkdir(exist_ok=True)
        (cache / "refs" / name).write_text(commit)
    for revision in (None, "main", "v1", commit):
        edited(tmp_path / "adapter", revision=revision)
        stored = read(tmp_path / "adapter")
        stored.model.double()
        assert apart(*both(theirs, stored.model)) < 1e-5
    edited(tmp_path / "adapter", revision="v2")
    with pytest.raises(ModelFileError, match="is for the base 'them/tiny'"):
        read(tmp_path / "adapter")


def edited(folder, **changes):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"peft_type": "IA3"}, "adapter of the type 'IA3'"),
        ({"use_dora": True}, "DoRA"),
        ({"init_lora_weights": "pissa"}, "began with 'pissa'"),
        ({"layer_replication": [[0, 2]]}, "asks for layer_replication"),
        ({"r": 4}, r"A and B of model\.layers\.0\.\S+ have the shapes"),
        ({"r": "4"}, "r = '4' is no such number"),
        ({"lora_dropout": 3}, "cannot be meant: lora: dropout is 3"),
        ({"rank_pattern": {"(a+)+": 4}}, "which is no name of a module"),
        ({"target_modules": ["q_proj", "v_proj", "down_proj", "up_proj"]}, "the file lacks"),
        ({"modules_to_save": ["lm_head"]}, r"the file lacks lm_head\.weight"),
        ({"base_model_name_or_path": "meta/llama"}, "which is no folder of a model here"),
    ],
)
def test_what_is_not_read_is_refused_by_name(llama, tmp_path, changes, says):
    written_by_peft(llama, tmp_path)
    edited(tmp_path, **changes)
    with pytest.raises(ModelFileError, match=says):
        read(tmp_path) if "base_model_name_or_path" in changes else load_adapter(read(llama), tmp_path)


def test_other_files_and_other_bases_are_refused(llama, tmp_path):
    written_by_peft(llama, tmp_path / "adapter")
    rules = load_family("gpt2")
    save_model(tmp_path / "gpt2", randomised(rules.spec(rules.TINY).build(0)), "gpt2", rules.TINY)
    with pytest.raises(ModelFileError, match="is no matrix of this model"):
        load_adapter(read(tmp_path / "gpt2"), tmp_path / "adapter")
    with pytest.raises(UsageError, match="has an adapter already"):
        load_adapter(read(tmp_path / "adapter"), tmp_path / "adapter")
    shutil.move(tmp_path / "adapter" / "adapter_model.safetensors", tmp_path / "adapter" / "adapter_model.bin")
    with pytest.raises(ModelFileError, match="pickle, which can run any code"):
        load_adapter(read(llama), tmp_path / "adapter")


def test_an_adapter_of_mlx_is_told_apart(llama, tmp_path):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"fine_tune_type": "lora", "model": "mlx-community/x"}))
    (tmp_path / "adapters.safetensors").write_bytes(b"")
    for opened in (lambda: read(tmp_path), lambda: load_adapter(read(llama), tmp_path)):
        with pytest.raises(ModelFileError, match="an adapter of mlx-lm") as refused:
            opened()
        assert "mlx_lm.fuse" in refused.value.hint


def test_what_peft_cannot_hold_is_not_written(llama, tmp_path):
    stored = read(llama)
    with pytest.raises(UsageError, match="no adapter to write"):
        save_adapter(stored, tmp_path / "out")
    LoRA(targets=("*.q",)).apply(Quantise().apply(stored.model))
    with pytest.raises(UsageError, match="cannot hold the transforms quantise"):
        save_adapter(stored, tmp_path / "out")
    rules = load_family("gpt_oss")
    save_model(tmp_path / "experts", randomised(rules.spec(rules.TINY).build(0)), "gpt_oss", rules.TINY)
    stored = read(tmp_path / "experts")
    LoRA(targets=("*experts*",)).apply(stored.model)
    with pytest.raises(UsageError, match=r"experts\.\S+ is no matrix of its own"):
        save_adapter(stored, tmp_path / "out")
    assert not (tmp_path / "out").exists()
