"""Pictures as a model reads them: from files, arrays and Pillow's images, prepared as the model's files say."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from orrery.data.pictures.addresses import content_of, is_address
from orrery.data.pictures.files import pixels_of, read_file, read_pixels
from orrery.data.pictures.pillow import pillow
from orrery.data.pictures.preparing import FAMILIES, Preparation, fitted, for_size, in_channels, preparation
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.files import PICTURES
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import device_of
from orrery.nn.inputs import Images
from orrery.nn.patches import OverlappingPatches, PatchEmbedding, PlainPatches
from orrery.nn.positions.scheme import Grid
from orrery.nn.spec import traverse

Picture: TypeAlias = Tensor | np.ndarray | Path | str
"""An array, a picture of Pillow's, the path of a file, or its content as ``data:image/png;base64,...``.

Floats ``[channels, rows, columns]`` are what the model reads, as they are; bytes ``[rows, columns, channels]`` are
pixels.
"""
_ELSEWHERE = re.compile(r"(https?|file|s3|gs|ftp)://", re.IGNORECASE)
_LONGEST, _SHOWN = 4096, 80
"""Characters of the longest path, and those that an error shows of what is longer: it may be a picture in base64."""


def images_of(stored: Stored, given: object) -> Float[Tensor, "B channels rows columns"]:
    """Return images as the model reads them, on its device and in its dtype.

    What writes beside a picture reads those of its own size alone, because many are read as one batch; another model
    reads every size that its positions can be interpolated to.

    Raises:
        UsageError: the model reads no images, or what is given is none: see ``Picture``.
        DataError: the file cannot be read.
        ModelFileError: the model's settings for images ask for something that is not done here.
    """
    read = reads_pictures(stored)
    if read is None:
        raise UsageError("this model reads tokens, not images", "give it a text")
    value = _value(given)
    if isinstance(value, Tensor) and value.is_floating_point():
        images = value if value.dim() == 4 else value[None]
    else:
        pixels = _decoded(value) if isinstance(value, str | Path) else _pixels(value)
        images = _prepared(stored, read, pixels)
    if not stored.model.spec.writes and images.dim() == 4:
        read.grid_of(images)
    elif tuple(images.shape[1:]) != read.shape:
        raise UsageError(
            f"an array of {list(images.shape)}, and this model reads {list(read.shape)} (channels, rows, columns)",
            "resize it first, or give pixels: bytes [rows, columns, channels], or a file",
        )
    return images.to(device_of(stored), stored.model.dtype)


def _prepared(stored: Stored, read: Images, pixels: Tensor) -> Float[Tensor, "1 channels rows columns"]:
    """Return pixels as the model's settings for images say, of whatever size they give where any can be read."""
    prepare = preparation_of(stored, read)
    if stored.model.spec.writes:
        return prepare.scaled(fitted(pixels, prepare, read.shape))[None]
    return prepare(in_channels(pixels, read.channels))[None]


def pixels_given(given: object) -> UInt8[Tensor, "channels rows columns"]:
    """Return the pixels of a picture that is given, in its own size.

    Raises:
        UsageError: it is none, or what a model reads already.
        DataError: the file cannot be read.
    """
    value = _value(given)
    return _decoded(value) if isinstance(value, str | Path) else _pixels(value)


def reads_pictures(stored: Stored) -> Images | None:
    """Return the pictures that a model reads, or nothing where it reads tokens."""
    read = next(iter(stored.model.spec.inputs.values()))
    return read if isinstance(read, Images) else None


def preparation_of(stored: Stored, read: Images) -> Preparation:
    """Return how the pictures of a model are prepared: by its file, or as ViT's are where it has none.

    Raises:
        ModelFileError: there is no file, and its family prepares them otherwise than ViT.
    """
    if stored.pictures is None:
        if kind := FAMILIES.get(stored.family or ""):
            raise ModelFileError(
                f"{stored.folder} has no {PICTURES}, and pictures of {stored.family} are not prepared as ViT's are",
                f'get it from the source of the model; the usual one holds {{"image_processor_type": '
                f'"{kind}ImageProcessor"}}',
            )
        return for_size(read.rows, read.columns, read.channels)
    named = {"image_processor_type", "feature_extractor_type", "size"} & set(stored.pictures)
    size = {} if named else {"size": {"height": read.rows, "width": read.columns}}
    return preparation({**size, **stored.pictures}, str(stored.folder / PICTURES))


def patch_names(stored: Stored, size: Grid | None = None) -> list[str]:
    """Return what the places of an image's row are called, in the last of the stages that read it.

    Args:
        stored: the model.
        size: rows and columns of the image; by default those that the model is made for.
    """
    kinds = (PatchEmbedding.Spec, PlainPatches.Spec, OverlappingPatches.Spec)
    *before, last = [part for _, part in traverse(stored.model.spec) if isinstance(part, kinds)]
    if size is None:
        return last.names
    for part in before:
        size = part.input.grid(*size)
    return replace(last, image=size).names


def _value(given: object) -> Any:
    """Return what is given as a tensor, a path or a text."""
    if isinstance(given, np.ndarray):
        return torch.from_numpy(given)
    if isinstance(given, Tensor | Path | str):
        return given
    image = pillow()
    if image is not None and isinstance(given, image.Image):
        return pixels_of(given).permute(1, 2, 0)
    raise UsageError(f"an image of {type(given).__name__}", "give an array, or the path of a picture file")


def _decoded(given: str | Path) -> UInt8[Tensor, "channels rows columns"]:
    if isinstance(given, str) and is_address(given):
        return read_pixels(content_of(given))
    if isinstance(given, str) and _ELSEWHERE.match(given):
        raise UsageError(f"{given[:_SHOWN]} is an address, and nothing is fetched", "get the file, and give its path")
    return read_file(Path(given), str(given) if len(str(given)) < _LONGEST else f"{str(given)[:_SHOWN]}...")


def _pixels(value: Tensor) -> UInt8[Tensor, "channels rows columns"]:
    if value.dtype != torch.uint8 or value.dim() not in (2, 3):
        raise UsageError(
            f"an image of {value.dtype} {list(value.shape)}",
            "give bytes [rows, columns, channels], or floats [channels, rows, columns]",
        )
    return value[None] if value.dim() == 2 else value.permute(2, 0, 1)
