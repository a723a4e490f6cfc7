import json
import logging
import subprocess
from pathlib import Path

import pytest
import torch
import transformers
from tests.goldens.cases import IMAGES

from orrery.checkpoints.store import Checkpoint, CheckpointStore
from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.errors import ModelFileError, RunError, UsageError
from orrery.exchange.reading.files import open_weights
from orrery.exchange.reading.read import Stored, read
from orrery.exchange.reading.weights import weights_of
from orrery.exchange.saving import import_model as importing
from orrery.exchange.saving.card import model_card
from orrery.exchange.saving.save import save_model
from orrery.families import load_family, model_type, names
from orrery.generation.compiled_step import check_kernel
from orrery.nn.spec import to_json
from tiny_models import CONFIGS, TOKENIZER, randomised, saved, tiny

logging.getLogger("transformers").setLevel(logging.ERROR)
CORNERS = [
    ("gpt2", {}),
    ("gpt2", {"tie_word_embeddings": False}),
    ("llama", {}),
    ("llama", {"tie_word_embeddings": True}),
]


def save_again(folder, stored):
    save_model(folder, stored.model, stored.family, stored.config, stored.tokenizer, None, stored.generation)
    return folder


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(("family", "config"), CORNERS, ids=str)
def test_loading_gives_back_what_was_saved_byte_for_byte(tmp_path, family, config, dtype):
    model = tiny(family, dtype, **config)
    stored = read(saved(tmp_path / "a", family, dtype, **config))
    before, after = weights_of(model), weights_of(stored.model)
    assert list(before) == list(after)
    assert all(before[n].dtype == after[n].dtype and torch.equal(before[n], after[n]) for n in before)
    again = save_again(tmp_path / "b", stored)
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name
    assert stored.tokenizer.fingerprint == TOKENIZER.fingerprint
    assert not stored.model.training


@pytest.mark.parametrize(("family", "config"), CORNERS, ids=str)
def test_transformers_loads_it_with_the_same_logits(tmp_path, family, config):
    folder = saved(tmp_path, family, torch.float64, **config)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    ids = torch.randint(0, TOKENIZER.size, (2, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        error = (theirs(ids).logits - read(folder).model.logits(ids)).abs().max()
    assert float(error) < 1e-6  # the reference casts to float32 inside
    assert theirs.generation_config.eos_token_id == TOKENIZER.special("end")
    assert transformers.AutoTokenizer.from_pretrained(folder).encode("the cat") == TOKENIZER.encode("the cat")


@pytest.mark.parametrize("family", CONFIGS)
def test_a_folder_of_transformers_comes_back_tensor_for_tensor(tmp_path, family):
    config = transformers.AutoConfig.for_model(family, **CONFIGS[family], bos_token_id=1, eos_token_id=[2, 3])
    theirs = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    theirs.save_pretrained(tmp_path / "theirs")
    save_again(tmp_path / "ours", read(tmp_path / "theirs"))
    before, after = (read_tensors(tmp_path / name / "model.safetensors") for name in ("theirs", "ours"))
    assert before.keys() == after.keys()
    assert all(before[n].dtype == after[n].dtype and torch.equal(before[n], after[n]) for n in before)
    configs = [transformers.AutoConfig.from_pretrained(tmp_path / name).to_dict() for name in ("theirs", "ours")]
    for config in configs:
        config.pop("_name_or_path", None)
    assert configs[0] == configs[1]


@pytest.mark.parametrize("family", CONFIGS)
def test_shards_are_the_whole(tmp_path, family):
    whole = read_tensors(saved(tmp_path / "a", family) / "model.safetensors")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "a")
    theirs.save_pretrained(tmp_path / "b", max_shard_size="20KB")
    assert (tmp_path / "b" / "model.safetensors.index.json").is_file()
    shards = dict(open_weights(tmp_path / "b"))
    assert shards.keys() == whole.keys()
    assert all(torch.equal(shards[name], whole[name]) for name in whole)


@pytest.mark.parametrize("shard", ["../a.safetensors", "/b/a.safetensors", "a\\b.safetensors", "model.bin", ""])
def test_a_shard_is_a_file_name_in_the_same_folder(tmp_path, shard):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": shard}}))
    with pytest.raises(ModelFileError, match="names the shard"):
        dict(open_weights(tmp_path))


def change(folder, names):
    """Rewrite the weights after ``names`` has changed the mapping in place."""
    tensors = read_tensors(folder / "model.safetensors")
    names(tensors)
    write_tensors(folder / "model.safetensors", tensors)


WTE = "transformer.wte.weight"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: (f / "config.json").unlink(), "neither config.json nor checkpoints"),
        (lambda f: (f / "config.json").write_text("{"), "not JSON"),
        (lambda f: (f / "config.json").write_text("[]"), "no JSON object"),
        (lambda f: (f / "config.json").write_text('{"model_type": "nothing"}'), "no family 'nothing'"),
        (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "pickle"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x08" + b"\0" * 20), "not a sound safetensors"),
        (lambda f: change(f, lambda t: t.pop(WTE)), f"1 missing: {WTE}"),
        (lambda f: change(f, lambda t: t.update(odd=torch.zeros(1))), "1 unexpected: odd"),
        (lambda f: change(f, lambda t: t.update({WTE: torch.zeros(3, 3)})), r"shape \[3, 3\]"),
        (lambda f: change(f, lambda t: t.update({WTE: t[WTE].long()})), "of whole numbers"),
        (lambda f: change(f, lambda t: t.update({"lm_head.weight": t[WTE] + 1})), "two different ones"),
        (lambda f: (f / "tokenizer.json").write_text("{}"), "tokenizer"),
    ],
)
def test_damaged_folders_are_refused_by_name(tmp_path, damage, says):
    damage(saved(tmp_path, "gpt2"))
    with pytest.raises(ModelFileError, match=says):
        read(tmp_path)


def test_a_folder_with_the_runs_of_several_seeds_says_how_to_name_one(tmp_path):
    saved(tmp_path / "seed-1" / "final", "gpt2")
    (tmp_path / "seed-2").mkdir()
    with pytest.raises(ModelFileError, match=r"neither config\.json nor checkpoints") as error:
        read(tmp_path)
    assert error.value.hint == f"it holds runs, such as {tmp_path / 'seed-1'}: name one of them"


def test_a_second_copy_of_a_tied_tensor_is_no_fault(tmp_path):
    folder = saved(tmp_path, "gpt2")
    change(folder, lambda tensors: tensors.update({"lm_head.weight": tensors[WTE].clone()}))
    model = read(folder).model
    assert model.head.vocabulary.weight is model.embed.token.weight


def test_a_missing_path_and_a_malformed_hub_id_are_refused(tmp_path):
    with pytest.raises(ModelFileError, match="does not exist"):
        read(tmp_path / "nothing")
    with pytest.raises(UsageError, match="hub"):
        read("hf:org/name/more")


def test_a_model_is_saved_only_under_the_configuration_that_it_has(tmp_path):
    with pytest.raises(UsageError, match="not what its gpt2 configuration says"):
        save_model(tmp_path / "x", tiny("gpt2"), "gpt2", {**CONFIGS["gpt2"], "n_layer": 3})
    assert not (tmp_path / "x").exists()


def test_the_dtype_is_written_where_the_weights_have_one(tmp_path):
    for dtype in (torch.float32, torch.bfloat16):
        folder = saved(tmp_path / str(dtype), "llama", dtype)
        assert json.loads((folder / "config.json").read_text())["dtype"] == str(dtype).removeprefix("torch.")
    mixed = tiny("llama", torch.float32)
    mixed.stack.final.to(torch.float64)
    save_model(tmp_path / "mixed", mixed, "llama", CONFIGS["llama"], TOKENIZER)
    assert not {"dtype", "torch_dtype"} & set(json.loads((tmp_path / "mixed" / "config.json").read_text()))


def test_an_import_that_reads_back_other_numbers_leaves_nothing(tmp_path, monkeypatch):
    source = saved(tmp_path / "a", "gpt2")
    other = read(saved(tmp_path / "b", "gpt2"))
    with torch.no_grad():
        other.model.stack.final.weight += 1
    monkeypatch.setattr(importing, "read", lambda folder: other)
    with pytest.raises(RunError, match="came back with other numbers"):
        importing.import_model(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_pickle_is_opened_only_where_that_is_allowed_and_given_time(tmp_path, monkeypatch):
    folder = saved(tmp_path / "a", "gpt2")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"0" * 100)
    with pytest.raises(ModelFileError, match="is a pickle") as caught:
        importing.import_model(folder, tmp_path / "out")
    assert "--allow-pickle" in caught.value.hint

    def slow(command, timeout, **how):
        assert timeout >= 60
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(importing.subprocess, "run", slow)
    with pytest.raises(ModelFileError, match="took more than 120 s"):
        importing.import_model(folder, tmp_path / "out", allow_pickle=True)
    with (folder / "pytorch_model.bin").open("wb") as stream:
        stream.truncate(10**9)
    with pytest.raises(ModelFileError, match="took more than 220 s"):
        importing.import_model(folder, tmp_path / "out", allow_pickle=True)


def test_what_is_stored_runs_as_this_machine_can():
    stored = Stored(Path("x"), tiny("gpt2"))
    check_kernel(stored.kernel)
    assert stored.kernel == "auto"


def test_a_save_that_fails_leaves_the_old_folder_as_it_was(tmp_path, monkeypatch):
    folder = saved(tmp_path, "gpt2")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    monkeypatch.setattr("orrery.exchange.saving.save.fsync_file", lambda path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        saved(tmp_path, "gpt2", torch.float64)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_card_says_what_is_known_and_what_is_not(tmp_path):
    facts = {"name": "demo", "data": "the | corpus", "tokens": 1_000_000, "evaluation": {"a|b": 1.61}}
    save_model(tmp_path, tiny("gpt2"), "gpt2", CONFIGS["gpt2"], card=facts)
    card = (tmp_path / "README.md").read_text()
    for part in ("# demo", "the | corpus", "1,000,000", r"| a\|b | 1.61 |", "Not recorded.", "## Limits"):
        assert part in card


@pytest.mark.parametrize(
    ("family", "architecture", "tag"),
    [
        ("gpt2", "GPT2LMHeadModel", "text-generation"),
        ("t5", "T5ForConditionalGeneration", "text2text-generation"),
        ("bert", "BertForMaskedLM", "fill-mask"),
        ("bert", "BertForPreTraining", "fill-mask"),
        ("deberta", "DebertaForSequenceClassification", "text-classification"),
        ("deberta_v2", "DebertaV2ForTokenClassification", "token-classification"),
        ("roberta", "RobertaForQuestionAnswering", "question-answering"),
        ("bert", "BertModel", "feature-extraction"),
        ("deberta", "DebertaModel", "feature-extraction"),
        ("electra", "ElectraForPreTraining", "feature-extraction"),
    ],
)
def test_the_card_names_the_task_of_the_model(family, architecture, tag):
    rules = load_family(family)
    text = model_card(family, rules.spec({**rules.TINY, "architectures": [architecture]}).build(0), {})
    assert f'pipeline_tag: "{tag}"' in text
    assert ("continues text" in text, "language model" in text) == (tag == "text-generation",) * 2


TAGS = {"Decoder": "text-generation", "EncoderDecoder": "text2text-generation"}
OTHERS = {
    **dict.fromkeys(IMAGES, "image-classification"),
    "vision_encoder_decoder": "image-to-text",
    "blip": "image-to-text",
    "yolos": "object-detection",
    "segformer": "image-segmentation",
    "vit_mae": "image-feature-extraction",
    "clip": "zero-shot-image-classification",
    "clip_text_model": "feature-extraction",
    "clip_vision_model": "image-feature-extraction",
    "siglip": "zero-shot-image-classification",
    "siglip_text_model": "feature-extraction",
    "siglip_vision_model": "image-feature-extraction",
}


@pytest.mark.parametrize("family", names())
def test_the_card_of_every_family_says_what_the_model_is_and_who_reads_it(family):
    rules = load_family(family)
    model = rules.spec(rules.TINY).build(0)
    kind = type(model).__name__
    tag = OTHERS.get(family, TAGS.get(kind, "fill-mask"))
    text = model_card(family, model, {})
    assert f'pipeline_tag: "{tag}"' in text
    known = model_type(family) in transformers.CONFIG_MAPPING
    assert f'library_name: "{"transformers" if known else "orrery"}"' in text
    assert ("language model" in text) == (kind == "Decoder")


def test_the_card_of_an_image_encoder_without_a_head():
    rules = load_family("vit")
    bare = rules.spec({**rules.TINY, "architectures": ["ViTModel"]}).build(0)
    assert 'pipeline_tag: "image-feature-extraction"' in model_card("vit", bare, {})


class Wrapped(torch.nn.Module):
    """A linear map with a low-rank addition, as an adapter leaves it."""

    def __init__(self, linear):
        super().__init__()
        self.base, self.down = linear, torch.nn.Linear(linear.in_features, 2, bias=False)
        self.up = torch.nn.Linear(2, linear.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


@pytest.mark.parametrize(("family", "part"), [("llama", "q"), ("gpt2", "q"), ("gpt2", "v")])
def test_saving_a_wrapped_projection_is_refused_by_name_and_writes_nothing(tmp_path, family, part):
    model = tiny(family)
    attention = model.stack.blocks[1].attention.branch
    setattr(attention, part, Wrapped(getattr(attention, part)))
    with pytest.raises(UsageError, match=rf"blocks\.1\.attention\.branch\.{part}\.base\.weight"):
        save_model(tmp_path / "model", model, family, CONFIGS[family])
    assert not (tmp_path / "model").exists()


def test_saving_a_buffer_is_refused_by_name(tmp_path):
    model = tiny("llama")
    model.head.register_buffer("scale", torch.ones(3))
    with pytest.raises(UsageError, match=r"no parameters.*head\.scale"):
        save_model(tmp_path / "model", model, "llama", CONFIGS["llama"])


READ_BY_THE_ARCHITECTURE = {
    "camembert": {"pad_token_id": 1},
    "roberta": {"pad_token_id": 1},
    "t5": {"pad_token_id": 0},
    "xlm_roberta": {"pad_token_id": 1},
    "xlm_roberta_xl": {"pad_token_id": 1},
}


@pytest.mark.parametrize("family", names())
def test_saving_invents_no_control_token(tmp_path, family):
    rules = load_family(family)
    model = randomised(rules.spec(rules.TINY).build(0))
    save_model(tmp_path, model, family, rules.TINY)
    written = json.loads((tmp_path / "config.json").read_text())
    keys = ("bos_token_id", "eos_token_id", "pad_token_id")
    expected = {key: rules.TINY.get(key) for key in keys} | READ_BY_THE_ARCHITECTURE.get(family, {})
    assert {key: written[key] for key in keys} == expected
    stated = {key: id for key, id in expected.items() if id is not None}
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    # Without it transformers does not generate.
    assert generation.pop("decoder_start_token_id", None) == model.first_token
    assert generation == stated


def test_a_control_token_that_a_target_begins_with_is_written(tmp_path):
    rules = load_family("vision_encoder_decoder")
    config = {key: value for key, value in rules.TINY.items() if key != "decoder_start_token_id"}
    save_model(tmp_path, randomised(rules.spec(config).build(0)), "vision_encoder_decoder", config)
    assert json.loads((tmp_path / "config.json").read_text())["bos_token_id"] == 50256


def run_folder(tmp_path, steps=(100, 200), best=None):
    """A run as training leaves it: checkpoints, a recipe, no final model."""
    store = CheckpointStore(tmp_path / "run" / "checkpoints", keep=9)
    store.open()
    for step in steps:
        model = tiny("llama")
        with torch.no_grad():
            model.embed.token.weight.fill_(step)
        store.save(Checkpoint(step, weights_of(model), {}, {}, to_json(model.spec)), best=step == best)
    config = {key: value for key, value in CONFIGS["llama"].items() if key != "vocab_size"}
    recipe = json.dumps({"model": {"family": "llama", "config": config}})
    (tmp_path / "run" / "config.yaml").write_text(recipe)
    return tmp_path / "run"


def which(path):
    said = []
    stored = read(path, said.append)
    return int(stored.model.embed.token.weight[0, 0]), "".join(said)


def test_a_run_is_its_final_model_else_its_best_else_its_newest(tmp_path):
    run = run_folder(tmp_path)
    assert which(run) == (200, f"{run}: the newest checkpoint, step 200")
    assert which(run / "checkpoints") == (200, f"{run / 'checkpoints'}: the newest checkpoint, step 200")
    (run / "checkpoints" / "best").write_text("step-000100\n")
    assert which(run) == (100, f"{run}: the best checkpoint, step 100")
    assert which(run / "checkpoints" / "step-000200") == (200, "")
    saved(run / "final", "llama")
    assert read(run).folder == run / "final"


def test_a_checkpoint_knows_its_run_and_can_be_exported(tmp_path):
    run = run_folder(tmp_path)
    TOKENIZER.save(run)
    stored = read(run)
    assert (stored.family, stored.tokenizer.fingerprint) == ("llama", TOKENIZER.fingerprint)
    again = read(save_again(tmp_path / "out", stored))
    assert all(torch.equal(weights_of(stored.model)[n], t) for n, t in weights_of(again.model).items())


def test_a_final_model_outside_the_families_has_our_own_names(tmp_path):
    model = tiny("llama")
    (tmp_path / "run" / "final").mkdir(parents=True)
    write_tensors(tmp_path / "run" / "final" / "model.safetensors", weights_of(model))
    (tmp_path / "run" / "final" / "spec.json").write_text(json.dumps(to_json(model.spec)))
    stored = read(tmp_path / "run")
    assert stored.model.spec == model.spec
    assert stored.family is None


def test_a_checkpoint_without_its_manifest_is_refused(tmp_path):
    folder = run_folder(tmp_path) / "checkpoints" / "step-000200"
    (folder / "manifest.json").unlink()
    with pytest.raises(ModelFileError, match="manifest"):
        read(folder)


def test_a_changed_byte_of_a_checkpoint_is_found(tmp_path):
    folder = run_folder(tmp_path) / "checkpoints" / "step-000200"
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelFileError, match="sha256"):
        read(folder)
