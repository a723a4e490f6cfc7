"""The recorder: what is passed as ``taps`` to see, keep and replace the tensors inside a call."""

import difflib
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.inspection.edits import Edit, checked_edits, same_kind

Place = tuple[slice, ...]
"""Where in a tensor a part of it stands."""
_NOTHING = torch.empty(0)
"""What a module shows when it is asked for its path alone."""


@runtime_checkable
class Watcher(Protocol):
    """A check that runs while the values pass, and keeps no more of them than it needs."""

    def __call__(self, key: str, shown: Tensor | None, used: Tensor) -> None:
        """Take notice of what a module has ``shown`` and of what is ``used``: the same, where no edit reaches it.

        Where the module has applied an edit itself, nobody knows what was there before.
        """
        ...


@runtime_checkable
class Reducer(Protocol):
    """What keeps less of a tensor than all of it, as it passes: a thumbnail, a head, a sum."""

    def __call__(self, key: str, value: Tensor, place: Place | None, shape: tuple[int, ...]) -> None:
        """Take a tensor, or its part at ``place`` of a tensor ``[*shape, S]``."""
        ...


def refuse_training(model: nn.Module) -> None:
    """Refuse to look into a model that computes other numbers at every call.

    Raises:
        UsageError: it is in training mode.
    """
    if model.training:
        raise UsageError("a model in training mode drops numbers at random", "call model.eval() first")


class Recorder:
    """Keeps the tapped tensors of one call whose keys match, after replacing those that an edit names.

    ``keep`` and the keys of ``edit`` are patterns such as ``blocks.*.attention.q``; ``*`` stands for any characters.
    What no pattern names is never stored. Tensors are kept as they are, so that their gradients can be reached; a view
    without a gradient is copied, because a cache writes later tokens into the memory of the keys that it shows.
    Use one recorder for one call. ``values`` is where they are kept: memory, or a folder (``KeptOnDisk``). ``reducers``
    are shown everything, parts as parts, and keep what they make of it.

    Attributes:
        values: the kept tensors by key, in the order of computation.
        keys: the keys of all that was shown, kept or not.
    """

    def __init__(
        self,
        keep: Sequence[str] = ("*",),
        edit: Mapping[str, Edit] | None = None,
        *,
        watchers: Sequence[Watcher] = (),
        reducers: Sequence[Reducer] = (),
        values: MutableMapping[str, Tensor] | None = None,
    ) -> None:
        self.reducers = tuple(reducers)
        self.keep, self.edit, self.watchers = tuple(keep), checked_edits(edit), tuple(watchers)
        self.values: MutableMapping[str, Tensor] = {} if values is None else values
        self.keys: dict[str, None] = {}  # a set in the order of computation
        self._used: set[str] = set()
        self._handed_over: set[str] = set()
        self._part: tuple[Place, tuple[int, ...]] | None = None
        self._asked = ""

    def __call__(self, key: str, value: Tensor) -> Tensor:
        """Return ``value`` or what an edit makes of it.

        Raises:
            UsageError: the key comes a second time, or an edit changes shape, dtype or device.
        """
        if value is _NOTHING:
            self._asked = key
            return value
        if self._part is not None:
            return self._keep_part(key, value, *self._part)
        self._meet(key)
        shown = None if key in self._handed_over else value
        used = value if shown is None else self._edited(key, value)
        if self._keeps(key):
            self.values[key] = used.clone() if _borrowed(used) else used
        for watch in self.watchers:
            watch(key, shown, used)
        for reduce in self.reducers:
            reduce(key, used, None, tuple(used.shape[:-1]))
        return used

    @contextmanager
    def part(self, place: Place, shape: tuple[int, ...]) -> Iterator[None]:
        """Take what is shown meanwhile as the part at ``place`` of tensors ``[*shape, S]``; the first begins at zero.

        Where a pattern names them they are written into the whole tensor. No edit and no watcher sees them.
        """
        self._part = (place, shape)
        try:
            yield
        finally:
            self._part = None

    def edit_in_time(self, key: str) -> Callable[[Tensor], Tensor] | None:
        """Hand the edits of ``key`` over to its owner, which applies them while it computes, if there are any."""
        if not any([self._matches(key, pattern) for pattern in self.edit]):  # a list: each one counts as used
            return None
        self._handed_over.add(key)
        return partial(self._edited, key)

    def edits(self, tap: Callable[[str, Tensor], Tensor], *names: str) -> bool:
        """Say whether an edit reaches one of these names of a module that shows its tensors to ``tap``."""
        return any(fnmatchcase(self.key(tap, name), pattern) for pattern in self.edit for name in names)

    def check_used(self) -> None:
        """Refuse a pattern that met no tensor, once the call is over.

        Raises:
            UsageError: names the pattern and keys that there were.
        """
        for pattern in (*self.keep, *self.edit):
            if pattern not in self._used:
                near = difflib.get_close_matches(pattern, self.keys, n=3) or self._kinds()
                raise UsageError(f"nothing is called {pattern!r} in this call", f"there is: {', '.join(near)}")

    def _meet(self, key: str) -> None:
        if key in self.keys:
            raise UsageError(f"the key {key!r} comes twice in one recording", "make a new Recorder for each call")
        self.keys[key] = None

    def key(self, tap: Callable[[str, Tensor], Tensor], name: str) -> str:
        """Return the key under which a module shows a name, by letting it show nothing."""
        tap(name, _NOTHING)
        return self._asked

    def _keep_part(self, key: str, value: Tensor, place: Place, shape: tuple[int, ...]) -> Tensor:
        if not any(along.start for along in place):
            self._meet(key)
            if self._keeps(key):
                keeps_all = value.shape[:-1] == shape
                self.values[key] = value if keeps_all else value.new_empty(*shape, value.shape[-1])
        kept = self.values.get(key)
        if kept is not None and kept is not value:
            kept[place] = value
        for reduce in self.reducers:
            reduce(key, value, place, shape)
        return value

    def _edited(self, key: str, value: Tensor) -> Tensor:
        for pattern, change in self.edit.items():
            if self._matches(key, pattern):
                value = same_kind(key, value, change(value, key))
        return value

    def _keeps(self, key: str) -> bool:
        return any([self._matches(key, pattern) for pattern in self.keep])  # a list: each one counts as used

    def _matches(self, key: str, pattern: str) -> bool:
        matches = fnmatchcase(key, pattern)
        if matches:
            self._used.add(pattern)
        return matches

    def _kinds(self) -> list[str]:
        """Return the keys, with the numbers of the blocks as stars."""
        starred = (".".join("*" if part.isdigit() else part for part in key.split(".")) for key in self.keys)
        return list(dict.fromkeys(starred))


def _borrowed(value: Tensor) -> bool:
    """Say whether a tensor may be a part of memory that others write to; an inference tensor does not tell."""
    return not value.requires_grad and (value._is_view() or value.is_inference())
