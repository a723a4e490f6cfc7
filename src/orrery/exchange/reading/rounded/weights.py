"""The tensors of a folder whose matrices another program has rounded: each is unpacked when it is asked for."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from orrery.errors import ModelFileError
from orrery.exchange.reading.files import Weights
from orrery.exchange.reading.mlx_layout import MlxTensors
from orrery.exchange.reading.placement import DTYPES
from orrery.exchange.reading.rounded.config import MLX, method_of
from orrery.exchange.reading.rounded.method import Method, RoundedParts
from orrery.exchange.reading.rounded.mlx import Mlx

Answer = TypeVar("Answer")


class RoundedWeights(Mapping[str, Any]):  # not Tensor: a check of types at run time would unpack one
    """The same tensors as ``Weights`` would give of the folder before it was rounded, under the same names.

    Args:
        weights: the files.
        method: how the other program stores a matrix.
        path: the configuration that says so, for errors.
        dtype: of the unpacked numbers, which is that of the others; by default each method's own.
    """

    def __init__(self, weights: Weights, method: Method, path: Path, dtype: torch.dtype | None = None) -> None:
        self._weights, self._method, self._path, self._dtype = weights, method, path, dtype
        self._matrices = method.matrices(weights)
        taken = {name for parts in self._matrices.values() for name in parts.values()}
        self._plain = [name for name in weights if name not in taken and not name.endswith(method.silent)]
        if doubled := [name for name in self._plain if name in self._matrices]:
            raise self._refused(doubled[0], "stands in the file as it is and packed")

    @property
    def method(self) -> str:
        """What the matrices were rounded by, such as ``gptq to 4 bits``."""
        return str(self._method)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._matrices:
            return self._weights[name]
        tensor, shape = self._asked(self._method.unpack, name), self._asked(self._method.shape, name)
        if tuple(tensor.shape) != shape:
            raise self._refused(name, f"has {list(tensor.shape)} numbers and says {list(shape)}")
        return tensor if self._dtype is None else tensor.to(self._dtype)

    def __iter__(self) -> Iterator[str]:
        yield from self._plain
        yield from self._matrices

    def __len__(self) -> int:
        return len(self._plain) + len(self._matrices)

    @property
    def elements(self) -> int:
        """How many numbers there are, unpacked."""
        plain = self._weights.empty()
        packed = (math.prod(self._asked(self._method.shape, name)) for name in self._matrices)
        return sum(plain[name].numel() for name in self._plain) + sum(packed)

    def empty(self) -> dict[str, Tensor]:
        """Return all tensors on the meta device: shapes and dtypes, without a matrix read."""
        plain = self._weights.empty()
        tensors = {name: plain[name] for name in self._plain}
        for name in self._matrices:
            shape, own = self._asked(self._method.shape, name), self._asked(self._method.dtype, name)
            tensors[name] = torch.empty(shape, dtype=self._dtype or own, device="meta")
        return tensors

    def _asked(self, ask: Callable[[RoundedParts], Answer], name: str) -> Answer:
        """Return what a method says of a matrix; what does not fit is an error that names it."""
        try:
            return ask(RoundedParts(self._weights, self._matrices[name]))
        except (ValueError, RuntimeError, IndexError, TypeError) as error:
            raise self._refused(name, str(error).split("\n")[0]) from error

    def _refused(self, name: str, why: str) -> ModelFileError:
        return ModelFileError(
            f"{self._path}: {name} was rounded by {self._method} and cannot be unpacked: {why}",
            "get the folder again from its source, or take the one that it was made from",
        )


def unpacking(weights: Weights, config: Mapping[str, Any], path: Path) -> Weights | RoundedWeights | MlxTensors:
    """Return the weights of a folder as floats that transformers would have, whoever rounded or wrote them.

    Raises:
        ModelFileError: they were rounded by a program whose files are not read; it is named.
    """
    method = method_of(config, path)
    given = str(config.get("dtype") or config.get("torch_dtype")).removeprefix("torch.")
    floats = weights if method is None else RoundedWeights(weights, method, path, DTYPES.get(given))
    by_mlx = isinstance(method, Mlx) or weights.format == MLX
    return MlxTensors(floats, config.get("model_type"), path) if by_mlx else floats
