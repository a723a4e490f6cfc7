"""Golden outputs of the families that transformers has: its float64 answers to each row alone."""

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from orrery.families import load_family, model_type
from orrery.laws import questions
from orrery.laws.formula import numbers
from tests.goldens.cases import BLIP, HEADS, IMAGES, PLAIN, SMALL, USUAL, VIT
from tests.parity import oracle
from tests.parity.helper import answer_of
from tests.parity.keys import inputs, sides
from tests.parity.stand_ins import class_of, settings_of

FORMAT = {"format": "pt"}
NAME = f"transformers {transformers.__version__} widened to float64"
"""Its casts to float32 are replaced: as it is installed, it is float32's rounding away from its own numbers."""


def cases(family: str) -> list[dict[str, Any]]:
    """Return the golden models of a family."""
    if family == "vision_encoder_decoder":
        return captioners()
    if family == "blip":
        return [case(family, "tiny", load_family(family).ARCHITECTURE, BLIP)]
    written = [
        case(family, name, load_family(family).ARCHITECTURE, {**USUAL, **config})
        for name, config in PLAIN.get(family, () if family in HEADS else [("tiny", load_family(family).TINY)])
    ]
    for architecture, config in HEADS.get(family, ()):
        own = config if family in IMAGES or family.startswith(("clip", "siglip")) else {**USUAL, **config}
        written.append(case(family, f"{architecture} {len(written) + 1}", architecture, own))
    return written


def case(family: str, name: str, architecture: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return one golden model."""
    settings = settings_of(model_type(family), **config)
    kernel = "sdpa" if config.get("alibi") else "eager"  # Falcon's eager kernel adds ALiBi twice
    untied = family == "t5" and not config.get("tie_word_embeddings", True)
    with oracle.widened(oracle.modelling(model_type(family))):
        model = filled(class_of(architecture), settings, kernel, untied)
    written = {key: value for key, value in config.items() if key not in ("bos_token_id",)}
    if "num_labels" in written:
        written["id2label"] = {str(n): f"LABEL_{n}" for n in range(written.pop("num_labels"))}
    numbers = answered(model, oracle.modelling(model_type(family)), config)
    return {"name": name, "by": NAME, "architecture": architecture, "config": written, "found": numbers}


def captioner(name: str, eyes: Any, writer: Any) -> dict[str, Any]:
    """Return what sees and what writes, as one model."""
    joined = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        eyes, writer, decoder_start_token_id=5, pad_token_id=0
    )
    modules = [oracle.modelling(side.model_type) for side in (eyes, writer)]
    with oracle.widened(*modules):
        model = filled(transformers.VisionEncoderDecoderModel, joined, "eager")
    given = json.loads(joined.to_json_string())
    numbers = answered(model, modules[0], VIT, modules[1])
    return {
        "name": name,
        "by": NAME,
        "architecture": "VisionEncoderDecoderModel",
        "config": given,
        "found": numbers,
    }


def captioners() -> list[dict[str, Any]]:
    """Return the golden captioners: every kind of writer."""
    gpt2 = transformers.GPT2Config(vocab_size=61, n_embd=16, n_layer=2, n_head=4, n_positions=24)
    trocr = transformers.TrOCRConfig(
        vocab_size=61, d_model=16, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=20,
        max_position_embeddings=24, cross_attention_hidden_size=VIT["hidden_size"], scale_embedding=True,
    )  # fmt: skip
    bert = transformers.BertConfig(**{**SMALL, "vocab_size": 61, "hidden_act": "relu"})
    return [
        captioner("ViT and GPT-2 of another width", transformers.ViTConfig(**VIT), gpt2),
        captioner("ViT and TrOCR of another width", transformers.ViTConfig(**VIT), trocr),
        captioner("DeiT and BERT", transformers.DeiTConfig(**VIT), bert),
    ]


def filled(kind: Any, settings: Any, kernel: str, untied: bool = False) -> Any:
    """Return the reference as it loads itself from a file whose every tensor is made of formula numbers."""
    how = {"attn_implementation": kernel}
    with TemporaryDirectory() as folder:
        empty = kind._from_config(settings, **how)
        if untied:  # T5's constructor ties whatever one says; the files of v1.1 have a head of their own
            empty.lm_head.weight = nn.Parameter(torch.empty_like(empty.lm_head.weight))
            empty.config.tie_word_embeddings = False
        empty.save_pretrained(folder)
        file = Path(folder) / "model.safetensors"
        save_file({n: formula(n, t) for n, t in load_file(file).items()}, file, FORMAT)
        model, report = kind.from_pretrained(
            folder, dtype=torch.float64, experts_implementation="eager", output_loading_info=True, **how
        )
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    for loaded, made in zip(model.parameters(), empty.parameters(), strict=True):
        loaded.requires_grad_(made.requires_grad)  # loading forgets what is fixed, such as sinusoids
    return model.to(torch.float64).eval()


def formula(name: str, tensor: Tensor) -> Tensor:
    """Return the numbers of a tensor: whole where it counts something, and no variance below zero."""
    made = numbers(name, tensor.shape)
    made = made.abs() if name.endswith("running_var") else made
    return made if tensor.is_floating_point() else made.to(tensor.dtype)


def answered(model: Any, modelling: Any, config: Mapping[str, Any], *more: Any) -> dict[str, Any]:
    """Return the sums, the loss, and the gradients' norm and slope."""
    with oracle.widened(modelling, *more):
        answers = [row_answers(model, b, config) for b in range(3)]
        numbers = questions.summary([[a.detach() for a in row] for row in answers])
        loss = loss_of(model, answers, config)
        loss.backward()
    return {**numbers, "loss": float(loss.detach()), **questions.slope(gradients_of(model))}


def loss_of(model: Any, answers: list[list[Tensor]], config: Mapping[str, Any]) -> Tensor:
    """Return the mean cross entropy where the model writes, else the distance from formula numbers."""
    if type(model).__name__ in (name for cases in HEADS.values() for name, _ in cases):
        return questions.distance(answers)
    lengths = questions.TARGETS if two_sided(model) else questions.LENGTHS
    rows = questions.texts(61, lengths)
    logits = torch.cat([said[0][:-1] for said in answers])
    return F.cross_entropy(logits, torch.cat([row[1:] for row in rows]))


def two_sided(model: Any) -> bool:
    """Say whether a model writes beside what it reads; BLIP's configuration does not say so."""
    return model.config.is_encoder_decoder or model.config.model_type == "blip"


def row_answers(model: Any, b: int, config: Mapping[str, Any]) -> list[Tensor]:
    """Return what every head of the reference says to one row alone."""
    if two_sided(model):
        target = questions.texts(61, questions.TARGETS)[b][None]
        seen = questions.images((3, 12, 12))[b][None]
        if model.config.model_type == "blip":
            return [model(pixel_values=seen, input_ids=target).logits[0]]
        if "Vision" in type(model).__name__:
            return [model(pixel_values=seen, decoder_input_ids=target).logits[0]]
        return [model(questions.sources(61)[b][None], decoder_input_ids=target, use_cache=False).logits[0]]
    if type(model).__name__ in ("CLIPModel", "SiglipModel"):
        seen = model(pixel_values=questions.images((3, 12, 12))[b][None], input_ids=questions.texts(61)[b][None])
        return [seen.logits_per_image[0], seen.image_embeds[0], seen.text_embeds[0]]
    if "vision_config" in config or model.config.model_type.replace("-", "_") in IMAGES:
        eyes = getattr(model.config, "vision_config", model.config)
        size = (eyes.num_channels, *sides(eyes))
        given = inputs(eyes)
        noise = {"noise": given["noise"][:1]} if "noise" in given else {}
        seen = model(questions.images(size)[b][None], **noise)
        beside = (
            [model.vision_model(questions.images(size)[b][None]).pooler_output[0]] if "vision_config" in config else []
        )
        return [answer_of(seen)[0], *(seen[name][0] for name in ("pred_boxes",) if name in seen), *beside]
    call = {"token_type_ids": questions.token_types()[b][None]} if config.get("type_vocab_size", 0) > 1 else {}
    output = model(questions.texts(61)[b][None], **call)
    others = [output[name][0] for name in ("seq_relationship_logits", "sop_logits") if name in output]
    return [answer_of(output)[0], *others]


def gradients_of(model: Any) -> dict[str, Tensor]:
    """Return the gradients under the names of the file; what is stored but not learned has none."""
    saved = set(model.state_dict())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.zeros_like(parameter) if parameter.grad is None else parameter.grad)
        for name, buffer in model.named_buffers():
            if name in saved and buffer.is_floating_point():
                buffer.zero_()
    return oracle.file_of(model)
