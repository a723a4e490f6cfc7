"""The recorder: what is passed as ``taps`` to see, keep and replace the tensors inside a call."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

from torch import Tensor

from orrery.errors import UsageError

Edit = Callable[[Tensor], Tensor]


class Recorder:
    """Keeps the tapped tensors of one call whose keys match, after replacing those that an edit names.

    ``keep`` and the keys of ``edit`` are patterns such as ``blocks.*.attention.q``; ``*`` stands for any characters.
    Tensors are kept as they are, not copied, so their gradients stay reachable. Use one recorder for one call.

    Attributes:
        values: the kept tensors by key, in the order of computation.
    """

    def __init__(self, keep: Sequence[str] = ("*",), edit: Mapping[str, Edit] | None = None) -> None:
        self.keep = tuple(keep)
        self.edit = dict(edit or {})
        self.values: dict[str, Tensor] = {}
        self._met: dict[str, None] = {}  # a set in the order of computation
        self._used: set[str] = set()

    def __call__(self, key: str, value: Tensor) -> Tensor:
        """Return ``value`` or what an edit makes of it.

        Raises:
            UsageError: the key comes a second time, or an edit changes shape, dtype or device.
        """
        if key in self._met:
            raise UsageError(f"the key {key!r} comes twice in one recording", "make a new Recorder for each call")
        self._met[key] = None
        for pattern, change in self.edit.items():
            if self._matches(key, pattern):
                value = _same_kind(key, value, change(value))
        if any([self._matches(key, pattern) for pattern in self.keep]):  # a list: each one counts as used
            self.values[key] = value
        return value

    def check_used(self) -> None:
        """Refuse a pattern that met no tensor, once the call is over.

        Raises:
            UsageError: names the pattern and keys that there were.
        """
        for pattern in (*self.keep, *self.edit):
            if pattern not in self._used:
                kinds = ", ".join(self._kinds())
                raise UsageError(f"nothing is called {pattern!r} in this call", f"there are: {kinds}")

    def _matches(self, key: str, pattern: str) -> bool:
        found = fnmatchcase(key, pattern)
        if found:
            self._used.add(pattern)
        return found

    def _kinds(self) -> list[str]:
        """Return the keys, with the numbers of the blocks as stars."""
        starred = (".".join("*" if part.isdigit() else part for part in key.split(".")) for key in self._met)
        return list(dict.fromkeys(starred))


def _same_kind(key: str, before: Tensor, after: Tensor) -> Tensor:
    """Return the edited tensor if it fits in the place of the old one."""
    kinds = [(tuple(x.shape), x.dtype, x.device) for x in (before, after)]
    if kinds[0] != kinds[1]:
        raise UsageError(
            f"the edit of {key} returned {kinds[1]}, the tensor was {kinds[0]}",
            "an edit keeps shape, dtype and device",
        )
    return after
