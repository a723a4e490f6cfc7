"""ViT, and captioners of ViT and its kin with GPT-2, BERT and TrOCR's decoder, against transformers."""

from dataclasses import replace

import pytest
import torch
import transformers

from orrery.checkpoints.rules import to_ours, to_theirs
from orrery.errors import UsageError
from orrery.families import load_family, rules_of
from tests.parity import oracle
from tests.parity.helper import Pair, assert_close, check_round_trip, error, load, random_ids, shapes_of, weights_of

VIT = {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip
GPT2 = {"vocab_size": 97, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
BERT = {
    "vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 32,
}  # fmt: skip
TROCR = {
    "vocab_size": 97, "d_model": 32, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 40,
    "max_position_embeddings": 32, "pad_token_id": 1,
}  # fmt: skip
DINO = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "mlp_ratio": 2,
    "image_size": 12,
    "patch_size": 4,
}
SIDES = [
    (("DeiT", VIT), ("Bert", BERT)),
    (
        ("ViT", VIT),
        ("Bert", {**BERT, "hidden_size": 24, "hidden_act": "relu", "type_vocab_size": 1, "layer_norm_eps": 0.1}),
    ),
    (("ViT", {**VIT, "qkv_bias": False}), ("TrOCR", {**TROCR, "cross_attention_hidden_size": 24})),
    (("DeiT", VIT), ("TrOCR", {**TROCR, "scale_embedding": True, "layernorm_embedding": False})),
    (("Dinov2", DINO), ("TrOCR", {**TROCR, "use_learned_position_embeddings": False, "activation_function": "relu"})),
    (("Dinov2", DINO), ("GPT2", GPT2)),
]
BLIP = {
    "vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 32, "bos_token_id": 5, "sep_token_id": 3,
}  # fmt: skip
CORNERS = [
    {},
    {"qkv_bias": False, "hidden_act": "relu", "layer_norm_eps": 0.1},
    {"num_channels": 1, "patch_size": 5, "num_labels": 7},
]


def images(rows=3, channels=3, dtype=torch.float64):
    return torch.randn(rows, channels, 12, 12, generator=torch.Generator().manual_seed(1)).to(dtype)


def pictures(rows, columns):
    return torch.randn(2, 3, rows, columns, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def vit(architecture, dtype=torch.float64, wide=True, **config):
    kind = getattr(transformers, architecture)
    make = lambda: kind._from_config(transformers.ViTConfig(**{**VIT, **config}), attn_implementation="eager")  # noqa: E731
    return pair("vit", make, dtype, wide)


def captioner(dtype=torch.float64, wide=True, **decoder):
    def make():
        eyes, writer = transformers.ViTConfig(**VIT), transformers.GPT2Config(**{**GPT2, **decoder})
        joined = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
            eyes, writer, decoder_start_token_id=5, pad_token_id=0
        )
        return transformers.VisionEncoderDecoderModel._from_config(joined, attn_implementation="eager")

    return pair("vision-encoder-decoder", make, dtype, wide)


def joined(eyes, writer):
    """Return a captioner of two families."""

    def make():
        settings = [getattr(transformers, f"{name}Config")(**config) for name, config in (eyes, writer)]
        whole = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
            *settings, decoder_start_token_id=5, pad_token_id=0
        )
        kind = settings[1].model_type
        with oracle.widened(oracle.modelling(kind)):  # TrOCR's sinusoids are made once, and are no tensor of the model
            return transformers.VisionEncoderDecoderModel._from_config(whole, attn_implementation="eager")

    return replace(pair("vision-encoder-decoder", make, torch.float64, True), kind=eyes[0].lower())


def pair(kind, make, dtype, wide):
    """Return a random reference, and our model with the tensors of its file."""
    theirs = make()
    oracle.randomise(theirs, 0)
    theirs = theirs.to(dtype).eval()
    config, family = {**theirs.config.to_dict(), "architectures": [type(theirs).__name__]}, load_family(kind)
    ours = family.spec(config).build(0).to(dtype).eval()
    load(ours, to_ours(oracle.file_of(theirs), rules_of(family, config), shapes_of(ours)))
    return Pair("vit", theirs, ours, wide, config)


def check_gradients(both, rules, out, expected):
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(2)).to(out.dtype)
    (out * weight).sum().backward()
    (expected * weight).sum().backward()
    theirs = to_ours(oracle.gradients_of(both.theirs), rules, shapes_of(both.ours))
    for name, parameter in both.ours.named_parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert error(gradient, theirs[name]) < 1e-9, name


@pytest.mark.parametrize("corner", CORNERS, ids=str)
def test_a_class(corner):
    both = vit("ViTForImageClassification", **corner)
    seen = images(channels=corner.get("num_channels", 3))
    expected = both.reference(seen).logits
    for kernel in both.kernels.values():
        assert_close("logits", both, seen, both.ours.logits(seen, kernel=kernel).detach(), expected.detach(), 1e-9)
    check_gradients(both, both.rules, both.ours.logits(seen), expected)
    check_round_trip(both)


@pytest.mark.parametrize("corner", [{}, {"pooler_output_size": 10}], ids=str)
@torch.no_grad()
def test_a_bare_model(corner):
    both, seen = vit("ViTModel", **corner), images()
    expected = both.reference(seen)
    assert_close("hidden", both, seen, both.ours.hidden(seen), expected.last_hidden_state, 1e-9)
    assert_close("pooled", both, seen, both.ours.logits(seen), expected.pooler_output, 1e-9)
    check_round_trip(both)


@pytest.mark.parametrize("corner", [{}, {"n_embd": 24, "tie_word_embeddings": False}], ids=str)
def test_a_caption(corner):
    both, seen, target = captioner(**corner), images(), random_ids(3, 8, seed=2)
    target[:, 0] = 5
    expected = both.reference(seen, decoder_input_ids=target).logits
    for kernel in both.kernels.values():
        assert_close(
            "logits", both, seen, both.ours.logits(seen, target, kernel=kernel).detach(), expected.detach(), 1e-9
        )
    rules = rules_of(load_family("vision-encoder-decoder"), both.config)
    check_gradients(both, rules, both.ours.logits(seen, target), expected)
    with torch.no_grad():
        logits, session = both.ours.start(seen, capacity=17)
        steps = [logits]
        for t in range(1, 8):
            logits = both.ours.step(target[:, t : t + 1], session)
            steps.append(logits[:, 0])
        assert_close("cache", both, seen, torch.stack(steps, 1), expected.detach(), 1e-9)
        assert torch.equal(*greedy(both, seen))


@pytest.mark.parametrize(("eyes", "writer"), SIDES, ids=str)
def test_a_caption_of_other_families(eyes, writer):
    both, seen, target = joined(eyes, writer), images(), random_ids(3, 8, vocabulary=90, seed=2) + 7
    target[:, 0] = 5
    expected = both.reference(seen, decoder_input_ids=target).logits
    for kernel in both.kernels.values():
        ours = both.ours.logits(seen, target, kernel=kernel).detach()
        assert_close("logits", both, seen, ours, expected.detach(), 1e-9)
    rules = rules_of(load_family("vision-encoder-decoder"), both.config)
    check_gradients(both, rules, both.ours.logits(seen, target), expected)
    before, after = oracle.file_of(both.theirs), to_theirs(weights_of(both.ours), rules)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    with torch.no_grad():
        logits, session = both.ours.start(seen, capacity=17)
        steps = [logits, *(both.ours.step(target[:, t : t + 1], session)[:, 0] for t in range(1, 8))]
        assert_close("cache", both, seen, torch.stack(steps, 1), expected.detach(), 1e-9)


def blip(whole, **written):
    """Return a BLIP captioner."""

    def make():
        parts = {"text_config": {**BLIP, **written}, "vision_config": {**VIT, "hidden_act": "gelu"}}
        config = transformers.BlipConfig(**parts, **whole)
        return transformers.BlipForConditionalGeneration._from_config(config, attn_implementation="eager")

    return replace(pair("blip", make, torch.float64, True), kind="blip")


@pytest.mark.parametrize(
    ("whole", "written"),
    [
        ({}, {}),
        ({}, {"hidden_size": 24, "hidden_act": "relu", "layer_norm_eps": 0.1}),
        ({"tie_word_embeddings": False}, {}),
        ({"tie_word_embeddings": False}, {"tie_word_embeddings": False}),
    ],
    ids=str,
)
def test_a_caption_of_blip(whole, written):
    both, seen, target = blip(whole, **written), images(), random_ids(3, 8, vocabulary=90, seed=2) + 7
    target[:, 0] = 5
    expected = both.reference(seen, input_ids=target).logits
    for kernel in both.kernels.values():
        ours = both.ours.logits(seen, target, kernel=kernel).detach()
        assert_close("logits", both, seen, ours, expected.detach(), 1e-9)
    rules = rules_of(load_family("blip"), both.config)
    check_gradients(both, rules, both.ours.logits(seen, target), expected)
    check_round_trip(both)
    with torch.no_grad():
        logits, session = both.ours.start(seen, capacity=17)
        steps = [logits, *(both.ours.step(target[:, t : t + 1], session)[:, 0] for t in range(1, 8))]
        assert_close("cache", both, seen, torch.stack(steps, 1), expected.detach(), 1e-9)


def greedy(both, seen):
    """Write twelve tokens, the reference without a cache, ours with one."""
    theirs = ours = torch.full((3, 1), 5)
    logits, session = both.ours.start(seen, capacity=13)
    for _ in range(12):
        answer = both.reference(seen, decoder_input_ids=theirs).logits[:, -1]
        theirs = torch.cat([theirs, answer.argmax(-1, keepdim=True)], 1)
        token = logits.argmax(-1, keepdim=True)
        ours = torch.cat([ours, token], 1)
        stepped = both.ours.step(token, session)
        logits = stepped[:, -1]
    return ours, theirs


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-6), (torch.float32, 1e-5)], ids=str)
@torch.no_grad()
def test_without_replacing_the_casts(dtype, bound):
    both, seen, target = captioner(dtype, wide=False), images(dtype=dtype), random_ids(3, 8, seed=2)
    expected = both.reference(seen, decoder_input_ids=target).logits
    assert_close("logits", both, seen, both.ours.logits(seen, target), expected, bound)
    both = vit("ViTForImageClassification", dtype, wide=False)
    assert_close("logits", both, seen, both.ours.logits(seen), both.reference(seen).logits, bound)


@torch.no_grad()
def test_beams_are_rows_like_any_other():
    both, seen, target = captioner(), images(), random_ids(3, 6, seed=2)
    target[:, 0] = 5
    _, session = both.ours.start(seen, capacity=8)
    both.ours.step(target[:, 1:3], session)
    order = torch.tensor([2, 2, 0])
    logits = both.ours.step(target[order, 3:], session.reorder(order))
    assert error(logits, both.ours.logits(seen, target)[order, 3:]) < 1e-9


@pytest.mark.parametrize("size", [(8, 21), (20, 20), (13, 12), (16, 9), (5, 4), (36, 4)], ids=str)
@torch.no_grad()
def test_positions_are_interpolated_for_other_sizes(size):
    both, seen = vit("ViTForImageClassification"), pictures(*size)
    expected = both.reference(seen, interpolate_pos_encoding=True).logits
    assert_close("logits", both, seen, both.ours.logits(seen), expected, 1e-9)


def test_the_gradient_reaches_the_table_through_the_interpolation():
    both, seen = vit("ViTForImageClassification"), pictures(20, 8)
    expected = both.reference(seen, interpolate_pos_encoding=True).logits
    check_gradients(both, both.rules, both.ours.logits(seen), expected)


def test_images_without_a_patch_of_other_channels_and_padding_are_refused():
    both = captioner()
    for shape in ((1, 3, 3, 12), (1, 1, 12, 12)):
        with pytest.raises(UsageError, match=r"reads \[3, 12, 12\]"):
            both.ours.logits(torch.zeros(shape, dtype=torch.float64), random_ids(1, 3))
    with pytest.raises(UsageError, match="no padding"):
        both.ours.read(images(), real=torch.ones(3, 10, dtype=torch.bool))
