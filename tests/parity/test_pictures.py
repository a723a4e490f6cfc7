"""The families that read pictures and write nothing, against transformers: every class, other sizes, files."""

import pytest
import torch
import transformers

from orrery.checkpoints.rules import to_ours
from orrery.families import load_family, rules_of, spec_of
from tests.parity import oracle
from tests.parity.helper import Pair, answer_of, check_round_trip, error, load, shapes_of
from tests.parity.keys import sides

SMALL = {
    "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 12,
    "patch_size": 4,
}  # fmt: skip
DINO = {**load_family("dinov2").TINY}
YOLOS = {**SMALL, "image_size": [12, 16], "num_detection_tokens": 5}
SEGFORMER = dict(load_family("segformer").TINY)
BY_ITSELF = {"yolos", "segformer", "dinov2"}
"""Families whose reference interpolates without being told."""
CASES = [
    ("deit", "DeiTForImageClassification", {**SMALL, "num_labels": 3}),
    ("deit", "DeiTForImageClassification", {**SMALL, "qkv_bias": False, "hidden_act": "relu", "num_channels": 1}),
    ("deit", "DeiTForImageClassificationWithTeacher", {**SMALL, "num_labels": 3, "layer_norm_eps": 0.1}),
    ("deit", "DeiTModel", SMALL),
    ("deit", "DeiTModel", {**SMALL, "pooler_output_size": 10, "patch_size": 5}),
    ("dinov2", "Dinov2ForImageClassification", {**DINO, "num_labels": 3}),
    ("dinov2", "Dinov2ForImageClassification", {**DINO, "use_swiglu_ffn": True, "qkv_bias": False}),
    ("dinov2", "Dinov2ForImageClassification", {**DINO, "use_mask_token": False, "drop_path_rate": 0.3}),
    ("dinov2", "Dinov2Model", {**DINO, "hidden_act": "relu", "num_channels": 1, "layer_norm_eps": 0.1}),
    ("dinov2", "Dinov2Model", {**DINO, "use_swiglu_ffn": True, "mlp_ratio": 3, "patch_size": 5}),
    ("yolos", "YolosForObjectDetection", YOLOS),
    ("yolos", "YolosForObjectDetection", {**YOLOS, "use_mid_position_embeddings": False, "num_labels": 4}),
    ("yolos", "YolosForObjectDetection", {**YOLOS, "num_hidden_layers": 3, "qkv_bias": False, "num_channels": 1}),
    ("yolos", "YolosModel", YOLOS),
    ("segformer", "SegformerForSemanticSegmentation", {**SEGFORMER, "num_labels": 4}),
    ("segformer", "SegformerForSemanticSegmentation", {**SEGFORMER, "hidden_act": "relu", "mlp_ratios": [1, 3]}),
    ("segformer", "SegformerForImageClassification", {**SEGFORMER, "num_channels": 1, "strides": [2, 3]}),
    ("segformer", "SegformerForImageClassification", {**SEGFORMER, "reshape_last_stage": False}),
    ("segformer", "SegformerModel", {**SEGFORMER, "num_attention_heads": [1, 2], "patch_sizes": [4, 5]}),
]
cases = pytest.mark.parametrize(("family", "architecture", "config"), CASES, ids=str)


def pair(family, architecture, config):
    """Return a random reference, and our model with the tensors of its file."""
    kind = getattr(transformers, architecture)
    theirs = kind._from_config(kind.config_class(**config), attn_implementation="eager")
    oracle.randomise(theirs, 0)
    theirs = theirs.double().eval()
    written, rules = {**theirs.config.to_dict(), "architectures": [architecture]}, load_family(family)
    ours = spec_of(rules, written).build(0).double().eval()
    load(ours, to_ours(oracle.file_of(theirs), rules_of(rules, written), shapes_of(ours)))
    return Pair(family, theirs, ours, True, written)


def pictures(rows=12, columns=12, channels=3):
    rng = torch.Generator().manual_seed(1)
    return torch.randn(3, channels, rows, columns, generator=rng, dtype=torch.float64)


def answers(both, seen, **call):
    """Return what ours and the reference say: the main head, or the stream of a model without one."""
    ours = both.ours.logits(seen, **call.pop("how", {})) if both.ours.spec.head_names else both.ours.hidden(seen)
    return ours, answer_of(both.reference(seen, **call))


def assert_gradients(both, ours, theirs):
    weight = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2)).to(ours.dtype)
    (ours * weight).sum().backward()
    (theirs * weight).sum().backward()
    expected = to_ours(oracle.gradients_of(both.theirs), both.rules, shapes_of(both.ours))
    for name, parameter in both.ours.named_parameters():
        if not parameter.requires_grad:
            continue
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert error(gradient, expected[name]) < 1e-9, name


@cases
def test_a_class_equals_the_reference(family, architecture, config):
    both = pair(family, architecture, config)
    seen = pictures(*sides(both.theirs.config), config.get("num_channels", 3))
    for kernel in both.kernels.values():
        ours, theirs = answers(both, seen, how={"kernel": kernel})
        assert error(ours.detach(), theirs.detach()) < 1e-9
    check_round_trip(both)
    assert_gradients(both, *answers(both, seen))


@cases
@torch.no_grad()
def test_other_sizes_equal_the_reference(family, architecture, config):
    both = pair(family, architecture, config)
    for size in ((8, 21), (20, 20), (13, 12)):
        seen = pictures(*size, config.get("num_channels", 3))
        flag = {} if family in BY_ITSELF else {"interpolate_pos_encoding": True}
        assert error(*answers(both, seen, **flag)) < 1e-9, size


MAE = {
    **SMALL, "decoder_hidden_size": 16, "decoder_num_hidden_layers": 2, "decoder_num_attention_heads": 2,
    "decoder_intermediate_size": 20, "mask_ratio": 0.6,
}  # fmt: skip


@pytest.mark.parametrize("config", [{}, {"norm_pix_loss": True, "qkv_bias": False, "num_channels": 1}], ids=str)
@pytest.mark.parametrize("size", [(12, 12), (16, 8)], ids=str)
def test_a_masked_autoencoder_paints_the_same_pixels_with_the_same_loss(config, size):
    both = pair("vit_mae", "ViTMAEForPreTraining", {**MAE, **config})
    seen = pictures(*size, config.get("num_channels", 3))
    noise = torch.rand(3, size[0] * size[1] // 16, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    theirs = both.reference(seen, noise=noise, interpolate_pos_encoding=True)
    found = both.ours({"images": seen, "noise": noise})["pixels"]
    hidden = both.ours.hidden_places(noise)
    assert torch.equal(hidden, theirs.mask.bool())
    loss = (found - both.ours.targets(seen)).square().mean(-1)[hidden].mean()
    assert error(found.detach(), theirs.logits.detach()) < 1e-9
    assert error(loss.detach(), theirs.loss.detach()) < 1e-9
    assert_gradients(both, found, theirs.logits)
    check_round_trip(both)


@torch.no_grad()
def test_without_noise_nothing_is_hidden():
    both = pair("vit_mae", "ViTMAEForPreTraining", {**MAE, "mask_ratio": 0.0})
    assert error(both.ours.logits(pictures()), both.reference(pictures()).logits) < 1e-9


@torch.no_grad()
def test_boxes_equal_the_reference():
    both = pair("yolos", "YolosForObjectDetection", YOLOS)
    for seen in (pictures(12, 16), pictures(20, 9)):
        found, expected = both.ours({"images": seen}, ("classes", "boxes")), both.reference(seen)
        assert error(found["classes"], expected.logits) < 1e-9
        assert error(found["boxes"], expected.pred_boxes) < 1e-9
        assert found["boxes"].shape == (3, 5, 4)
