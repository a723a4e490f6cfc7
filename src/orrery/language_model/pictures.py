"""Images as a model reads them: from PNG files or arrays, resized, and scaled as the model's files say."""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional as F

from orrery.checkpoints.json_file import read_json
from orrery.data.png import read_png
from orrery.errors import DataError, ModelFileError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import device_of
from orrery.nn.inputs import Images
from orrery.nn.patches import PatchEmbedding
from orrery.nn.spec import traverse

Picture: TypeAlias = Tensor | np.ndarray | Path | str
"""An array, or the path of a PNG file, or its content as ``data:image/png;base64,...``.

Floats ``[channels, rows, columns]`` are what the model reads, as they are; bytes ``[rows, columns, channels]`` are
pixels.
"""
DATA = "data:image/png;base64,"
SETTINGS = "preprocessor_config.json"
DEFAULTS: Mapping[str, Any] = {
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5],
    "image_std": [0.5],
    "resample": 2,
    "do_center_crop": False,
}
"""What a model without ``preprocessor_config.json`` learned with: ViT's settings (Dosovitskiy et al. 2021)."""
WAYS = {0: "nearest-exact", 2: "bilinear", 3: "bicubic"}
"""How an image is resized, by the number in the file, which is Pillow's."""


def images_of(stored: Stored, given: object) -> Float[Tensor, "B channels rows columns"]:
    """Return images as the model reads them, on its device and in its dtype.

    Raises:
        UsageError: the model reads no images, or what is given is none: see ``Picture``.
        DataError: the file cannot be read.
        ModelFileError: the model's settings for images ask for something that is not done here.
    """
    read = next(iter(stored.model.spec.inputs.values()))
    if not isinstance(read, Images):
        raise UsageError("this model reads tokens, not images", "give it a text")
    if not isinstance(given, Tensor | np.ndarray | Path | str):
        raise UsageError(f"an image of {type(given).__name__}", "give an array, or the path of a PNG file")
    value = torch.from_numpy(given) if isinstance(given, np.ndarray) else given
    if isinstance(value, Tensor) and value.is_floating_point():
        images = value if value.dim() == 4 else value[None]
    else:
        pixels = _decoded(value) if isinstance(value, str | Path) else _pixels(value)
        images = _prepared(_channels(pixels, read), read, settings_of(stored.folder))[None]
    if tuple(images.shape[1:]) != read.shape:
        raise UsageError(
            f"an array of {list(images.shape)}, and this model reads {list(read.shape)} (channels, rows, columns)",
            "resize it first, or give pixels: bytes [rows, columns, channels], or a PNG file",
        )
    return images.to(device_of(stored), stored.model.dtype)


def patch_names(stored: Stored) -> list[str]:
    """Return what the places of an image's row are called: ``class``, then each patch by its row and column."""
    spec = next(part for _, part in traverse(stored.model.spec) if isinstance(part, PatchEmbedding.Spec))
    rows, columns = (whole // side for whole, side in zip(spec.image, spec.patch, strict=True))
    return ["class", *(f"{row}·{column}" for row in range(1, rows + 1) for column in range(1, columns + 1))]


def settings_of(folder: Path) -> Mapping[str, Any]:
    """Return how the images of a model are prepared.

    Raises:
        ModelFileError: they are cropped, or resized in an unknown way.
    """
    file = folder / SETTINGS
    settings = {**DEFAULTS, **(read_json(file) if file.exists() else {})}
    if settings["do_center_crop"] or settings["resample"] not in WAYS:
        raise ModelFileError(f"{file} crops images, or resizes them in an unknown way", "prepare the array yourself")
    return settings


def _decoded(given: str | Path) -> UInt8[Tensor, "channels rows columns"]:
    if isinstance(given, str) and given.startswith("data:"):
        try:
            return read_png(base64.b64decode(given.removeprefix(DATA), validate=True))
        except binascii.Error as error:
            raise DataError(f"this image is no base64: {error}", f"it begins with {DATA}") from None
    try:
        return read_png(Path(given).read_bytes(), str(given))
    except OSError as error:
        raise DataError(f"{given} cannot be read: {error.strerror}", "check the path") from error


def _pixels(value: Tensor) -> UInt8[Tensor, "channels rows columns"]:
    if value.dtype != torch.uint8 or value.dim() not in (2, 3):
        raise UsageError(
            f"an image of {value.dtype} {list(value.shape)}",
            "give bytes [rows, columns, channels], or floats [channels, rows, columns]",
        )
    return value[None] if value.dim() == 2 else value.permute(2, 0, 1)


def _channels(pixels: Tensor, read: Images) -> Tensor:
    if len(pixels) == read.channels:
        return pixels
    if len(pixels) != 1:
        raise UsageError(
            f"an image of {len(pixels)} channels, and this model reads {read.channels}", "convert its colours first"
        )
    return pixels.expand(read.channels, -1, -1)  # grey: every colour alike


def _prepared(pixels: Tensor, read: Images, settings: Mapping[str, Any]) -> Float[Tensor, "channels rows columns"]:
    """Resize, and scale to what the model learned to read."""
    value = pixels.float()
    size, way = (read.rows, read.columns), WAYS[settings["resample"]]
    if value.shape[1:] != size:
        smooth = {"antialias": True, "align_corners": False} if way != "nearest-exact" else {}
        value = F.interpolate(value[None], size, mode=way, **smooth)[0].round().clamp(0, 255)
    if settings["do_rescale"]:
        value = value * settings["rescale_factor"]
    if settings["do_normalize"]:
        mean, std = (
            torch.tensor(settings[name], dtype=value.dtype)[:, None, None] for name in ("image_mean", "image_std")
        )
        value = (value - mean) / std
    return value
