"""CLIP and SigLIP, whole and their sides alone, against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family
from orrery.nn.cross_entropy import IGNORED
from orrery.objectives.contrast import Contrast
from orrery.text.train import train_tokenizer
from tests.parity.helper import check_round_trip, error, random_ids
from tests.parity.test_pictures import assert_gradients, pair, pictures

CLIP = dict(load_family("clip").TINY)
TEXT, VISION = CLIP["text_config"], CLIP["vision_config"]
SIGLIP = dict(load_family("siglip").TINY)
SIGLIP_TEXT, SIGLIP_VISION = SIGLIP["text_config"], SIGLIP["vision_config"]
CORNERS = [
    ("clip", {}),
    ("clip", {"text_config": {**TEXT, "eos_token_id": 2}, "logit_scale_init_value": 1.0}),
    (
        "clip",
        {
            "vision_config": {**VISION, "hidden_act": "gelu", "num_channels": 1, "layer_norm_eps": 0.1},
            "projection_dim": 6,
        },
    ),
    ("siglip", {}),
    ("siglip", {"text_config": {**SIGLIP_TEXT, "hidden_act": "relu", "hidden_size": 16, "num_attention_heads": 4}}),
    ("siglip", {"vision_config": {**SIGLIP_VISION, "hidden_act": "gelu", "num_channels": 1, "layer_norm_eps": 0.1}}),
]
MODELS = {"clip": "CLIPModel", "siglip": "SiglipModel"}


def texts(rows=4, length=7):
    """Return texts that end at different places, with anything behind."""
    ids = random_ids(rows, length, vocabulary=59, seed=5)
    for row in range(rows):
        ids[row, 2 + row] = 60
    return ids


@pytest.mark.parametrize(("family", "corner"), CORNERS, ids=str)
def test_every_picture_is_scored_with_every_text(family, corner):
    both = pair(family, MODELS[family], {**load_family(family).TINY, **corner})
    channels = corner.get("vision_config", VISION).get("num_channels", 3)
    for size in ((12, 12), (8, 20)):
        seen, ids = pictures(*size, channels), texts()
        theirs = both.reference(pixel_values=seen, input_ids=ids, interpolate_pos_encoding=True)
        found = both.ours({"images": seen, "ids": ids}, ("similarity", "images", "texts"))
        for name, key in (("similarity", "logits_per_image"), ("images", "image_embeds"), ("texts", "text_embeds")):
            assert error(found[name].detach(), theirs[key].detach()) < 1e-9, name
    assert_gradients(both, found["similarity"], theirs.logits_per_image)
    check_round_trip(both)


def contrast(both, seen, ids, real):
    """Return the mean cost of a batch by our objective, from what its data source gives."""
    objective = Contrast()
    objective.bind(both.ours.spec, None)
    batch = objective.prepare({"images": seen, "targets": ids.masked_fill(~real, IGNORED)}, torch.Generator())
    (term,) = objective.loss(both.ours, batch).values()
    assert term.coupled
    assert objective.counts(batch) == {"pair": term.count}
    return term.sum / term.count


def test_the_contrast_of_a_batch_is_the_loss_of_the_reference():
    both = pair("clip", "CLIPModel", CLIP)
    seen, ids, real = pictures(), texts(3), torch.arange(7) < torch.tensor([[3], [5], [7]])
    given = {"pixel_values": seen, "input_ids": ids, "attention_mask": real.long()}
    expected, found = both.reference(**given, return_loss=True).loss, contrast(both, seen, ids, real)
    assert error(found.detach(), expected.detach()) < 1e-9
    assert error(contrast(both, seen.roll(1, 0), ids, real).detach(), expected.detach()) > 1e-3
    both.ours.zero_grad()
    assert_gradients(both, found, expected)


def test_each_pair_costs_by_itself_what_it_costs_in_the_reference():
    both = pair("siglip", "SiglipModel", {**SIGLIP, "text_config": {**SIGLIP_TEXT, "pad_token_id": 4}})
    seen, ids, real = pictures(), texts(3), torch.arange(7) < torch.tensor([[3], [5], [7]])
    whole = torch.full((3, SIGLIP_TEXT["max_position_embeddings"]), 4)
    whole[:, :7] = ids.masked_fill(~real, 4)
    expected = both.reference(pixel_values=seen, input_ids=whole, return_loss=True).loss
    found = contrast(both, seen, ids, real)
    assert error(found.detach(), expected.detach()) < 1e-9
    assert error(contrast(both, seen.roll(1, 0), ids, real).detach(), expected.detach()) > 1e-4
    both.ours.zero_grad()
    assert_gradients(both, found, expected)


def test_what_cannot_learn_the_contrast_is_refused():
    tokenizer = train_tokenizer("word", ["a cat"], 64)
    with pytest.raises(UsageError, match="needs a model of pictures and texts"):
        Contrast().bind(load_family("vit").spec(load_family("vit").TINY), tokenizer)
    with pytest.raises(UsageError, match="stands at token 60"):
        Contrast().bind(load_family("clip").spec(CLIP), tokenizer)
    Contrast().bind(load_family("clip").spec({**CLIP, "text_config": {**TEXT, "eos_token_id": 2}}), tokenizer)


@torch.no_grad()
def test_padding_behind_a_text_changes_nothing():
    both = pair("clip", "CLIPModel", CLIP)
    ids, real = texts(), torch.arange(7) < torch.tensor([[3], [4], [5], [6]])
    expected = both.reference(pixel_values=pictures(), input_ids=ids, attention_mask=real.long()).logits_per_image
    assert error(both.ours.logits(pictures(), ids, real=real), expected) < 1e-9


@pytest.mark.parametrize(
    ("family", "architecture", "key"),
    [
        ("clip_text_model", "CLIPTextModelWithProjection", "text_embeds"),
        ("clip_text_model", "CLIPTextModel", "pooler_output"),
        ("clip_vision_model", "CLIPVisionModelWithProjection", "image_embeds"),
        ("clip_vision_model", "CLIPVisionModel", "pooler_output"),
        ("clip", "CLIPForImageClassification", "logits"),
        ("siglip_text_model", "SiglipTextModel", "pooler_output"),
        ("siglip_vision_model", "SiglipVisionModel", "pooler_output"),
        ("siglip", "SiglipForImageClassification", "logits"),
    ],
)
def test_a_side_alone(family, architecture, key):
    both = pair(family, architecture, {**load_family(family).TINY})
    given = texts() if "text" in family else pictures()
    theirs = both.reference(given)
    found = both.ours.logits(given)
    assert error(found.detach(), theirs[key].detach()) < 1e-9
    if "last_hidden_state" in theirs:
        assert error(both.ours.hidden(given).detach(), theirs.last_hidden_state.detach()) < 1e-9
    assert_gradients(both, found, theirs[key])
    check_round_trip(both)


def test_a_picture_side_without_a_head_gives_its_stream():
    both = pair("siglip_vision_model", "SiglipVisionModel", {**SIGLIP_VISION, "vision_use_head": False})
    assert not both.ours.spec.head_names
    for size in ((12, 12), (8, 20)):
        theirs = both.reference(pictures(*size), interpolate_pos_encoding=True).last_hidden_state
        assert error(both.ours.hidden(pictures(*size)).detach(), theirs.detach()) < 1e-9
    check_round_trip(both)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"vision_config": {**SIGLIP_VISION, "vision_use_head": False}}, "leaves a picture without a vector"),
        ({"text_config": {**SIGLIP_TEXT, "projection_size": 24}}, "pictures are 16 wide .*, those of texts 24"),
    ],
)
def test_sides_that_cannot_be_compared_are_refused(config, message):
    with pytest.raises(ModelFileError, match=message):
        load_family("siglip").spec({**SIGLIP, **config})
