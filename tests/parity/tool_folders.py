"""Folders as transformers, trainers and converters leave them: what lies beside a model, and how its files are."""

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from parity import oracle

TEXT = "the cat sat on the mat and drank coffee in the morning while birds sang. "
WEIGHTS, CONFIG, GENERATION = "model.safetensors", "config.json", "generation_config.json"
TOKENS, ROLES = "tokenizer_config.json", "special_tokens_map.json"
SIZES = {
    "vocab_size": 290, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
}  # fmt: skip
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"

Change = Callable[[Path], Any]


def tokenizer_of() -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes with four roles."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = ["<s>", "</s>", "<pad>", "<unk>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        [TEXT] * 20,
        trainers.BpeTrainer(vocab_size=290, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    roles = dict(zip(("bos_token", "eos_token", "pad_token", "unk_token"), special, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, **roles)


def model_of(**more: Any) -> LlamaForCausalLM:
    """Return a random model of the reference."""
    made = LlamaForCausalLM._from_config(LlamaConfig(**{**SIZES, **more}), attn_implementation="eager")
    oracle.randomise(made, 0)
    return made.eval()


def plain(folder: Path) -> LlamaForCausalLM:
    """Write the folder that all others begin with, and return its model."""
    made = model_of()
    made.save_pretrained(folder)
    tokenizer_of().save_pretrained(folder)
    return made


def keys(drop: tuple[str, ...] = (), file: str = CONFIG, **given: Any) -> Change:
    """Change keys of a file of JSON."""

    def change(folder: Path) -> None:
        path = folder / file
        content = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps({key: value for key, value in (content | given).items() if key not in drop}))

    return change


def beside(**files: bytes | str) -> Change:
    """Put files beside the model; ``__`` in a name stands for a folder."""

    def change(folder: Path) -> None:
        for name, content in files.items():
            path = folder / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


def tensors(rename: Callable[[str], str] = str, **more: torch.Tensor) -> Change:
    """Write the weights under other names, and others beside them."""

    def change(folder: Path) -> None:
        held = load_file(folder / WEIGHTS)
        added = {name.replace("__", "."): tensor for name, tensor in more.items()}
        save_file({rename(name): tensor for name, tensor in held.items()} | added, folder / WEIGHTS)

    return change


def several(*changes: Change) -> Change:
    """Make one change after another."""

    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


def again(**how: Any) -> Change:
    """Write the weights of the model again."""

    def change(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        model_of().save_pretrained(folder, **how)

    return change


def pickled(parts: int) -> Change:
    """Put the weights into as many files of torch's own kind."""

    def change(folder: Path) -> None:
        held = load_file(folder / WEIGHTS)
        (folder / WEIGHTS).unlink()
        if parts == 1:
            torch.save(held, folder / "pytorch_model.bin")
            return
        places = {name: f"pytorch_model-{1 + n % parts:05}-of-{parts:05}.bin" for n, name in enumerate(held)}
        for file in set(places.values()):
            torch.save({name: held[name] for name in held if places[name] == file}, folder / file)
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))

    return change


def _tied(folder: Path) -> None:
    model_of(tie_word_embeddings=True).save_pretrained(folder)
    held = load_file(folder / WEIGHTS)
    save_file({**held, "lm_head.weight": held["model.embed_tokens.weight"].clone()}, folder / WEIGHTS)


def _grown(folder: Path) -> None:
    tokenizer, model = tokenizer_of(), model_of()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    model.resize_token_embeddings(len(tokenizer) + 6)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _added(folder: Path) -> None:
    tokenizer, model = tokenizer_of(), model_of()
    tokenizer.add_tokens(["<tool>"])
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "added_tokens.json").write_text('{"<tool>": 290}')


def _template(template: Any) -> Change:
    def change(folder: Path) -> None:
        tokenizer = tokenizer_of()
        tokenizer.chat_template = template
        tokenizer.save_pretrained(folder)

    return change


def token(content: str) -> dict[str, Any]:
    """Return an added token as older files have it."""
    flags = dict.fromkeys(("lstrip", "normalized", "rstrip", "single_word"), False)
    return {"content": content, **flags}


PICKLE = b"\x80\x02K\x01."
OF_A_TRAINER = beside(
    training_args_dot_bin=PICKLE, optimizer_dot_pt=PICKLE, scheduler_dot_pt=PICKLE, rng_state_dot_pth=PICKLE,
    scaler_dot_pt=PICKLE, trainer_state_dot_json="{}", all_results_dot_json="{}", train_results_dot_json="{}",
    README_dot_md="---\nlibrary_name: transformers\n---\n", zero_to_fp32_dot_py="raise SystemExit", latest="step5",
    global_step5__model_states_dot_pt=PICKLE, runs__events="x", tf_model_dot_h5=b"x", _dot_gitattributes="x",
)  # fmt: skip
OF_2022: Mapping[str, Any] = {
    "task_specific_params": None, "tokenizer_class": None, "prefix": None, "problem_type": None, "use_bfloat16": False,
    "torchscript": False, "pruned_heads": {}, "tie_encoder_decoder": False, "cross_attention_hidden_size": None,
    "begin_suppress_tokens": None, "bad_words_ids": None, "temperature": 1.0, "top_k": 50, "top_p": 1.0,
    "typical_p": 1.0, "repetition_penalty": 1.0, "length_penalty": 1.0, "no_repeat_ngram_size": 0, "num_beams": 1,
    "num_return_sequences": 1, "forced_bos_token_id": None, "remove_invalid_values": False, "max_length": 20,
    "exponential_decay_length_penalty": None, "suppress_tokens": None, "finetuning_task": None, "min_length": 0,
    "tf_legacy_loss": False, "do_sample": False, "early_stopping": False, "num_beam_groups": 1, "pretraining_tp": 1,
    "diversity_penalty": 0.0, "quantization_config": None, "rope_scaling": None, "sliding_window": None,
}  # fmt: skip

SAME: Mapping[str, Change] = {
    "transformers": several(),
    "transformers in shards": again(max_shard_size="20KB"),
    "a dtype of no weight": keys(dtype="bfloat16"),
    "a checkpoint of the Trainer": OF_A_TRAINER,
    "unsloth": several(
        keys(("dtype",), unsloth_version="2025.3.19", unsloth_fixed=True, model_name="unsloth/x", torch_dtype="float32",
             _attn_implementation_autoset=True, _name_or_path="unsloth/llama"),
        keys(file=TOKENS, padding_side="left", add_bos_token=False, clean_up_tokenization_spaces=False),
        keys(file=GENERATION, unsloth_fixed=True, max_length=64),
    ),
    "axolotl": several(keys(axolotl_config={"a": [1]}, use_cache=False, _flash_attn_2_enabled=True), OF_A_TRAINER),
    "LLaMA-Factory": several(
        keys(("dtype",), use_cache=False, torch_dtype="bfloat16"),
        beside(llamaboard_config_dot_yaml="a: 1", training_loss_dot_png=b"x", Modelfile="FROM ."),
    ),
    "autotrain": several(keys(id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0}),
                         beside(training_params_dot_json="{}")),
    "mergekit": several(keys(("transformers_version",)), beside(mergekit_config_dot_yml="a: 1")),
    "trl with a value head": tensors(v_head__summary__weight=torch.ones(1, 32), v_head__summary__bias=torch.ones(1)),
    "a model inside torch.compile": tensors(lambda name: f"_orig_mod.{name}"),
    "layers inside torch.compile": tensors(lambda name: name.replace(".self_attn.", "._orig_mod.self_attn.")),
    "a model inside DDP": tensors(lambda name: f"module.{name}"),
    "DDP around torch.compile": tensors(lambda name: f"module._orig_mod.{name}"),
    "Fabric": tensors(lambda name: f"_forward_module.{name}"),
    "a text part under its earlier names in a whole": tensors(lambda name: f"language_model.{name}"),
    "a text part under its names in a whole": tensors(
        lambda name: re.sub(r"^model\.", "model.language_model.", name)),
    "FSDP": tensors(lambda name: name.replace("layers.1.", "layers.1._fsdp_wrapped_module.")),
    "checkpointed activations": tensors(lambda name: name.replace("layers.0.", "layers.0._checkpoint_wrapped_module.")),
    "frequencies among the weights": tensors(model__layers__0__self_attn__rotary_emb__inv_freq=torch.ones(4)),
    "transformers of 2022": keys(**OF_2022),
    "transformers of 2024": several(
        keys(("rope_parameters", "dtype"), rope_theta=10000.0, rope_scaling=None, torch_dtype="float32", mlp_bias=False,
             attention_bias=False, head_dim=8, transformers_version="4.46.3"),
    ),
    "code beside the weights": several(keys(auto_map={"AutoModelForCausalLM": "modeling_x.X"}),
                                       beside(modeling_x_dot_py="raise SystemExit")),
    "no class": keys(("architectures",)),
    "a null class": keys(architectures=None),
    "a list of ends": keys(eos_token_id=[1, 2]),
    "no padding": keys(pad_token_id=None),
    "settings of generation in config.json": several(
        keys(temperature=0.5, repetition_penalty=1.3, do_sample=True), lambda folder: (folder / GENERATION).unlink()),
    "a generation_config.json of chats": keys(file=GENERATION, do_sample=True, temperature=0.6, top_p=0.9,
                                              eos_token_id=[1, 2], trust_remote_code=True, chat_format="chatml"),
    "a generation_config.json of nulls": keys(file=GENERATION, eos_token_id=None, bos_token_id=None, foo=None),
    "the original files beside them": beside(original__consolidated_dot_pth=PICKLE, params_dot_json="{}",
                                             tekken_dot_json="{}", model_dot_onnx=b"x"),
    "a template of its own file": _template(TEMPLATE),
    "templates by name": _template({"default": TEMPLATE, "tool_use": "x"}),
    "chat_template.json": beside(chat_template_dot_json=json.dumps({"chat_template": TEMPLATE})),
    "a map of roles": keys(file=ROLES, bos_token="<s>", eos_token="</s>", pad_token="</s>", unk_token="<unk>"),
    "a map of roles as objects": keys(file=ROLES, bos_token=token("<s>"), eos_token=token("</s>")),
    "an empty map of roles": keys(file=ROLES),
    "every key of a tokenizer": keys(
        file=TOKENS, legacy=True, sp_model_kwargs={}, spaces_between_special_tokens=False, errors="replace",
        model_max_length=1000000000000000019884624838656, tokenizer_class="LlamaTokenizerFast", processor_class="X",
        use_default_system_prompt=False, split_special_tokens=False, added_tokens_decoder={}, chat_template=None,
        device_map="auto", is_local=True, backend="tokenizers", truncation_side="left", name_or_path="x",
        extra_special_tokens={"image_token": "<unk>"}, auto_map={"a": "b"}, special_tokens_map_file="/x",
    ),
}  # fmt: skip
"""What changes no number of the model that `plain` writes."""

OTHER: Mapping[str, Change] = {
    "a tied head that is written too": _tied,
    "a table that grew": _grown,
    "added_tokens.json": _added,
    "rotary positions of 2023": keys(("rope_parameters",), rope_scaling={"type": "linear", "factor": 2.0},
                                     rope_theta=5e5),
    "rotary positions of Llama 3": keys(("rope_parameters",), rope_theta=5e5, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}),
    "half the width": lambda folder: model_of().half().save_pretrained(folder),
    "bfloat16": lambda folder: model_of().bfloat16().save_pretrained(folder),
}  # fmt: skip
"""What is another model, of which the reference reads the folder."""


def copied(base: Path, folder: Path, change: Change) -> Path:
    """Return a copy of a folder with a change."""
    shutil.copytree(base, folder)
    change(folder)
    return folder
