"""One pass of a model over a text that can be asked for any tensor, whether it was kept or not."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, final
from weakref import WeakKeyDictionary

from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.call import ModelRun
from orrery.inspection.explain.explain import Explainer
from orrery.inspection.interventions.interventions import Interventions
from orrery.inspection.memory import PassCost, TraceCost, pass_bytes, readable, trace_bytes
from orrery.inspection.thumbnails import Thumbnails
from orrery.inspection.trace import Trace
from orrery.language_model.model import LanguageModel
from orrery.language_model.texts import spell
from orrery.language_model.trace import call_of
from orrery.models.model import Model
from orrery.page.views._run import version_of

BUDGET = 256 << 20
"""Bytes of tensors that one pass keeps; what does not fit is computed again when it is asked for."""
MOST = 2 << 30
"""Bytes that a pass may need at once beside the weights, and bytes of one tensor that is computed when asked for."""
MOST_PLANS = 16
"""Plans of passes that are remembered of a model."""
_PATTERNS = ("scores", "pattern")
_DROPPED = ("hidden", "gate", "resid", "added", "q", "k", "v", "mixed", "resid_pre", "resid_post")
"""What is let go of, in this order."""


@dataclass(frozen=True)
class AttentionSite:
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
        given: what it read: ``{"text": ...}``, ``{"ids": ...}``, ``{"messages": ...}``, ``{"source": ..., "target":
            ...}``, or ``{"image": ...}``, with ``target`` where text is written about it.
        edits: interventions as JSON holds them.
        sources: other passes, by the names that edits call them.

    Attributes:
        sources: those passes.
        cost: the bytes and the shapes of all that can be asked for.
        memory: the bytes that the pass needs, known before it runs.
        thumbnails: every pattern small, made while the pass runs.
        overviews: of long texts, single heads that were looked at, small, by key and head.
        first: the trace of the first pass, with what fits into ``BUDGET``.
        checks: of the pass as a whole.

    Raises:
        UsageError: nothing to read or too much, or an edit that cannot be carried out.
    """

    def __init__(
        self,
        lm: LanguageModel,
        given: Mapping[str, Any],
        edits: Sequence[Mapping[str, Any]] = (),
        sources: Mapping[str, "Inside"] | None = None,
    ) -> None:
        self.lm, self.given, self.sources = lm, dict(given), dict(sources or {})
        call = call_of(lm.stored, *_read(lm, given))
        self.edits = Interventions(call=call).more(edits, self.sources)
        self.cost, kept, self.memory = _planned(call)
        self.thumbnails, self.overviews = Thumbnails(), dict[tuple[str, int], Tensor]()
        self._lately: dict[str, Tensor] = {}  # the pattern that was asked for last
        self.first: Trace = self.edits.run(kept, reducers=[self.thumbnails], defer=True)
        self.checks = list(self.first.checks)

    def __getitem__(self, key: str) -> Tensor:
        """Return a tensor by its key; one that was not kept is computed again.

        Raises:
            UsageError: there is none, or it is too large to be whole.
        """
        if key in self.first or key not in self.shapes:
            return self.first[key]
        if self.cost.bytes_of[key] > MOST:
            size = readable(self.cost.bytes_of[key])
            raise UsageError(
                f"{key} takes {size}, and at most {readable(MOST)} are made", "ask for a tile or a row of it"
            )
        path, _, name = key.rpartition(".")
        if path in self.first.definitions and name in _PATTERNS:
            if key not in self._lately:
                self._lately = {key: self.first.definitions[path].whole(name)}
            return self._lately[key]
        return self.edits.run([key])[key]

    def rows(self, key: str, head: int, rows: slice) -> Float[Tensor, "l S"]:
        """Return some queries of one head of scores or patterns, without the whole of them."""
        path, _, name = key.rpartition(".")
        if key not in self.first and path in self.first.definitions:
            return self.first.definitions[path].rows(name, head, rows)
        return self[key][0, head, rows]

    @property
    def model(self) -> Model:
        """What has run: the model, or it with the scales and bases that edits give it."""
        return self.first.model

    def keeping(self, *patterns: str) -> Trace:
        """Return a trace that has kept all keys of these patterns: the first pass where it has, else another."""
        exact, parts = set(patterns), [pattern for pattern in patterns if "*" in pattern]
        wanted = [key for key in self.shapes if key in exact or any(fnmatchcase(key, part) for part in parts)]
        return self.first if all(key in self.first for key in wanted) else self.edits.run(wanted)

    def keeping_all_but_patterns(self) -> Trace:
        """Return a trace without scores and patterns, which grow with the square of the text."""
        return self.keeping(*(key for key in self.shapes if not key.endswith((".scores", ".pattern"))))

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of all that can be asked for, by key, in the order of computation."""
        return self.cost.shapes

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
        """What names this pass: a hash of the model's folder, the ids that were read and the edits."""
        ids = [self.first.ids[0].tolist(), [] if self.first.source_ids is None else self.first.source_ids[0].tolist()]
        edits = self.edits.to_json()
        return hashlib.sha256(
            f"{self.lm.folder}|{version_of(self.lm.folder)}|{ids}|{edits}".encode("utf-8", "surrogateescape")
        ).hexdigest()[:16]

    @cached_property
    def explainer(self) -> Explainer:
        """What explains the numbers of this pass, and knows those that follow from recorded ones."""
        return Explainer(self.model, self, self.first.ids, self.first.source_ids)

    @cached_property
    def sites(self) -> list[AttentionSite]:
        """The attentions, grouped by their place in a block; of stages, those of the last, whose places have names."""
        heads_by_path: dict[str, dict[int, int]] = {}
        for key, shape in self.shapes.items():
            if key.endswith(".pattern") and not key.startswith("stage"):
                path, layer = _starred(key.removesuffix(".pattern"))
                heads_by_path.setdefault(path, {})[layer] = shape[1]
        return [
            AttentionSite(path, tuple(heads), max(heads.values()), *_streams(path, bool(self.source_tokens)))
            for path, heads in heads_by_path.items()
        ]

    def spell(self, id: int) -> str:
        """Return how a token reads."""
        return spell(self.lm.stored, id)


def _read(lm: LanguageModel, given: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what is read, and the target of an encoder-decoder.

    Raises:
        UsageError: an image, for a model that would read its content as text.
    """
    if "image" in given and lm.model.spec.vocabulary is not None:
        raise UsageError("this model reads text and no images", "give text, ids, messages or source")
    for name in ("source", "image"):
        if name in given and (name == "source" or "target" in given):
            return given[name], given.get("target", "")
    (read,) = given.values()
    return read, None


def memory_of(lm: LanguageModel, given: Mapping[str, Any]) -> PassCost:
    """Return the memory that a pass will need, before it runs.

    Raises:
        UsageError: nothing to read, or too much, or it needs more than ``MOST``.
    """
    return _planned(call_of(lm.stored, *_read(lm, given)))[2]


_PLANS: WeakKeyDictionary[Model, dict[tuple[object, ...], tuple[TraceCost, list[str], PassCost]]] = WeakKeyDictionary()
"""By model, what was planned for the shapes of what it read: a slider runs the same text again and again."""


def _planned(call: ModelRun) -> tuple[TraceCost, list[str], PassCost]:
    """Return what can be asked for, which keys are kept, and the memory of the pass; refuse what needs too much."""
    known, asked = _PLANS.setdefault(call.model, {}), (BUDGET, *(one.shape for one in call.inputs))
    if asked not in known:
        if len(known) >= MOST_PLANS:
            known.clear()
        known[asked] = _plan(call)
    memory = known[asked][2]
    if memory.total > MOST:
        raise UsageError(
            f"to look into {call.inputs[-1].shape[1]:,} tokens takes {readable(memory.total)}, "
            f"and at most {readable(MOST)} are taken",
            "shorten the text, or keep less in Python: lm.trace(text, keep=[...], folder=PATH)",
        )
    return known[asked]


def _plan(call: ModelRun) -> tuple[TraceCost, list[str], PassCost]:
    source, length = call.inputs[0].shape[1], call.inputs[-1].shape[1]
    cost = trace_bytes(call.model, length, source_length=source)
    kept = _within(BUDGET, cost)
    return cost, kept, pass_bytes(call.model, cost, kept)


def _within(budget: int, cost: TraceCost) -> list[str]:
    """Return the keys that are kept: all but scores and patterns, and the largest kinds, until they fit."""
    kept = {key: size for key, size in cost.bytes_of.items() if key.rpartition(".")[2] not in _PATTERNS}
    for name in _DROPPED:
        if sum(kept.values()) <= budget:
            break
        kept = {key: size for key, size in kept.items() if key.rpartition(".")[2] != name}
    return list(kept)


def _starred(path: str) -> tuple[str, int]:
    number = re.search(r"(?<=\.)\d+(?=\.)", path)
    return (path, 0) if number is None else (path[: number.start()] + "*" + path[number.end() :], int(number[0]))


def _streams(path: str, has_source: bool) -> tuple[str, str]:
    if not has_source:
        return "tokens", "tokens"
    if path.startswith("encoder."):
        return "source", "source"
    return "tokens", "source" if ".cross" in path else "tokens"
