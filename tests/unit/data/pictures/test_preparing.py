"""Pixels as a model reads them, beside the image processors of transformers that compute with Pillow."""

import importlib
import json
from itertools import product

import numpy as np
import pytest
import torch

from orrery.data.pictures import preparing
from orrery.data.pictures.files import pixels_of
from orrery.data.pictures.preparing import KINDS, fitted, for_size, in_channels, preparation, resized
from orrery.errors import ModelFileError, UsageError

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


@pytest.mark.parametrize("kind", list(KINDS))
def test_pictures_are_prepared_as_by_the_reference_to_the_last_bit(kind):
    theirs = reference(kind)
    ours = preparation(file_of(theirs))
    compared = 0
    for seed, (size, mode) in enumerate(product(SIZES, MODES)):
        image = picture_of(mode, size, seed)
        try:
            expected = theirs(image, return_tensors="pt", do_convert_rgb=True)["pixel_values"][0]
        except (ValueError, ZeroDivisionError):
            continue  # it makes a side of no pixel of a very long picture, and so do we
        assert torch.equal(ours(in_channels(pixels_of(image), 3)), expected), (size, mode)
        compared += 1
    assert compared > len(SIZES) * len(MODES) / 2


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
