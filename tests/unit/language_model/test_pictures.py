"""Images on their way into a model, against the definitions of what is done to them."""

import base64
import json
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pytest
import torch

from orrery.data.pictures.addresses import BEGINNING as DATA
from orrery.data.pictures.addresses import as_address
from orrery.data.pictures.png import write_png
from orrery.errors import DataError, ModelFileError, UsageError
from orrery.language_model.model import LanguageModel
from orrery.language_model.pictures import images_of
from views_toy import PIXELS, language_model_of


@pytest.fixture(scope="module")
def lm():
    return language_model_of("vit")


def size_of(lm):
    return next(iter(lm.model.spec.inputs.values())).shape


def test_pixels_are_scaled_to_what_the_model_learned(lm):
    channels, rows, columns = size_of(lm)
    pixels = torch.randint(0, 256, (rows, columns, channels), dtype=torch.uint8)
    images = images_of(lm.stored, pixels)
    expected = (pixels.permute(2, 0, 1).double() / 255 - 0.5) / 0.5
    torch.testing.assert_close(images[0].double(), expected, rtol=0, atol=1e-6)


def test_every_form_of_an_image_is_the_same_image(lm, tmp_path):
    expected = images_of(lm.stored, PIXELS)
    content = write_png(PIXELS.permute(2, 0, 1))
    file = tmp_path / "image.png"
    file.write_bytes(content)
    for given in (PIXELS.numpy(), file, str(file), DATA + base64.b64encode(content).decode()):
        assert torch.equal(images_of(lm.stored, given), expected)
    assert torch.equal(images_of(lm.stored, expected), expected)
    assert torch.equal(images_of(lm.stored, expected[0].numpy()), expected)
    assert torch.equal(lm.trace(file).ids, expected)


def test_a_smaller_image_is_the_mean_of_what_it_covers(lm):
    channels, rows, columns = size_of(lm)
    even = torch.full((2 * rows, 3 * columns, channels), 77, dtype=torch.uint8)
    expected = torch.full((1, *size_of(lm)), (77 / 255 - 0.5) / 0.5)
    torch.testing.assert_close(images_of(lm.stored, even), expected, rtol=0, atol=1e-6)
    half = torch.arange(2 * columns, dtype=torch.uint8).expand(2 * rows, -1)[..., None].expand(-1, -1, channels)
    inner = images_of(lm.stored, half)[0, 0, 1:-1, 1:-1]  # a ramp stays a ramp, away from its ends
    expected = 2 * torch.arange(1, columns - 1) + 0.5
    assert ((inner * 0.5 + 0.5) * 255 - expected).abs().max() <= 0.5 + 1e-4


def test_grey_is_every_colour_alike(lm):
    images = images_of(lm.stored, PIXELS[..., 0])
    assert torch.equal(images[:, 0], images[:, 1])
    assert torch.equal(images[0, 0], images_of(lm.stored, PIXELS)[0, 0])


def test_the_models_own_settings_are_kept(lm):
    told = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.5, 0.6, 0.7], "rescale_factor": 0.01, "resample": 3}
    own = replace(lm.stored, pictures=told)
    channels, rows, columns = size_of(lm)
    pixels = torch.randint(0, 256, (rows, columns, channels), dtype=torch.uint8)
    expected = (pixels.double() * 0.01 - torch.tensor(told["image_mean"])) / torch.tensor(told["image_std"])
    torch.testing.assert_close(images_of(own, pixels)[0].double(), expected.permute(2, 0, 1), rtol=0, atol=1e-6)
    with pytest.raises(ModelFileError, match="do_thumbnail"):
        images_of(replace(lm.stored, pictures={"do_thumbnail": True}), pixels)


def test_a_family_whose_file_is_missing_is_not_prepared_as_vits(lm):
    lacking = replace(lm.stored, family="clip", pictures=None)
    with pytest.raises(ModelFileError, match=r"no preprocessor_config\.json, and pictures of clip") as error:
        images_of(lacking, PIXELS)
    told = json.loads(error.value.hint.partition(" holds ")[2])
    assert images_of(replace(lacking, pictures=told), PIXELS).shape == (1, 3, 224, 224)


@pytest.mark.parametrize(
    "altered",
    [
        lambda head, content: f"{head},{chr(10).join(content[n : n + 76] for n in range(0, len(content), 76))}",
        lambda head, content: f"{head},{quote(content, safe='')}",
        lambda head, content: f"{head.upper()}, {content}",
        lambda head, content: f"data:application/octet-stream;charset=utf-8;base64,{content}",
        lambda head, content: f"data:;base64,{content}",
    ],
    ids=["lines", "escaped", "capitals", "octets", "nothing"],
)
def test_a_picture_is_read_from_an_address_however_it_is_written(lm, altered):
    address = as_address(PIXELS.numpy())
    head, _, content = address.partition(",")
    assert torch.equal(images_of(lm.stored, altered(head, content)), images_of(lm.stored, PIXELS))


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (torch.zeros(3, 3, 5), UsageError, r"images of \[3, 3, 5\]"),
        (torch.zeros(4, 4, dtype=torch.int64), UsageError, "torch.int64"),
        (np.zeros((9, 9, 2), dtype=np.uint8), UsageError, "2 channels"),
        ([1, 2], UsageError, "an image of list"),
        ("nowhere.png", DataError, "nowhere.png cannot be read"),
        (DATA + "!", DataError, "no base64"),
        ("https://e.com/a.png", UsageError, "is an address, and nothing is fetched"),
        ("iVBORw0KGgo" * 1000, DataError, r"^(iVBORw0KGgo)+\w*\.\.\. cannot be read"),
        (DATA + "aGVsbG8=", DataError, "no PNG|no picture"),
    ],
)
def test_what_is_no_image_is_refused(lm, given, error, says):
    with pytest.raises(error, match=says):
        images_of(lm.stored, given)


def test_an_image_is_refused_by_a_model_of_texts(tmp_path):
    lm = language_model_of("gpt2")
    with pytest.raises(UsageError, match="reads tokens"):
        images_of(lm.stored, PIXELS)
    for given in (tmp_path / "image.png", np.zeros((2, 2), dtype=np.uint8), torch.zeros(1, 3)):
        with pytest.raises(UsageError, match="a trace of"):
            LanguageModel(lm.stored).trace(given)
