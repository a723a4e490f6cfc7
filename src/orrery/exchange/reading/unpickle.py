"""A process of its own that turns one pickle into safetensors: ``python -m orrery.exchange.reading.unpickle IN OUT``.

A pickle is a program. torch runs only the few instructions of it that make tensors; this process is for the day that
torch is wrong: it has no network, a bound on its memory, its time and what it writes, and opens one file for writing;
the kernel holds it to that where it can, and Python's own announcements everywhere.
"""

import json
import os
import pickle
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_ALLOWED = (
    "import", "compile", "exec", "marshal.loads", "code.__new__", "function.__new__", "object.__", "pickle.find_class",
    "os.listdir", "os.scandir", "os.walk", "os.fwalk", "glob.", "mmap.__new__", "array.__new__", "builtins.id", "gc.",
    "sys.", "cpython.",
)  # fmt: skip
"""Beginnings of the events that Python announces before it acts, of those that only read and import."""
_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_EXCL
_WRAPPERS = ("state_dict", "model_state_dict", "model", "module")
_MEGABYTE = 2**20
ARGUMENTS, CHARACTERS = "model_args", "meta.pkl"
_MOST_SETTINGS = 10_000
"""Characters of the settings beside the tensors."""


def main(source: Path, target: Path) -> int:
    """Close this process in and convert one file; on failure print one line on stderr and return 1."""
    _leave_the_network()
    import torch

    import orrery.checkpoints.tensors  # noqa: F401 - before the bounds are set
    from orrery.exchange.reading.closed_in import only_write

    torch.set_num_threads(1)
    try:
        _bound(source.stat().st_size)
        only_write(target)
        _watch(target)
        convert(source, target)
    except BaseException as error:  # whatever a hostile file causes is one line for the process that waits
        print(reason(error), file=sys.stderr)
        return 1
    return 0


def convert(source: Path, target: Path) -> None:
    """Write the tensors of a pickle as safetensors, with the settings of the model where they lie beside them."""
    import torch

    from orrery.checkpoints.tensors import write_tensors

    if source.name == CHARACTERS:
        write_tensors(target, {}, {CHARACTERS: json.dumps(characters_of(source))})
        return
    state = torch.load(source, map_location="cpu", weights_only=True)
    write_tensors(target, tensors_of(state), arguments_of(state))


def reason(error: BaseException) -> str:
    """Return what went wrong in one line; torch's own message is a page that ends in the advice to run the pickle."""
    text = str(error)
    if match := re.search(r"GLOBAL (\S+)", text):
        return f"it wants to call {match[1]}, which is code and no tensor"
    if text.startswith("Weights only load failed"):
        return "it holds instructions that make no tensors"
    return f"{type(error).__name__}: {text.splitlines()[0] if text else 'no reason given'}"


def tensors_of(state: Any) -> dict[str, Any]:
    """Return the tensors by name; a training script may have wrapped them once, as ``{"state_dict": ...}``.

    Raises:
        ValueError: there is something else among them.
    """
    for name in _WRAPPERS:
        if isinstance(state, Mapping) and isinstance(state.get(name), Mapping):
            state = state[name]
    if not isinstance(state, Mapping) or not state:
        raise ValueError("the file holds no tensors by name")
    for name, tensor in state.items():
        if not isinstance(name, str) or not hasattr(tensor, "untyped_storage"):
            raise ValueError(f"{str(name)[:100]!r} is a {type(tensor).__name__}, not a tensor")
    return {name: tensor.detach() for name, tensor in state.items()}


class _Plain(pickle.Unpickler):
    """Reads numbers, texts, lists and mappings alone."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse whatever a pickle would call."""
        raise pickle.UnpicklingError(f"GLOBAL {module}.{name}")


def characters_of(source: Path) -> list[str]:
    """Return the characters by their ids, of the meta.pkl that nanoGPT writes beside texts cut into characters.

    Raises:
        ValueError, KeyError, TypeError, pickle.UnpicklingError: it holds something else.
    """
    with source.open("rb") as file:
        characters = _Plain(file).load()["itos"]
    return [characters[id] for id in range(len(characters))]


def arguments_of(state: Any) -> dict[str, str]:
    """Return the settings that nanoGPT and its kin keep beside the tensors, in JSON under their name."""
    given = state.get(ARGUMENTS) if isinstance(state, Mapping) else None
    values = given.values() if isinstance(given, Mapping) else [object]
    text = json.dumps(given) if all(type(one) in (str, int, float, bool, type(None)) for one in values) else ""
    return {ARGUMENTS: text} if 0 < len(text) < _MOST_SETTINGS else {}


def _leave_the_network() -> None:
    """Move into an empty network where the kernel lets us; before torch, which starts threads."""
    with suppress(Exception):
        import ctypes

        unshare = ctypes.CDLL(None, use_errno=True).unshare
        if unshare(_NEW_NETWORK) != 0:
            unshare(_NEW_USER | _NEW_NETWORK)


def _bound(size: int) -> None:
    """Bound memory to what torch has taken by now and three times the file, and time and output likewise."""
    with suppress(ImportError, OSError):  # not on Windows
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        memory = pages * resource.getpagesize() + 3 * size + 256 * _MEGABYTE
        limits = {
            resource.RLIMIT_AS: memory,
            resource.RLIMIT_FSIZE: 2 * size + _MEGABYTE,
            resource.RLIMIT_CPU: 60 + size // _MEGABYTE,
            resource.RLIMIT_CORE: 0,
        }
        for kind, most in limits.items():
            resource.setrlimit(kind, (most, most))


def _watch(target: Path) -> None:
    """Refuse, until this process ends, everything but reading files and writing the one."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path = arguments[0]
            # A text of a class of its own could say another name than the one that is opened.
            if _writes(arguments) and not (type(path) in (str, type(target)) and str(path) == str(target)):
                raise PermissionError(f"the file tried to write {str(path)[:100]}")
        elif not event.startswith(_ALLOWED):
            raise PermissionError(f"the file tried {event}")

    sys.addaudithook(hook)


def _writes(arguments: tuple[Any, ...]) -> bool:
    """Say whether an ``open`` can change a file: by its mode, or by its flags where it has none.

    What is opened to be read is made with ``O_CREAT``, and emptied with ``O_TRUNC``.
    """
    _, mode, flags = arguments
    return any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & _CHANGING)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
