"""Folders that transformers, peft and the trainers around them write load, or are refused by name with a way on."""

import inspect
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor
from transformers import AutoTokenizer, LlamaForCausalLM

import orrery
from orrery.cli.program import run
from orrery.errors import ModelFileError, OrreryError
from orrery.families import load_family
from orrery.nn.heads import Headless
from parity import oracle, tool_folders
from parity.helper import channels_last, error
from parity.keys import inputs
from parity.oracle import REFERENCED
from parity.stand_ins import STAND_INS

IDS = torch.tensor([[5, 6, 7, 8, 30, 99, 100], [5, 9, 12, 33, 1, 2, 0]])
TEXTS = (tool_folders.TEXT, "<s>the cat</s>", "<tool> <|im_end|> the", "  x", "")


def quiet(folder: Path, dtype: str = "float32") -> Any:
    return orrery.load(folder, "cpu", dtype, say=lambda line: None)


# Every class of every family ----------------------------------------------------------------------------------------

NOT_BUILT = (
    "ForMultipleChoice", "DoubleHeadsModel", "ForMaskedImageModeling", "BertLMHeadModel", "ViTMAEModel", "Backbone",
)  # fmt: skip
OF_DECODERS = ("ForTokenClassification", "ForQuestionAnswering")
ROWS_NOT_BUILT = ("Gemma3TextForSequenceClassification", "OpenAIGPTForSequenceClassification")


def classes_of(family: str) -> list[Any]:
    """Return the classes of the reference that are made from a family's configuration."""
    whole = getattr(transformers, load_family(family).ARCHITECTURE)
    module = oracle.modelling(whole.config_class.model_type)
    return [
        member
        for name in module.__all__
        if inspect.isclass(member := getattr(module, name))
        and issubclass(member, transformers.PreTrainedModel)
        and member.config_class is whole.config_class
        and not name.endswith(("PreTrainedModel", "PretrainedModel"))
        and not name.startswith("Pretrained")
    ]


def is_built(family: str, name: str) -> bool:
    """Say whether Orrery has a class of a family, by what the class is for."""
    whole = load_family(family).ARCHITECTURE
    if name.endswith(NOT_BUILT) or name in ROWS_NOT_BUILT:
        return False
    if family == "blip":
        return name == whole
    if whole.endswith(("ForConditionalGeneration", "MTModel")):
        return name in (whole, whole.replace("ForConditionalGeneration", "Model").replace("MTModel", "Model"))
    if whole.endswith("ForMaskedLM"):
        return not name.endswith("ForCausalLM")
    return not name.endswith(OF_DECODERS)


def numbers(lm: Any, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return what every head says, and the stream of a model without one."""
    batch = dict(zip(lm.model.spec.inputs, given.values(), strict=False))
    batch |= {name: value for name, value in given.items() if name == "noise"}
    bare = isinstance(getattr(lm.model.spec, "head", None), Headless.Spec)
    heads = tuple(name for name in lm.model.spec.head_names if not (bare and name == "language_model"))
    if heads:
        return dict(lm.model(batch, heads))
    return {"hidden": lm.hidden(given["input_ids"]) if "input_ids" in given else lm.model(batch, ("hidden",))["hidden"]}


ANSWERS = {
    "next": ("seq_relationship_logits", "sop_logits"), "masked": ("prediction_logits",), "pooled": ("pooler_output",),
    "boxes": ("pred_boxes",), "similarity": ("logits_per_image",), "images": ("image_embeds",),
    "texts": ("text_embeds",), "embedding": ("text_embeds", "image_embeds"),
}  # fmt: skip
"""What the reference calls the answers of a class with several."""


def expected(theirs: Any, head: str) -> Tensor:
    """Return the reference's number for a head of ours."""
    if head == "span":
        return torch.stack([theirs.start_logits, theirs.end_logits], -1)
    if head == "replaced":
        return theirs.logits[..., None]
    if head == "hidden":
        return channels_last(theirs.last_hidden_state, flat=True)
    for key in ANSWERS.get(head, ()):
        if key in theirs:
            return theirs[key]
    return channels_last(theirs.logits)


@pytest.mark.each_family
@pytest.mark.parametrize("family", sorted(REFERENCED - {"vision_encoder_decoder", *STAND_INS}))
@torch.no_grad()
def test_every_class_of_a_family_loads_or_is_refused_by_name(family: str, tmp_path: Path) -> None:
    rules = load_family(family)
    more = {"word_embed_proj_dim": rules.TINY["hidden_size"]} if family == "opt" else {}
    made = classes_of(family)
    assert any(one.__name__ == rules.ARCHITECTURE for one in made)
    for cls in made:
        name, folder = cls.__name__, tmp_path / cls.__name__
        settings = cls.config_class(**{"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, **rules.TINY, **more})
        how = {"attn_implementation": "sdpa" if family == "falcon" else "eager", "experts_implementation": "eager"}
        with warnings.catch_warnings(), oracle.widened(oracle.modelling(settings.model_type)):
            warnings.simplefilter("ignore")
            model = cls._from_config(settings, **how, dtype=torch.float64)
            oracle.randomise(model, 0)
            model.double().eval().save_pretrained(folder)
            given = inputs(settings)
            theirs = model(**given) if is_built(family, name) else None
        if theirs is None:
            with pytest.raises(ModelFileError, match=name) as told:
                quiet(folder, "float64")
            assert "known" in told.value.hint or f"load the files of {rules.ARCHITECTURE}" in told.value.hint, name
            continue
        lm = quiet(folder, "float64")
        for head, logits in numbers(lm, given).items():
            if name in ("CLIPForImageClassification", "SiglipForImageClassification") and head == "vector":
                continue  # the reference keeps it to itself there; its picture side alone has it as pooled
            if head == "language_model" and "logits" not in theirs:
                assert name.endswith("Model"), name  # an encoder-decoder without its tied head
                assert error(lm.hidden(given["input_ids"]), theirs.encoder_last_hidden_state) < 1e-9, name
            else:
                assert error(logits, expected(theirs, head)) < 1e-9, (name, head)


# What lies around a model -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LlamaForCausalLM]:
    folder = tmp_path_factory.mktemp("base") / "model"
    return folder, tool_folders.plain(folder)


@pytest.mark.parametrize("kind", tool_folders.SAME)
@torch.no_grad()
def test_what_tools_leave_around_a_model_changes_no_number(
    kind: str, base: tuple[Path, LlamaForCausalLM], tmp_path: Path
) -> None:
    folder = tool_folders.copied(base[0], tmp_path / "model", tool_folders.SAME[kind])
    lm, theirs = quiet(folder), AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    assert error(lm.logits(IDS), base[1](IDS).logits) < 1e-5
    for text in TEXTS:
        assert lm.tokenizer.encode(text, special=True) == theirs(text, add_special_tokens=False).input_ids
        assert lm.tokenizer.frame(text).ids == theirs(text, split_special_tokens=True).input_ids
    again = tmp_path / "again"
    lm.save(again)
    assert torch.equal(quiet(again).logits(IDS), lm.logits(IDS))


SAME_ROWS = ("a table that grew", "added_tokens.json")
"""Models that differ from the base in more rows of their tables alone."""


@pytest.mark.parametrize("kind", tool_folders.OTHER)
@torch.no_grad()
def test_other_models_are_those_that_the_reference_reads(
    kind: str, base: tuple[Path, LlamaForCausalLM], tmp_path: Path
) -> None:
    folder = tool_folders.copied(base[0], tmp_path / "model", tool_folders.OTHER[kind])
    theirs = LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    lm, tokenizer = quiet(folder), AutoTokenizer.from_pretrained(folder)
    assert error(lm.logits(IDS), theirs(IDS).logits) < 1e-5
    assert not torch.allclose(lm.logits(IDS)[..., :290], base[1](IDS).logits, atol=1e-4) or kind in SAME_ROWS
    for text in TEXTS:
        assert lm.tokenizer.encode(text, special=True) == tokenizer(text, add_special_tokens=False).input_ids


def test_a_value_head_is_told_of(base: tuple[Path, LlamaForCausalLM], tmp_path: Path) -> None:
    said: list[str] = []
    kind = "trl with a value head"
    orrery.load(
        tool_folders.copied(base[0], tmp_path / "model", tool_folders.SAME[kind]), "cpu", "float32", say=said.append
    )
    assert any("v_head.summary.bias, v_head.summary.weight" in line for line in said)


@pytest.mark.parametrize("parts", [1, 2])
@torch.no_grad()
def test_pickles_are_refused_and_the_command_of_the_hint_reads_them(
    parts: int, base: tuple[Path, LlamaForCausalLM], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tool_folders.copied(base[0], tmp_path / "model", tool_folders.pickled(parts))
    with pytest.raises(ModelFileError, match="a pickle") as told:
        quiet(folder)
    words = told.value.hint.partition("or: orrery ")[2].replace("NEW_FOLDER", str(tmp_path / "new")).split()
    assert run(words) == 0, capsys.readouterr().err
    assert error(quiet(tmp_path / "new").logits(IDS), base[1](IDS).logits) < 1e-5


@pytest.mark.parametrize(("how", "named"), [({}, "model.fp16.safetensors"), ({"max_shard_size": "20KB"}, ".index.")])
@torch.no_grad()
def test_weights_with_the_mark_of_a_variant_are_named_and_load_when_renamed(
    how: dict[str, Any], named: str, base: tuple[Path, LlamaForCausalLM], tmp_path: Path
) -> None:
    folder = tool_folders.copied(base[0], tmp_path / "model", tool_folders.again(variant="fp16", **how))
    with pytest.raises(ModelFileError, match=r"model\.safetensors is missing") as told:
        quiet(folder)
    words = told.value.hint.replace(",", "").split()
    assert named in words[1]
    (folder / words[1]).rename(folder / words[-1])
    assert error(quiet(folder).logits(IDS), base[1](IDS).logits) < 1e-5


@pytest.mark.parametrize("rename", [
    lambda name: f"base_model.model.{name}", lambda name: name.replace("q_proj.", "q_proj.base_layer."),
])  # fmt: skip
def test_a_model_with_an_adapter_around_it_is_refused_by_name(
    rename: Any, base: tuple[Path, LlamaForCausalLM], tmp_path: Path
) -> None:
    folder = tool_folders.copied(base[0], tmp_path / "model", tool_folders.tensors(rename))
    with pytest.raises(ModelFileError, match="adapter of peft that was not merged") as told:
        quiet(folder)
    assert "merge_and_unload" in told.value.hint


@pytest.mark.parametrize("prefix", ["policy.", "student.model.", "model."])
def test_names_of_another_program_are_named_and_no_key_is_blamed(
    prefix: str, base: tuple[Path, LlamaForCausalLM], tmp_path: Path
) -> None:
    folder = tool_folders.copied(base[0], tmp_path / "model", tool_folders.tensors(lambda name: prefix + name))
    with pytest.raises(ModelFileError, match=rf"missing: model.*unexpected: {prefix}lm_head") as told:
        quiet(folder)
    assert "tie_word_embeddings" not in told.value.hint
    assert f"what the file calls {prefix}NAME is called NAME here" in told.value.hint


# Adapters -----------------------------------------------------------------------------------------------------------

PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LORAS: dict[str, dict[str, Any]] = {
    "two": {}, "seven": {"target_modules": PROJECTIONS}, "all": {"target_modules": "all-linear"},
    "a pattern": {"target_modules": r".*self_attn\.(q|v)_proj"}, "rank-stabilised": {"use_rslora": True},
    "dropout": {"lora_dropout": 0.1}, "without a task": {"task_type": None}, "one layer": {"layers_to_transform": [1]},
    "ranks": {"rank_pattern": {"q_proj": 2}, "alpha_pattern": {"v_proj": 3}},
    "a head learnt whole": {"modules_to_save": ["lm_head"]},
    "table and head learnt whole": {"modules_to_save": ["embed_tokens", "lm_head"]},
    "norms learnt whole": {"modules_to_save": ["norm"]},
    "a matrix learnt whole": {"target_modules": ["q_proj"], "modules_to_save": ["up_proj"]},
    "biases of a model without": {"bias": "lora_only"}, "some rows of a table": {"trainable_token_indices": [5, 6]},
    "an adapted head": {"target_modules": ["q_proj", "lm_head"]},
}  # fmt: skip
WRITTEN: dict[str, dict[str, Any]] = {
    "unsloth": {
        "auto_mapping": {"base_model_class": "LlamaForCausalLM", "unsloth_fixed": True}, "megatron_config": None,
        "use_qalora": False, "qalora_group_size": 16, "peft_version": "0.17.1", "corda_config": None,
        "eva_config": None, "lora_bias": False, "layer_replication": None, "target_parameters": None,
        "trainable_token_indices": None, "ensure_weight_tying": False, "alora_invocation_tokens": None,
    },
    "peft of 2023": {"enable_lora": None, "merge_weights": False, "fan_in_fan_out": False},
}  # fmt: skip
LORA = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "DoRA": ("LoraConfig", {**LORA, "use_dora": True}, "use_dora"),
    "biases of B": ("LoraConfig", {**LORA, "lora_bias": True}, "lora_bias"),
    "a table": ("LoraConfig", {**LORA, "target_modules": ["q_proj", "embed_tokens"]}, "model.embed_tokens"),
    "PiSSA": ("LoraConfig", {**LORA, "init_lora_weights": "pissa"}, "'pissa'"),
    "IA3": ("IA3Config", {"target_modules": ["k_proj", "down_proj"], "feedforward_modules": ["down_proj"]}, "'IA3'"),
    "LoHa": ("LoHaConfig", {"target_modules": ["q_proj"]}, "'LOHA'"),
    "AdaLoRA": ("AdaLoraConfig", {"target_modules": ["q_proj"], "total_step": 10}, "'ADALORA'"),
    "OFT": ("OFTConfig", {"target_modules": ["q_proj"], "oft_block_size": 8}, "'OFT'"),
    "norms": ("LNTuningConfig", {}, "'LN_TUNING'"),
    "a prompt": ("PromptTuningConfig", {"num_virtual_tokens": 4}, "'PROMPT_TUNING'"),
    "a prefix": ("PrefixTuningConfig", {"num_virtual_tokens": 4}, "'PREFIX_TUNING'"),
}  # fmt: skip

of_peft = [pytest.mark.filterwarnings("ignore::FutureWarning"), pytest.mark.filterwarnings("ignore::UserWarning")]


def adapted(base: Path, folder: Path, settings: Any) -> Any:
    """Let peft write an adapter with random numbers beside a tokenizer, and return its model."""
    import peft

    model = LlamaForCausalLM.from_pretrained(base, attn_implementation="eager", dtype=torch.float32).eval()
    model = peft.get_peft_model(model, settings).eval()
    rng = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad or "lora_" in name:
            parameter.data.copy_(torch.randn(parameter.shape, generator=rng) * 0.2)
    model.save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(base / file, folder)
    return model


@pytest.mark.parametrize("kind", [*LORAS, *WRITTEN])
@torch.no_grad()
def test_an_adapter_beside_a_tokenizer_loads_with_its_base(
    kind: str, base: tuple[Path, LlamaForCausalLM], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    import peft

    theirs = adapted(base[0], tmp_path / "adapter", peft.LoraConfig(**{**LORA, **LORAS.get(kind, {})}))
    tool_folders.keys(file="adapter_config.json", **WRITTEN.get(kind, {}))(tmp_path / "adapter")
    lm, expected = quiet(tmp_path / "adapter"), theirs(IDS).logits
    assert error(lm.logits(IDS), expected) < 1e-5
    assert error(lm.logits(IDS), base[1](IDS).logits) > 1e-3
    theirs.merge_and_unload().save_pretrained(tmp_path / "merged")
    assert error(quiet(tmp_path / "merged").logits(IDS), expected) < 1e-5


@pytest.mark.parametrize("kind", REFUSED)
@torch.no_grad()
def test_another_adapter_is_refused_by_name_and_its_hint_works(
    kind: str, base: tuple[Path, LlamaForCausalLM], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    import peft

    name, settings, named = REFUSED[kind]
    theirs = adapted(base[0], tmp_path / "adapter", getattr(peft, name)(**{"task_type": "CAUSAL_LM", **settings}))
    with pytest.raises(OrreryError) as told:
        quiet(tmp_path / "adapter")
    assert named in told.value.message
    if "merge" in told.value.hint:
        expected = theirs(IDS).logits
        theirs.merge_and_unload().save_pretrained(tmp_path / "merged")
        assert error(quiet(tmp_path / "merged").logits(IDS), expected) < 1e-5
    else:
        assert "peft" in told.value.hint


def test_there_are_many_kinds() -> None:
    tables = (tool_folders.SAME, tool_folders.OTHER, LORAS, WRITTEN, REFUSED)
    assert sum(map(len, tables)) + len(REFERENCED) > 100
