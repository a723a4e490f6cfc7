"""One pass of a model over a text that can be asked for any tensor, whether it was kept or not."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

from torch import Tensor

from orrery.inspection.edits import Edit
from orrery.inspection.explain.explain import Explainer
from orrery.inspection.trace import Trace
from orrery.language_model.model import LanguageModel
from orrery.language_model.texts import spell

BUDGET = 256 << 20
"""Bytes of tensors that one pass keeps; what does not fit is computed again when it is asked for."""
_SQUARE = ("scores", "pattern")


@dataclass(frozen=True)
class Site:
    """Attention that stands at the same place of several blocks.

    Attributes:
        path: of its keys, the number of the block as ``*``: ``blocks.*.attention``, ``encoder.blocks.*.attention``.
        layers: the numbers of the blocks that have it.
        heads: how many.
        queries: the stream whose tokens look: ``tokens`` or ``source``.
        keys: the stream whose tokens are looked at.
    """

    path: str
    layers: tuple[int, ...]
    heads: int
    queries: str
    keys: str

    def key(self, layer: int, name: str) -> str:
        """Return the key of a tensor of one block."""
        return f"{self.path.replace('*', str(layer))}.{name}"


@final
class Inside:
    """One pass over a text, with or without edits.

    Args:
        lm: the model.
        given: what it read: ``{"text": ...}``, ``{"ids": ...}``, ``{"messages": ...}``, or ``{"source": ..., "target":
            ...}``.
        edit: as ``lm.trace`` takes it.
        about: what makes the pass another than that of the same text: its edits as JSON.

    Attributes:
        first: the trace of the first pass, with what fits into the budget.
        shapes: of all that can be asked for, by key.
        checks: of the pass as a whole.
    """

    def __init__(
        self, lm: LanguageModel, given: Mapping[str, Any], edit: Mapping[str, Edit] | None = None, about: str = ""
    ) -> None:
        self.lm, self.given, self.about = lm, given, about
        self._edit = dict(edit or {})
        whole = self._pass(("*",))
        self.shapes = {key: tuple(value.shape) for key, value in whole.values.items()}
        self.first = replace(whole, values=_within(BUDGET, whole.values))
        self.checks = list(whole.checks)

    def __getitem__(self, key: str) -> Tensor:
        """Return a tensor by its key; one that was not kept is computed again."""
        again = key not in self.first and key in self.shapes
        return (self._pass((key,)) if again else self.first)[key]

    def __contains__(self, key: object) -> bool:
        return key in self.shapes

    @property
    def tokens(self) -> Sequence[str]:
        """How the tokens read that the answering stack saw."""
        return self.first.tokens

    @property
    def source_tokens(self) -> Sequence[str]:
        """How the tokens of the source read; empty where there is none."""
        return self.first.source_tokens

    @cached_property
    def id(self) -> str:
        """What names this pass: a hash of the ids that were read and of the edits."""
        ids = [self.first.ids[0].tolist(), [] if self.first.source_ids is None else self.first.source_ids[0].tolist()]
        return hashlib.sha256(f"{self.lm.folder}|{ids}|{self.about}".encode()).hexdigest()[:16]

    @cached_property
    def explainer(self) -> Explainer:
        """What explains the numbers of this pass, and knows those that follow from recorded ones."""
        return Explainer(self.lm.model, self, self.first.ids, self.first.source_ids)

    @cached_property
    def sites(self) -> list[Site]:
        """The attentions, grouped by their place in a block."""
        found: dict[str, dict[int, int]] = {}
        for key, shape in self.shapes.items():
            if key.endswith(".pattern"):
                path, layer = _starred(key.removesuffix(".pattern"))
                found.setdefault(path, {})[layer] = shape[1]
        return [
            Site(path, tuple(heads), max(heads.values()), *_streams(path, bool(self.source_tokens)))
            for path, heads in found.items()
        ]

    def spell(self, id: int) -> str:
        """Return how a token reads."""
        return spell(self.lm._stored, id)

    def _pass(self, keep: Sequence[str]) -> Trace:
        if "source" in self.given:
            return self.lm.trace(self.given["source"], target=self.given.get("target"), keep=keep, edit=self._edit)
        (read,) = self.given.values()
        return self.lm.trace(read, keep=keep, edit=self._edit)


def _within(budget: int, values: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Return the values without scores, and without patterns, where all together are more than the budget."""
    for name in _SQUARE:
        if sum(value.nbytes for value in values.values()) > budget:
            values = {key: value for key, value in values.items() if not key.endswith(f".{name}")}
    return values


def _starred(path: str) -> tuple[str, int]:
    number = re.search(r"(?<=\.)\d+(?=\.)", path)
    return (path, 0) if number is None else (path[: number.start()] + "*" + path[number.end() :], int(number[0]))


def _streams(path: str, has_source: bool) -> tuple[str, str]:
    if not has_source:
        return "tokens", "tokens"
    if path.startswith("encoder."):
        return "source", "source"
    return "tokens", "source" if ".cross" in path else "tokens"
