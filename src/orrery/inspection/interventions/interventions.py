"""A list of interventions: written link by link or as JSON, carried out, and turned into Python."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Generic, final

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.call import ModelRun, Seen
from orrery.inspection.edits import Edit
from orrery.inspection.interventions.configured import configured
from orrery.inspection.interventions.intervention import JSON, OPERATIONS, Intervention
from orrery.inspection.interventions.operations import Source, apply
from orrery.inspection.interventions.places import WHOLE, ComputedWindow
from orrery.inspection.interventions.source_lines import source_lines
from orrery.models.model import Model
from orrery.nn.embeddings import check_ids
from orrery.nn.inputs import Tokens

MOST = 64
"""Interventions in a list."""


@final
@dataclass(frozen=True)
class Interventions(Generic[Seen]):
    """Interventions in their order, and what they take from. Each method returns a new list with one more at the end.

    ``inside.edit().zero("blocks.4.attention.mixed", head=1).run()`` runs the text of a trace again with them. The
    arguments ``position``, ``head``, ``channel`` and ``key`` choose a part of the tensor, see `Intervention`.

    Attributes:
        edits: at most ``MOST``.
        sources: traces and vectors by the names that the edits call them.
        call: the run that they change, where they come from a trace.
    """

    edits: tuple[Intervention, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)
    call: ModelRun[Seen] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse too many.

        Raises:
            UsageError: there are more than ``MOST``.
        """
        if len(self.edits) > MOST:
            raise UsageError(
                f"{len(self.edits)} edits are more than {MOST}", "let one edit name several heads or positions"
            )

    @staticmethod
    def of(
        plain: "Interventions | Sequence[Mapping[str, Any] | Intervention]", sources: Mapping[str, Source] | None = None
    ) -> "Interventions":
        """Return the interventions of a list as JSON holds it.

        Raises:
            UsageError: one cannot be carried out; its number is named.
        """
        if isinstance(plain, Interventions):
            return plain
        if isinstance(plain, str | bytes | Mapping) or not isinstance(plain, Sequence):
            raise UsageError(
                "edits are a list of objects", 'such as [{"at": "blocks.0.attention.mixed", "op": "zero"}]'
            )
        edits = []
        for number, one in enumerate(plain):
            try:
                edits.append(Intervention.of(one))
            except UsageError as error:
                raise UsageError(f"edit {number}: {error.message}", error.hint) from None
        return Interventions(tuple(edits), dict(sources or {}))

    @staticmethod
    def from_json(text: str, sources: Mapping[str, Source] | None = None) -> "Interventions":
        """Return the interventions that a JSON text holds.

        Raises:
            UsageError: it is no JSON, or as in ``of``.
        """
        try:
            plain = json.loads(text)
        except ValueError as error:
            raise UsageError(f"these edits are no JSON: {error}", "give a list of objects") from None
        return Interventions.of(plain, sources)

    def plain(self) -> list[dict[str, Any]]:
        """Return the list as JSON holds it; the sources are not part of it, only their names."""
        return [edit.plain() for edit in self.edits]

    def to_json(self) -> str:
        """Return the list as a JSON text."""
        return json.dumps(self.plain())

    def python_source(self, trace: str = "inside", sources: Mapping[str, str] | None = None) -> str:
        """Return the Python lines that do the same.

        Args:
            trace: the expression that makes the trace, such as ``lm.trace("A text")``.
            sources: by the name of a source, the expression that makes it; by default a variable of that name.
        """
        return source_lines(self.edits, list(self.sources), trace, sources or {})

    def zero(self, at: str, **places: Any) -> "Interventions[Seen]":
        """Set a part of a tensor to zero."""
        return self._and(at=at, op="zero", **places)

    def mean(self, at: str, *, source: str | None = None, **places: Any) -> "Interventions[Seen]":
        """Set a part to its mean over positions, in this run or in another trace."""
        return self._and(at=at, op="mean", source=source, **places)

    def scale(self, at: str, scale: float, **places: Any) -> "Interventions[Seen]":
        """Multiply a part by a number."""
        return self._and(at=at, op="scale", scale=scale, **places)

    def add(
        self,
        at: str,
        vector: Tensor | Sequence[float] | str | None = None,
        *,
        scale: float | None = None,
        source: str | None = None,
        **places: Any,
    ) -> "Interventions[Seen]":
        """Add ``scale`` times a vector to a part, or what it is in another trace (``source_position``): steering."""
        return self._and(at=at, op="add", vector=vector, scale=scale, source=source, **places)

    def set(self, at: str, value: float, **places: Any) -> "Interventions[Seen]":
        """Set a part to a number."""
        return self._and(at=at, op="set", value=value, **places)

    def patch(self, at: str, source: str, **places: Any) -> "Interventions[Seen]":
        """Put in what a part is in another trace; ``source_position`` names the positions there, if they are others."""
        return self._and(at=at, op="patch", source=source, **places)

    def mask(self, at: str, *, key: Any, **places: Any) -> "Interventions[Seen]":
        """Hide keys from queries (``position``): their scores become minus infinity, the others share the weight."""
        return self._and(at=at, op="mask", key=key, **places)

    def replace(self, position: Any, token: int, *, at: str = "ids") -> "Interventions[Seen]":
        """Read another token at a position; ``at`` names the input, where the model reads several."""
        return self._and(at=at, op="replace", position=position, token=token)

    def rescale(self, at: str, scale: float) -> "Interventions[Seen]":
        """Multiply the scale of the scores of attentions, ``1 / sqrt(C)`` unless the model says another number."""
        return self._and(at=at, op="rescale", scale=scale)

    def rebase(self, at: str, value: float) -> "Interventions[Seen]":
        """Turn queries and keys as a model whose rotary positions have the base ``value``."""
        return self._and(at=at, op="rebase", value=value)

    def _and(self, **fields: Any) -> "Interventions[Seen]":
        plain = {JSON.get(name, name): value for name, value in fields.items()}
        return replace(self, edits=(*self.edits, Intervention.of(plain)))

    def without(self, number: int) -> "Interventions[Seen]":
        """Return the list without one of them, counted from 0.

        Raises:
            UsageError: there is none of this number.
        """
        if not 0 <= number < len(self.edits):
            raise UsageError(f"there is no edit {number}", f"there are {len(self.edits)}, counted from 0")
        return replace(self, edits=self.edits[:number] + self.edits[number + 1 :])

    def compiled(self, window: ComputedWindow = WHOLE) -> dict[str, Edit]:
        """Return the functions that ``trace(edit=...)`` takes: the edits of tensors, not of what runs and is read.

        Where several patterns reach a tensor, the edits act in the order of the list.
        """
        inside = [edit for edit in self.edits if OPERATIONS[edit.op].on_tensors]
        patterns = list(dict.fromkeys(edit.at for edit in inside))

        @cache  # each pattern asks again of each tensor
        def reaching(key: str) -> list[Intervention]:
            matching = {pattern for pattern in patterns if fnmatchcase(key, pattern)}
            return [edit for edit in inside if edit.at in matching]

        def change_of(own: str) -> Edit:
            def change(value: Tensor, key: str) -> Tensor:
                # The first pattern that reaches a tensor carries out all edits of it: their order is the list's.
                edits = reaching(key)
                if edits[0].at == own:
                    for edit in edits:
                        value = apply(edit, key, value, self.sources, window)
                return value

            return change

        return {pattern: change_of(pattern) for pattern in patterns}

    def model(self, model: Model) -> Model:
        """Return what runs in the place of a model: itself, or one with other scales and bases and the same weights.

        Raises:
            UsageError: it has no such attention, or no such rotary positions.
        """
        return configured(model, self.edits)

    def read(self, model: Model, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return the inputs of a model by name, with the tokens replaced.

        Raises:
            UsageError: there is no such input, or no such position.
            DataError: a token outside the vocabulary.
        """
        named_inputs = dict(zip(model.spec.inputs, inputs, strict=True))
        for edit in self.edits:
            if edit.op == "replace":
                named_inputs[edit.at] = _with_token(edit, model, named_inputs)
        return named_inputs

    def more(
        self, plain: Sequence[Mapping[str, Any] | Intervention], sources: Mapping[str, Source] | None = None
    ) -> "Interventions[Seen]":
        """Return the list with those of another behind it."""
        added = Interventions.of(plain)
        return replace(self, edits=(*self.edits, *added.edits), sources={**self.sources, **(sources or {})})

    def run(self, keep: Sequence[str] = ("*",), **looking: Any) -> Seen:
        """Run the text of the trace again with these edits; ``looking`` are ``reducers`` and ``defer`` of ``trace``.

        Raises:
            UsageError: they come from no trace, or one of them does not fit what it meets.
        """
        if self.call is None:
            raise UsageError(
                "these edits belong to no text", "begin with lm.trace(text).edit(), or give them to lm.trace"
            )
        call = self.call
        inputs = self.read(call.model, call.inputs)
        edit = in_turn(call.edit, self.compiled())
        spelled = _spelled(call, call.tokens, call.inputs[-1], list(inputs.values())[-1])
        source = _spelled(call, call.source_tokens, call.inputs[0], next(iter(inputs.values())))
        spelling: dict[str, Any] = {"tokens": spelled, "source_tokens": source, "spell": call.spell}
        looking |= {"keep": keep, "edit": edit, "interventions": self}
        return call.look(self.model(call.model), *inputs.values(), **looking, **spelling, **call.how)


def _spelled(call: ModelRun, words: Sequence[str], before_BL: Tensor, read_BL: Tensor) -> list[str]:
    """Return how the tokens of the first row read, with those that an edit has put there."""
    if not words or read_BL.is_floating_point():  # of an image no token is replaced
        return list(words)
    spell, pairs = call.spell or "#{}".format, zip(words, before_BL[0].tolist(), read_BL[0].tolist(), strict=True)
    return [word if old == new else spell(new) for word, old, new in pairs]


def in_turn(first: Mapping[str, Edit], then: Mapping[str, Edit]) -> dict[str, Edit]:
    """Return the edits of both, the first before the others where they have a pattern in common."""

    def both(pattern: str) -> Edit:
        def change(value: Tensor, key: str) -> Tensor:
            return then[pattern](first[pattern](value, key), key)

        return change

    return {**first, **then} | {pattern: both(pattern) for pattern in first if pattern in then}


def _with_token(edit: Intervention, model: Model, inputs: Mapping[str, Tensor]) -> Tensor:
    ids_BL, read = inputs.get(edit.at), model.spec.inputs.get(edit.at)
    if ids_BL is None:
        raise UsageError(
            f"a token is replaced at {edit.at!r}, which this model does not read", f"it reads: {', '.join(inputs)}"
        )
    if not isinstance(read, Tokens):
        raise UsageError(f"{edit.at} are no tokens", "edit what is embedded instead")
    check_ids(torch.tensor([edit.token]), read.vocabulary)
    length, ids_BL = ids_BL.shape[1], ids_BL.clone()
    for place in edit.position if isinstance(edit.position, tuple) else (edit.position,):
        assert place != "all"
        if not -length <= place < length:
            raise UsageError(f"token {place} of {length} is replaced", f"they are 0 to {length - 1}")
        assert edit.token is not None
        ids_BL[:, place] = edit.token
    return ids_BL
