"""Kept values on the disk: what a trace keeps goes into a file a layer, and is read when it is asked for."""

import re
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from torch import Tensor

from orrery.checkpoints.tensors import TensorFile, write_tensors
from orrery.errors import MachineError, UsageError

_LAYER = re.compile(r"(.*?blocks\.\d+)\.")


def layer_of(key: str) -> str:
    """Return the layer that a key belongs to, ``blocks.3`` for example, or nothing for one outside the blocks."""
    match = _LAYER.match(key)
    return match[1] if match else ""


class KeptOnDisk(MutableMapping[str, Tensor]):
    """The values of a trace by key, of which one layer at most is in memory.

    When the first value of another layer comes, those of the layer before are written into a safetensors file of
    their own. A value is read from its file each time that it is asked for, and is a new tensor on the processor.

    Attributes:
        folder: where the files are.
        most_held: the most bytes that were in memory at once.
    """

    def __init__(self, folder: str | Path) -> None:
        """Take an empty folder, made where it is missing.

        Raises:
            UsageError: there is something in it.
            MachineError: it cannot be made.
        """
        self.folder, self.most_held = Path(folder), 0
        self._held: dict[str, Tensor] = {}
        self._files: dict[str, TensorFile] = {}
        self._layer = ""
        self._order: dict[str, None] = {}
        self._written = 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            full = any(self.folder.iterdir())
        except OSError as error:
            raise MachineError(f"{self.folder}: {error.strerror}", "give another folder") from error
        if full:
            raise UsageError(f"{self.folder} is not empty", "give a folder of its own to every trace")

    def __setitem__(self, key: str, value: Tensor) -> None:
        layer = layer_of(key)
        if layer != self._layer:
            self.write()
            self._layer = layer
        self._held[key] = value
        self._order[key] = None
        self.most_held = max(self.most_held, sum(one.nbytes for one in self._held.values()))

    def __getitem__(self, key: str) -> Tensor:
        return self._held[key] if key in self._held else self._files[key][key]

    def __delitem__(self, key: str) -> None:
        raise UsageError("what is kept on the disk stays", "delete the folder as a whole")

    def __iter__(self) -> Iterator[str]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, key: object) -> bool:
        return key in self._order

    def write(self) -> None:
        """Write what is in memory into the next file.

        Raises:
            MachineError: the disk refuses.
        """
        if not self._held:
            return
        path = self.folder / f"{self._written:04}.{self._layer or 'around'}.safetensors"
        try:
            write_tensors(path, self._held)
        except OSError as error:
            hint = "keep fewer values, or give a folder on another disk"
            raise MachineError(f"{path}: {error.strerror}", hint) from error
        file = TensorFile(path)
        self._files.update(dict.fromkeys(self._held, file))
        self._held, self._written = {}, self._written + 1
