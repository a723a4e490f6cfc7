"""Pixels as a model reads them, as its ``preprocessor_config.json`` says: resized, cropped, rescaled, normalised.

The result is that of the image processors of transformers that compute with Pillow, number for number; without Pillow
torch resizes, at most two levels of 255 away.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional as F

from orrery.data.pictures.pillow import pillow
from orrery.data.pictures.png import MOST_PIXELS
from orrery.errors import DataError, ModelFileError, UsageError

_STANDARD = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_CLIP = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
_USUAL: Mapping[str, Any] = {
    "do_resize": True,
    "size": {"height": 224, "width": 224},
    "resample": 2,
    "do_center_crop": False,
    "crop_size": None,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "do_pad": False,
    "pad_size": None,
    **_STANDARD,
}
_SQUARE_224 = {"height": 224, "width": 224}
_SHORTEST_224 = {"size": {"shortest_edge": 224}, "do_center_crop": True, "crop_size": _SQUARE_224, "square": False}
KINDS: Mapping[str, Mapping[str, Any]] = {
    "ViT": _USUAL,
    "DeiT": {
        **_USUAL, "resample": 3, "size": {"height": 256, "width": 256}, "do_center_crop": True,
        "crop_size": _SQUARE_224,
    },
    "CLIP": {**_USUAL, "resample": 3, **_SHORTEST_224, **_CLIP},
    "Bit": {**_USUAL, "resample": 3, **_SHORTEST_224, **_CLIP},
    "Siglip": {**_USUAL, "resample": 3, "square": False},
    "Blip": {**_USUAL, "resample": 3, "size": {"height": 384, "width": 384}, **_CLIP},
    "Segformer": {**_USUAL, "size": {"height": 512, "width": 512}, **_IMAGENET},
    "Yolos": {
        **_USUAL, "size": {"shortest_edge": 800, "longest_edge": 1333}, "square": False, "step": 16, "do_pad": True,
        **_IMAGENET,
    },
}  # fmt: skip
"""What the class of a processor means where its file says nothing, by the beginning of its name in transformers."""
FAMILIES: Mapping[str, str] = {
    "clip": "CLIP", "clip_vision_model": "CLIP", "siglip": "Siglip", "siglip_vision_model": "Siglip", "blip": "Blip",
    "deit": "DeiT", "dinov2": "Bit", "segformer": "Segformer", "yolos": "Yolos",
}  # fmt: skip
"""The class of the processor of families, by their model_type, whose pictures are not prepared as ViT's are."""
_ENDS = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")
HARMLESS = frozenset({
    "image_processor_type", "feature_extractor_type", "processor_class", "do_convert_rgb", "do_reduce_labels",
    "reduce_labels", "do_convert_annotations", "format", "max_size", "use_square_size", "pad_and_return_pixel_mask",
    "auto_map", "data_format", "input_data_format", "return_tensors", "device", "disable_grouping",
    "default_to_square", "model_input_names",
})  # fmt: skip
"""Keys that say nothing of a picture's numbers: every picture becomes colours, and labels are read elsewhere."""
_OTHERWISE = frozenset({"ConvNext", "DINOv3ViT", "EfficientNet", "Glpn", "Levit", "Perceiver", "PoolFormer"})
"""Classes with steps of their own that no key of their files names."""
_OF_A_CLASS = ("do_resize", "size", "resample", "do_normalize", "image_mean", "image_std")
"""What classes differ in, and a file of an unknown one has to say."""
_FILTERS = {0: "nearest-exact", 2: "bilinear", 3: "bicubic"}
"""How torch resizes in the place of Pillow's filter of this number."""


@dataclass(frozen=True)
class Preparation:
    """``(crop(resize(pixels)) * rescale_factor - mean) / std``, with what is left out left out.

    Attributes:
        size: what a picture is resized to: ``height`` and ``width``, or ``shortest_edge`` with the other side in
            proportion and at most ``longest_edge``; nothing where it keeps its size.
        pads: whether pictures of several sizes become a batch, with zeros to the right and below.
        pad_size: the rows and columns of a batch; by default those of the largest of its pictures.
        step: sides are cut down to a multiple of it, where the longest edge is bounded.
        resample: Pillow's number of the filter: 0 nearest, 1 Lanczos, 2 bilinear, 3 bicubic, 4 box, 5 Hamming.
        crop: rows and columns that are cut from the middle; a smaller picture gets black around it.
        factor: the numbers are multiplied by it; nothing where they stay 0 to 255.
        mean: of each channel, subtracted; nothing where that is left out.
        std: of each channel, by which is divided.
        content: the file as it was read, which is written again.
    """

    size: Mapping[str, int] | None
    resample: int
    crop: tuple[int, int] | None
    factor: float | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    pads: bool = False
    pad_size: tuple[int, int] | None = None
    step: int = 1
    content: Mapping[str, Any] = field(default_factory=dict)

    def cut(self, pixels: UInt8[Tensor, "channels rows columns"]) -> UInt8[Tensor, "channels height width"]:
        """Return the pixels resized and cropped.

        Raises:
            DataError: a side would have no pixel, or all would be too many.
        """
        if self.size is not None:
            target = _target(self.size, pixels.shape[-2], pixels.shape[-1], self.step)
            _check_target(target, pixels.shape[-2], pixels.shape[-1])
            pixels = resized(pixels, target, self.resample)
        return pixels if self.crop is None else _cropped(pixels, *self.crop)

    def scaled(self, pixels: UInt8[Tensor, "*B channels rows columns"]) -> Float[Tensor, "*B channels rows columns"]:
        """Return pixels as the numbers that a model reads, float32.

        Raises:
            ModelFileError: there is a mean for another number of channels.
        """
        values = pixels.float() if self.factor is None else (pixels.double() * self.factor).float()
        if self.mean is None or self.std is None:
            return values
        mean, std = (self._by_channel(numbers, values.shape[-3]) for numbers in (self.mean, self.std))
        return (values - mean) / std

    def __call__(self, pixels: UInt8[Tensor, "channels rows columns"]) -> Float[Tensor, "channels height width"]:
        """Return a picture as the model reads it."""
        return self.scaled(self.cut(pixels))

    def _by_channel(self, numbers: Sequence[float], channels: int) -> Tensor:
        if len(numbers) not in (1, channels):
            raise ModelFileError(
                f"preprocessor_config.json has means of {len(numbers)} channels, and the pictures have {channels}",
                "give image_mean and image_std one number for each channel",
            )
        return torch.tensor(numbers, dtype=torch.float32)[:, None, None]


def preparation(content: Mapping[str, Any], where: str = "preprocessor_config.json") -> Preparation:
    """Return what a file says, with what its class means where it is silent.

    Raises:
        ModelFileError: a size, a filter or a number makes no sense, or it asks for a step that is not known here.
    """
    usual = KINDS.get(_kind(content), _USUAL)
    found = {**usual, **{key: value for key, value in content.items() if value is not None}}
    found["do_pad"] = content.get("do_pad", content.get("pad_and_return_pixel_mask", usual["do_pad"]))
    _refuse_unknown(content, where)
    resample = found["resample"]
    if resample not in range(6):
        raise ModelFileError(f"{where}: resample = {resample!r} is no filter", "0 to 5, as Pillow numbers them")
    square = found.get("square", True)
    crop = _sides(found["crop_size"] or found["size"], where, "crop_size") if found["do_center_crop"] else None
    normal = bool(found["do_normalize"])
    return Preparation(
        size=_size(found["size"], square, found, where) if found["do_resize"] else None,
        resample=int(resample),
        crop=crop,
        factor=_number(found["rescale_factor"], "rescale_factor", where) if found["do_rescale"] else None,
        mean=_numbers(found["image_mean"], "image_mean", where) if normal else None,
        std=_numbers(found["image_std"], "image_std", where, above_zero=True) if normal else None,
        pads=bool(found["do_pad"]),
        pad_size=_sides(found["pad_size"], where, "pad_size") if found["do_pad"] and found["pad_size"] else None,
        step=found.get("step", 1),
        content=dict(content),
    )


def _refuse_unknown(content: Mapping[str, Any], where: str) -> None:
    """Refuse what a file asks for that is not done here, and a class whose meaning is not known where it is needed.

    Raises:
        ModelFileError: there is such a key, or the file leaves out what only its class would say.
    """
    known = {*_USUAL, *HARMLESS}
    if asked := [key for key, value in content.items() if value and key not in known and key[0] != "_"]:
        raise ModelFileError(f"{where} asks for {asked[0]}, which is not done here", "prepare the arrays yourself")
    kind = _kind(content)
    if kind in _OTHERWISE:
        message = f"{where} is of the class {kind}, whose steps are not done here"
        raise ModelFileError(message, f"prepare the arrays yourself; known classes: {', '.join(KINDS)}")
    if kind and kind not in KINDS and (missing := [key for key in _OF_A_CLASS if key not in content]):
        raise ModelFileError(
            f"{where} is of the class {kind}, which is not known here, and does not say its {missing[0]}",
            f"add {', '.join(missing)}; known classes: {', '.join(KINDS)}",
        )


def for_size(rows: int, columns: int, channels: int) -> Preparation:
    """Return ViT's preparation for pictures of a size (Dosovitskiy et al. 2021): what a new model learns with."""
    return preparation(
        {
            "image_processor_type": "ViTImageProcessor",
            "size": {"height": rows, "width": columns},
            "image_mean": [0.5] * channels,
            "image_std": [0.5] * channels,
            "resample": 2,
            "do_resize": True,
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
        }
    )


def _kind(content: Mapping[str, Any]) -> str:
    named = str(content.get("image_processor_type") or content.get("feature_extractor_type") or "")
    return next((named.removesuffix(end) for end in _ENDS if named.endswith(end)), named)


def _size(value: Any, square: bool, found: Mapping[str, Any], where: str, key: str = "size") -> Mapping[str, int]:
    if isinstance(value, int) and not isinstance(value, bool):
        longest = {"longest_edge": found["max_size"]} if found.get("max_size") else {}
        value = {"height": value, "width": value} if square else {"shortest_edge": value, **longest}
    elif isinstance(value, list | tuple) and len(value) == 2:
        value = {"height": value[0], "width": value[1]}
    known = ({"height", "width"}, {"shortest_edge"}, {"shortest_edge", "longest_edge"}, {"max_height", "max_width"})
    sides = {key: side for key, side in value.items() if side is not None} if isinstance(value, Mapping) else {}
    if set(sides) not in known or not all(type(side) is int and 0 < side <= 1 << 14 for side in sides.values()):
        raise ModelFileError(
            f"{where}: {key} = {str(value)[:60]} is no size", "give height and width, or shortest_edge, in pixels"
        )
    return sides


def _sides(value: Any, where: str, key: str) -> tuple[int, int]:
    sides = _size(value, True, {}, where, key)
    if "height" not in sides:
        raise ModelFileError(f"{where}: {key} = {str(value)[:60]} is no size", "give height and width in pixels")
    return sides["height"], sides["width"]


def _number(value: Any, key: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelFileError(f"{where}: {key} = {str(value)[:40]!r} is no number", "correct it")
    return float(value)


def _numbers(value: Any, key: str, where: str, *, above_zero: bool = False) -> tuple[float, ...]:
    numbers = tuple(_number(each, key, where) for each in (value if isinstance(value, list | tuple) else [value]))
    if not numbers or (above_zero and min(numbers) <= 0):
        raise ModelFileError(f"{where}: {key} = {str(value)[:40]!r} makes no sense", "give numbers above 0")
    return numbers


def _target(size: Mapping[str, int], rows: int, columns: int, step: int) -> tuple[int, int]:
    """Return the rows and columns that a picture of so many gets."""
    if "height" in size:
        return size["height"], size["width"]
    if "max_height" in size:
        scale = min(size["max_height"] / rows, size["max_width"] / columns)
        return int(rows * scale), int(columns * scale)
    short, longest = size["shortest_edge"], size.get("longest_edge")
    if longest is None:
        long = int(short * max(rows, columns) / min(rows, columns))
        return (long, short) if columns <= rows else (short, long)
    exact: float = short
    if max(rows, columns) / min(rows, columns) * short > longest:
        exact = longest * min(rows, columns) / max(rows, columns)
        short = round(exact)
    if min(rows, columns) == short:
        found = (rows, columns)
    elif columns < rows:
        found = (int(exact * rows / columns), short)
    else:
        found = (short, int(exact * columns / rows))
    return found[0] - found[0] % step, found[1] - found[1] % step


def _check_target(target: tuple[int, int], rows: int, columns: int) -> None:
    """Refuse what no picture can be resized to: a thin one whose short side is given may come to be as long as memory.

    Raises:
        DataError: it has no pixel, or more than a file may have.
    """
    if not 0 < target[0] * target[1] <= MOST_PIXELS:
        raise DataError(
            f"a picture of {rows:,} rows of {columns:,} pixels would become one of {target[0]:,} rows of {target[1]:,}",
            "cut it so that its sides are more alike",
        )


def resized(
    pixels: UInt8[Tensor, "channels rows columns"], size: tuple[int, int], resample: int
) -> UInt8[Tensor, "channels height width"]:
    """Return pixels of another size, by Pillow's filter of this number."""
    if tuple(pixels.shape[1:]) == size:
        return pixels
    image = pillow()
    if image is None:
        return _resized_by_torch(pixels, size, resample)
    array = pixels.numpy()
    picture = image.fromarray(array[0] if len(array) == 1 else np.ascontiguousarray(array.transpose(1, 2, 0)))
    found = np.array(picture.resize(size[::-1], resample=resample))
    return torch.from_numpy(found[None] if found.ndim == 2 else np.ascontiguousarray(found.transpose(2, 0, 1)))


def _resized_by_torch(pixels: Tensor, size: tuple[int, int], resample: int) -> Tensor:
    """Resize in bytes, as Pillow does: it rounds between its two passes."""
    way = _FILTERS.get(resample, "bilinear")
    smooth = {"antialias": True, "align_corners": False} if way != "nearest-exact" else {}
    return F.interpolate(pixels[None], size, mode=way, **smooth)[0]


def _cropped(pixels: Tensor, rows: int, columns: int) -> Tensor:
    """Return the middle; black stands around a picture that is smaller."""
    had_rows, had_columns = pixels.shape[-2:]
    top, left = (had_rows - rows) // 2, (had_columns - columns) // 2
    if top >= 0 and left >= 0 and had_rows >= rows and had_columns >= columns:
        return pixels[..., top : top + rows, left : left + columns]
    whole_rows, whole_columns = max(rows, had_rows), max(columns, had_columns)
    down, right = ceil((whole_rows - had_rows) / 2), ceil((whole_columns - had_columns) / 2)
    whole = pixels.new_zeros((*pixels.shape[:-2], whole_rows, whole_columns))
    whole[..., down : down + had_rows, right : right + had_columns] = pixels
    top, left = top + down, left + right
    return whole[..., max(0, top) : min(whole_rows, top + rows), max(0, left) : min(whole_columns, left + columns)]


def in_channels(pixels: UInt8[Tensor, "channels rows columns"], channels: int) -> UInt8[Tensor, "C rows columns"]:
    """Return pixels with as many channels as a model reads: grey as every colour alike, colours as their brightness.

    Brightness is ``0.299 R + 0.587 G + 0.114 B`` (ITU-R BT.601), rounded as Pillow does.

    Raises:
        UsageError: another number of channels.
    """
    if len(pixels) == channels:
        return pixels
    if len(pixels) == 1:
        return pixels.expand(channels, -1, -1)
    if len(pixels) == 3 and channels == 1:
        weights = torch.tensor([19595, 38470, 7471], dtype=torch.int64)[:, None, None]
        return ((pixels.long() * weights).sum(0, keepdim=True) + 0x8000 >> 16).to(torch.uint8)
    message = f"a picture of {len(pixels)} channels, and this model reads {channels}"
    raise UsageError(message, "convert its colours first")


def fitted(
    pixels: UInt8[Tensor, "channels rows columns"], preparation: Preparation, shape: tuple[int, int, int]
) -> UInt8[Tensor, "C height width"]:
    """Return one picture cut to the shape that a model reads.

    Raises:
        UsageError: the preparation gives another size than the model reads.
    """
    cut = preparation.cut(in_channels(pixels, shape[0]))
    if tuple(cut.shape) != shape:
        raise UsageError(
            f"a picture prepared as {list(cut.shape)}, and the model reads {list(shape)} (channels, rows, columns)",
            "correct size and crop_size in its preprocessor_config.json",
        )
    return cut
