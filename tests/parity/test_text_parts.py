"""Folders of models that read pictures too: the text part gives their logits, under every version's names."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import orrery
from orrery.cli.program import run
from orrery.errors import ModelFileError
from parity import oracle
from parity.helper import error

IDS = torch.tensor([[3, 7, 1, 50, 22, 9, 14, 5, 41, 33, 8, 2, 19, 6, 50, 12] * 2, list(range(8, 40))])
TEXT = {
    "vocab_size": 61, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
PICTURE = {
    "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 8,
    "patch_size": 4,
}  # fmt: skip
QWEN: dict[str, Any] = {"depth": 1, "num_heads": 2, "patch_size": 4}
MARKS = {"image_token_id": 60, "video_token_id": 59, "vision_start_token_id": 58, "vision_end_token_id": 57}
AXES = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 500.0}
WINDOWS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8}
CLIP, PIXTRAL = {**PICTURE, "model_type": "clip_vision_model"}, {**PICTURE, "model_type": "pixtral"}
INDEX = {"image_token_index": 60}
# The class without "ForConditionalGeneration", the family of its text part, what is said of it, and of the rest.
KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Gemma3": ("gemma3_text", {"head_dim": 8, "query_pre_attn_scalar": 6, **WINDOWS},
               {"vision_config": PICTURE, "mm_tokens_per_image": 4, **INDEX}),
    "Mistral3": ("mistral", {"head_dim": 8}, {"vision_config": PIXTRAL, **INDEX}),
    "Mistral3 of Ministral": ("ministral3", {"head_dim": 8}, {"vision_config": PIXTRAL, **INDEX}),
    "Llava": ("llama", {}, {"vision_config": CLIP, **INDEX}),
    "LlavaNext": ("mistral", {"sliding_window": None}, {"vision_config": CLIP, **INDEX}),
    "LlavaNextVideo": ("llama", {}, {"vision_config": CLIP, "image_token_index": 60, "video_token_index": 59}),
    "LlavaOnevision": ("qwen2", {}, {"vision_config": {**PICTURE, "model_type": "siglip_vision_model"}, **INDEX}),
    "VipLlava": ("llama", {}, {"vision_config": CLIP, **INDEX}),
    "Qwen2VL": ("qwen2", {"rope_parameters": AXES},
                {"vision_config": {**QWEN, "embed_dim": 16, "hidden_size": 32}, **MARKS}),
    "Qwen2_5_VL": ("qwen2", {"rope_parameters": AXES}, {**MARKS, "vision_config": {
        **QWEN, "hidden_size": 16, "intermediate_size": 20, "out_hidden_size": 32}}),
    "Qwen3VL": ("qwen3", {"head_dim": 8, "rope_parameters": {**AXES, "mrope_interleaved": True}}, {
        **MARKS, "vision_config": {**QWEN, "hidden_size": 16, "intermediate_size": 20, "out_hidden_size": 32,
                                   "deepstack_visual_indexes": [0]}}),
    "SmolVLM": ("llama", {}, {"vision_config": PICTURE, "scale_factor": 2, "image_token_id": 60}),
    "Idefics3": ("llama", {}, {"vision_config": PICTURE, "scale_factor": 2, "image_token_id": 60}),
    "InternVL": ("qwen2", {}, {"image_token_id": 60, "vision_config": {
        **PICTURE, "image_size": [8, 8], "patch_size": [4, 4]}}),
}  # fmt: skip
OWN = ("Gemma3", "Qwen2VL", "Qwen2_5_VL", "Qwen3VL")
"""Kinds whose text part has a name of its own, which the configuration's class knows."""


def wide(kind: str) -> Any:
    """Return what makes the reference count in float64 throughout, in the whole and in its text part."""
    config = getattr(transformers, f"{kind.partition(' ')[0]}Config")
    return oracle.widened(oracle.modelling(config.model_type), oracle.modelling(KINDS[kind][0]))


def whole(kind: str) -> Any:
    family, text, more = KINDS[kind]
    name = kind.partition(" ")[0]
    said = {**TEXT, **text, **({} if kind in OWN else {"model_type": family})}
    config = getattr(transformers, f"{name}Config")(text_config=said, **more)
    make = getattr(transformers, f"{name}ForConditionalGeneration")._from_config
    with wide(kind):
        made = make(config, attn_implementation="eager", dtype=torch.float64)
    oracle.randomise(made, 0)
    return made.eval()


@torch.no_grad()
def logits(made: Any, kind: str) -> torch.Tensor:
    with wide(kind):
        return made(input_ids=IDS).logits


def quiet(folder: Path) -> Any:
    return orrery.load(folder, "cpu", "float64", say=lambda line: None)


def newer(name: str) -> str:
    """Return what transformers 4.52 to 4.57 call a tensor."""
    if name.startswith("lm_head."):
        return name
    inner = re.sub(r"^(model\.)?(language_model|text_model)\.(model\.)?", "", name)
    if inner.startswith("lm_head."):
        return inner
    is_text = inner != name or inner.startswith(("model.layers.", "model.embed_tokens.", "model.norm."))
    return (
        f"model.language_model.{inner.removeprefix('model.')}" if is_text else f"model.{inner.removeprefix('model.')}"
    )


def older(name: str) -> str:
    """Return what earlier ones called it."""
    name = newer(name).replace("model.language_model.", "language_model.model.")
    return f"language_model.{name}" if name.startswith("lm_head.") else name.removeprefix("model.")


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_part_gives_the_logits_of_the_whole(kind: str, tmp_path: Path) -> None:
    made = whole(kind)
    made.save_pretrained(tmp_path)
    expected = logits(made, kind)
    lines: list[str] = []
    lm = orrery.load(tmp_path, "cpu", "float64", say=lines.append)
    assert error(lm.logits(IDS), expected) < 1e-11
    assert any("the part that reads and writes text alone" in line for line in lines)
    held = load_file(tmp_path / "model.safetensors")
    for rename in (newer, older):
        save_file({rename(name): tensor for name, tensor in held.items()}, tmp_path / "model.safetensors")
        assert error(quiet(tmp_path).logits(IDS), expected) < 1e-11
    changed = {name: tensor + 0.1 * ("q_proj.weight" in name and "vi" not in name) for name, tensor in held.items()}
    save_file(changed, tmp_path / "model.safetensors")
    assert error(quiet(tmp_path).logits(IDS), expected) > 1e-4


def test_the_part_is_imported_as_a_model_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = whole("Gemma3")
    made.save_pretrained(tmp_path / "whole")
    assert run(["import", str(tmp_path / "whole"), str(tmp_path / "part")]) == 0
    assert "the part that reads and writes text alone" in capsys.readouterr().err
    assert json.loads((tmp_path / "part" / "config.json").read_text())["model_type"] == "gemma3_text"
    with wide("Gemma3"):
        part = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "part", dtype=torch.float64).eval()
    assert error(logits(part, "Gemma3"), logits(made, "Gemma3")) < 1e-11
    folder = str(tmp_path / "whole")
    assert run(["parity", folder, "--against", folder, "--with", "transformers"]) == 2
    assert "orrery import" in capsys.readouterr().err


def test_qwen2_vl_of_2024_has_the_keys_of_its_text_part_among_its_own(tmp_path: Path) -> None:
    made = whole("Qwen2VL")
    made.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    text = {
        key: value for key, value in config.pop("text_config").items() if key not in ("rope_parameters", "layer_types")
    }
    rotary = {"rope_theta": 500.0, "rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}}
    path.write_text(json.dumps({**text, **config, **rotary, "vision_token_id": 56}))
    assert error(quiet(tmp_path).logits(IDS), logits(made, "Qwen2VL")) < 1e-11


def test_what_the_whole_says_of_ends_and_ties_counts(tmp_path: Path) -> None:
    whole("Gemma3").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    del config["text_config"]["eos_token_id"], config["text_config"]["model_type"]
    path.write_text(json.dumps({**config, "eos_token_id": [1, 7]}))
    (tmp_path / "generation_config.json").unlink()
    assert set(quiet(tmp_path).stored.config["eos_token_id"]) == {1, 7}
    path.write_text(json.dumps({**config, "tie_word_embeddings": False}))
    with pytest.raises(ModelFileError, match="a matrix of its own"):
        quiet(tmp_path)
    path.write_text(json.dumps({**config, "text_config": [1]}))
    with pytest.raises(ModelFileError, match="text_config is no object"):
        quiet(tmp_path)


@pytest.mark.parametrize("family", ["paligemma", "mllama"])
def test_a_whole_whose_text_part_reads_otherwise_is_refused(family: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family, "text_config": TEXT}))
    with pytest.raises(ModelFileError, match=f"no family '{family}'"):
        quiet(tmp_path)


@pytest.mark.parametrize("older_names", [False, True])
def test_adapters_of_the_whole_fit_its_text_part(older_names: bool, tmp_path: Path) -> None:
    made = whole("Gemma3")
    made.save_pretrained(tmp_path / "whole")
    wanted = r".*language_model.*\.(q_proj|down_proj)"
    config = peft.LoraConfig(r=4, lora_alpha=6, target_modules=wanted, alpha_pattern={"q_proj": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = peft.get_peft_model(made, config).eval()
    for name, part in adapted.named_parameters():
        if "lora_" in name:
            part.data = torch.randn(part.shape, dtype=part.dtype) * 0.3
    adapted.save_pretrained(tmp_path / "adapter")
    if older_names:
        path = tmp_path / "adapter" / "adapter_model.safetensors"
        start = "base_model.model."
        save_file({start + older(n.removeprefix(start)): t for n, t in load_file(path).items()}, path)
    lm = orrery.load(tmp_path / "whole", "cpu", "float64", adapter=tmp_path / "adapter", say=lambda line: None)
    assert error(lm.logits(IDS), logits(adapted, "Gemma3")) < 1e-6  # A and B are stored in float32
    assert error(lm.logits(IDS), quiet(tmp_path / "whole").logits(IDS)) > 1e-3
    path = tmp_path / "adapter" / "adapter_config.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "rank_pattern": {"model.language_model.layers.0.mlp.down_proj": 4}}))
    if not older_names:
        with pytest.raises(ModelFileError, match="has a rank or an alpha for"):
            orrery.load(tmp_path / "whole", "cpu", adapter=tmp_path / "adapter", say=lambda line: None)


def test_a_whole_in_eight_bits_says_so_outside_of_its_text_part(tmp_path: Path) -> None:
    made = whole("Mistral3 of Ministral")
    made.save_pretrained(tmp_path)
    held, packed = load_file(tmp_path / "model.safetensors"), {}
    for name, tensor in held.items():
        packed[name] = tensor
        if name.startswith("language_model.") and name.endswith("proj.weight"):
            scale = (tensor.abs().max() / 400).float()
            packed[name] = (tensor / scale).to(torch.float8_e4m3fn)
            stem = name.removesuffix("weight")
            packed |= {f"{stem}weight_scale_inv": scale, f"{stem}activation_scale": torch.ones(())}
            held[name] = (packed[name].float() * scale).double()
    save_file(held, tmp_path / "model.safetensors")
    expected = quiet(tmp_path).logits(IDS)
    save_file(packed, tmp_path / "model.safetensors")
    path = tmp_path / "config.json"
    rounded = {"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None,
               "modules_to_not_convert": ["model.vision_tower", "lm_head"]}  # fmt: skip
    path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": rounded}))
    assert error(quiet(tmp_path).logits(IDS), expected) < 1e-6
    assert error(expected, logits(made, "Mistral3 of Ministral")) > 1e-4
