"""Pictures of other sizes than the one that a model was trained on, beside transformers over the same folders."""

import pytest
import torch
import transformers

import orrery
from orrery.errors import UsageError
from orrery.families import load_family
from tests.parity.oracle import randomise
from tests.parity.picture_folders import SIDE, captioner, picture, seeing
from tests.parity.pipelines import same

PICTURES = [picture("RGB", size, n) for n, size in enumerate([(24, 24), (20, 31), (40, 25), (24, 24), (16, 16)])]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """Write a ViT of 16 pixels whose processor keeps the shape of a picture, and return what the reference says."""
    place = tmp_path_factory.mktemp("sizes")
    theirs, _ = seeing(place, "ViTForImageClassification", num_labels=4)
    sizes = {"size": {"shortest_edge": 20}, "do_center_crop": False}
    processor = transformers.CLIPImageProcessorPil(**sizes)
    processor.save_pretrained(place)

    @torch.no_grad()
    def answers(pictures):
        found = []
        for one in pictures:
            seen = processor(one, return_tensors="pt")["pixel_values"].double()
            scores = theirs.double()(seen, interpolate_pos_encoding=True).logits[0].softmax(-1)
            order = scores.argsort(descending=True).tolist()
            found.append([{"label": theirs.config.id2label[n], "score": float(scores[n])} for n in order])
        return found

    return place, answers


def test_pictures_of_several_sizes_are_answered_as_by_the_reference(classifier):
    place, answers = classifier
    ours = orrery.pipeline("image-classification", place, device="cpu", dtype="float64")
    expected = answers(PICTURES)
    for size in (1, 3, 5):
        same(ours(PICTURES, batch_size=size), expected, bound=1e-9)
    with pytest.raises(AssertionError):
        same(ours(PICTURES), [*expected[1:], expected[0]], bound=1e-9)


def test_a_trace_names_the_patches_of_the_picture_that_was_read(classifier):
    lm = orrery.load(classifier[0], device="cpu")
    seen = lm.trace(PICTURES[1])
    assert seen.tokens[-1] == "5·7"
    assert len(seen.tokens) == seen["embedded"].shape[1] == 1 + 5 * 7
    features = orrery.pipeline("image-feature-extraction", lm)(PICTURES, return_tensors=True)
    assert [len(one[0]) for one in features] == [26, 36, 41, 26, 26]


def test_what_cannot_be_read_is_refused(classifier, tmp_path):
    lm = orrery.load(classifier[0], device="cpu")
    for shape, message in (((3, 3, 40), "a patch of 4 by 4"), ((1, 16, 16), "give 3 channels")):
        with pytest.raises(UsageError) as refused:
            lm.trace(torch.zeros(shape))
        assert message in str(refused.value)
    captioner(tmp_path)
    with pytest.raises(UsageError, match=rf"reads \[3, {SIDE}, {SIDE}\]"):
        orrery.load(tmp_path, device="cpu").caption(torch.zeros(3, 24, 24))


@torch.no_grad()
def test_dinov2_reads_another_size_than_its_configuration_names(tmp_path):
    """As the published ones do: trained on 518 points, their files cut pictures of 224."""
    body = {**load_family("dinov2").TINY, "image_size": 28}
    processor = transformers.BitImageProcessorPil(
        size={"shortest_edge": 20}, crop_size={"height": SIDE, "width": SIDE}, image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    )  # fmt: skip
    for kind, task in (("Model", "image-feature-extraction"), ("ForImageClassification", "image-classification")):
        make = getattr(transformers, f"Dinov2{kind}")
        model = make._from_config(transformers.Dinov2Config(**body, num_labels=4), attn_implementation="eager").eval()
        randomise(model, 0)
        model.save_pretrained(tmp_path / kind)
        processor.save_pretrained(tmp_path / kind)
        theirs = transformers.pipeline(task, model=model, image_processor=processor)
        ours = orrery.pipeline(task, tmp_path / kind, device="cpu")
        same(ours(PICTURES), theirs(PICTURES))
        if kind == "Model":
            same(ours(PICTURES, pool=True), theirs(PICTURES, pool=True))
