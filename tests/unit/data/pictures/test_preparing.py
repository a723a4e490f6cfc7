"""Pixels as a model reads them, beside the image processors of transformers that compute with Pillow."""

import importlib
import json
from itertools import product

import numpy as np
import pytest
import torch

from orrery.data.pictures import preparing
from orrery.data.pictures.files import pixels_of
from orrery.data.pictures.padding import together
from orrery.data.pictures.preparing import HARMLESS, KINDS, fitted, for_size, in_channels, preparation, resized
from orrery.errors import DataError, ModelFileError, UsageError

Image = pytest.importorskip("PIL.Image", reason="Pillow, of the extra vision, is not installed")
SIZES = [(1, 1), (1, 7), (3, 500), (224, 224), (225, 223), (100, 151), (301, 40), (37, 37)]
MODES = ["RGB", "L", "RGBA", "P", "CMYK", "LA", "1"]


def picture_of(mode, size, seed):
    rng = np.random.default_rng(seed)
    image = Image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8))
    if mode == "RGBA":
        image.putalpha(Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)))
        return image
    return image.convert(mode)


def reference(kind, **settings):
    module = importlib.import_module(f"transformers.models.{kind.lower()}.image_processing_pil_{kind.lower()}")
    return getattr(module, f"{kind}ImageProcessorPil")(**settings)


def file_of(processor):
    return json.loads(json.dumps(processor.to_dict(), default=list))


def checked(theirs, image, where):
    """Compare one picture; return whether the reference reads it: of a very long one it makes a side of no pixel."""
    ours = preparation(file_of(theirs))
    try:
        expected = theirs(image, return_tensors="pt", do_convert_rgb=True)["pixel_values"][0]
    except (ValueError, ZeroDivisionError):
        with pytest.raises(DataError, match="would become one of"):
            ours(in_channels(pixels_of(image), 3))
        return False
    assert torch.equal(ours(in_channels(pixels_of(image), 3)), expected), where
    return True


@pytest.mark.parametrize("kind", list(KINDS))
def test_pictures_are_prepared_as_by_the_reference_to_the_last_bit(kind):
    theirs, rng = reference(kind), np.random.default_rng(len(kind))
    for size, mode in product(SIZES, MODES[:1]):
        checked(theirs, picture_of(mode, size, 0), (size, mode))
    small = {"shortest_edge": 33, "longest_edge": 50} if kind == "Yolos" else {"height": 31, "width": 45}
    size = {"shortest_edge": 33} if kind in ("CLIP", "Bit") else small
    theirs = reference(kind, size=size, crop_size={"height": 30, "width": 41})
    read = 0
    for number in range(210):
        mode, size = MODES[number % len(MODES)], tuple(int(side) for side in rng.integers(1, 120, 2))
        read += checked(theirs, picture_of(mode, size, number), (size, mode))
    assert read >= 200 or kind == "Yolos"


@pytest.mark.parametrize("settings", [{}, {"pad_size": {"height": 64, "width": 80}}, {"do_normalize": False}], ids=str)
def test_pictures_of_several_sizes_are_padded_as_by_the_reference(settings):
    images = [picture_of("RGB", size, number) for number, size in enumerate([(40, 50), (70, 41), (48, 48)])]
    theirs = reference("Yolos", size={"shortest_edge": 32, "longest_edge": 64}, **settings)
    expected = theirs(images, return_tensors="pt")
    found = together([pixels_of(image) for image in images], preparation(file_of(theirs)))
    assert torch.equal(found.images, expected["pixel_values"])
    assert torch.equal(found.real, expected["pixel_mask"].bool())
    assert not found.real.all()


def test_what_is_no_batch_is_refused():
    pixels = [torch.zeros(3, side, 20, dtype=torch.uint8) for side in (20, 30)]
    ours = {"image_processor_type": "YolosImageProcessor", "size": {"shortest_edge": 32, "longest_edge": 64}}
    with pytest.raises(UsageError, match="are no batch"):
        together(pixels, preparation({**ours, "pad_and_return_pixel_mask": False}))
    with pytest.raises(UsageError, match="larger than pad_size"):
        together(pixels, preparation({**ours, "pad_size": {"height": 40, "width": 32}}))
    with pytest.raises(UsageError, match="no pictures"):
        together([], preparation(ours))
    alike = together([pixels[0]] * 2, for_size(8, 8, 3))
    assert alike.images.shape == (2, 3, 8, 8)
    assert alike.real is None


@pytest.mark.parametrize(
    "settings",
    [
        {"resample": resample} for resample in range(6)
    ]
    + [
        {"do_resize": False},
        {"do_rescale": False, "do_normalize": False},
        {"do_normalize": False},
        {"rescale_factor": 1 / 127.5, "image_mean": [1.0, 1.0, 1.0], "image_std": [1.0, 1.0, 1.0]},
        {"size": {"height": 30, "width": 50}},
        {"size": {"shortest_edge": 40}},
        {"size": {"shortest_edge": 40, "longest_edge": 60}},
        {"size": {"max_height": 33, "max_width": 21}},
        {"do_center_crop": True, "crop_size": {"height": 50, "width": 31}},
        {"do_center_crop": True, "crop_size": {"height": 300, "width": 7}},
        {"do_center_crop": True, "crop_size": {"height": 301, "width": 399}},
        {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]},
    ],
    ids=str,
)  # fmt: skip
def test_every_key_of_the_file_means_what_it_means_there(settings):
    theirs = reference("ViT", **settings)
    ours = preparation(file_of(theirs))
    for seed, size in enumerate(SIZES[2:6]):
        image = picture_of("RGB", size, seed)
        try:
            expected = theirs(image, return_tensors="pt")["pixel_values"][0]
        except ValueError:
            continue
        assert torch.equal(ours(pixels_of(image)), expected), size


def test_a_wrong_filter_is_seen():
    image = picture_of("RGB", (100, 151), 0)
    expected = reference("ViT")(image, return_tensors="pt")["pixel_values"][0]
    broken = preparation({**file_of(reference("ViT")), "resample": 3})
    assert not torch.equal(broken(pixels_of(image)), expected)


def test_without_pillow_torch_resizes_nearly_as_well(monkeypatch):
    pixels = pixels_of(picture_of("RGB", (100, 151), 3))
    exact = {way: resized(pixels, (40, 60), way) for way in (2, 3)}
    larger = {way: resized(pixels, (180, 260), way) for way in (2, 3)}
    monkeypatch.setattr(preparing, "pillow", lambda: None)
    for way in (2, 3):
        assert (resized(pixels, (40, 60), way).int() - exact[way].int()).abs().max() <= 2
        assert (resized(pixels, (180, 260), way).int() - larger[way].int()).abs().max() <= 2


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"do_thumbnail": True}, "do_thumbnail"),
        ({"crop_pct": 0.875}, "crop_pct"),
        ({"rescale_offset": True}, "rescale_offset"),
        ({"image_processor_type": "BeitImageProcessor"}, "of the class Beit, .* does not say its do_resize"),
        ({"image_processor_type": "LevitImageProcessor"}, "of the class Levit, whose steps are not done here"),
        ({"do_pad": True, "pad_size": {"height": 3}}, "pad_size = "),
        ({"resample": 9}, "resample = 9"),
        ({"resample": None, "size": {"height": -1, "width": 3}}, "size = "),
        ({"size": "large"}, "size = large"),
        ({"size": {"height": 1 << 20, "width": 1}}, "no size"),
        ({"do_center_crop": True, "crop_size": {"shortest_edge": 3}}, "crop_size"),
        ({"image_std": [0.5, 0.0, 0.5]}, "image_std"),
        ({"image_mean": ["a"]}, "image_mean"),
        ({"rescale_factor": "1/255"}, "rescale_factor"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(content, says):
    with pytest.raises(ModelFileError, match=says):
        preparation(content)


def test_each_key_of_the_known_classes_is_followed_or_harmless():
    for kind in KINDS:
        for key in file_of(reference(kind)):
            assert key in {*KINDS[kind], *HARMLESS}, (kind, key)
    assert preparation({"crop_pct": None, "_valid_processor_keys": ["a"], "do_convert_rgb": True}).crop is None
    whole = {**file_of(reference("ViT")), "image_processor_type": "BeitImageProcessor"}
    assert preparation(whole).resample == 2


def test_means_of_other_channels_are_refused():
    with pytest.raises(ModelFileError, match="3 channels, and the pictures have 1"):
        preparation({"image_mean": [0.5] * 3, "image_std": [0.5] * 3})(torch.zeros(1, 9, 9, dtype=torch.uint8))


def test_colours_become_the_brightness_that_pillow_computes():
    image = picture_of("RGB", (50, 60), 5)
    assert torch.equal(in_channels(pixels_of(image), 1), pixels_of(image.convert("L")))
    with pytest.raises(UsageError, match="2 channels"):
        in_channels(torch.zeros(2, 3, 3, dtype=torch.uint8), 3)


def test_a_size_that_the_model_does_not_read_is_refused():
    with pytest.raises(UsageError, match=r"prepared as \[3, 8, 8\], and the model reads \[3, 9, 9\]"):
        fitted(torch.zeros(3, 20, 20, dtype=torch.uint8), for_size(8, 8, 3), (3, 9, 9))
