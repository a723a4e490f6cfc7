"""A model that writes with edits inside, token by token."""

from collections.abc import Callable
from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.interventions.interventions import Interventions
from orrery.inspection.interventions.places import ComputedWindow
from orrery.inspection.recorder import Recorder
from orrery.models.calls import Numbers
from orrery.models.model import Model
from orrery.models.session import DecodingSession
from orrery.nn.attention.kernels import eager
from orrery.nn.cache.rows import RowCache
from orrery.nn.cache.slots import SlotStore
from orrery.nn.cache.states import StateStore
from orrery.nn.context import Execution
from orrery.nn.masks import RecurrentPast


@final
class EditedWriter:
    """A model with interventions, as search and sampling know a model: it writes one text at a time.

    Positions count from the beginning of the text: an edit of one acts when that token is computed, and one of all
    acts always, so that every step gives the logits which a trace of the whole text with the same edits gives. The
    cache keeps every token, since an edit may name any key. The kernel is the eager one.

    Args:
        model: what writes.
        edits: what is done inside.

    Raises:
        UsageError: an edit means another thing at every step: a place counted from the end, a mean over the positions
            of this run, every position of another trace; or the model has not what it changes.
    """

    def __init__(self, model: Model, edits: Interventions) -> None:
        for edit in edits.edits:
            places = [*_all(edit.position), *_all(edit.key)]
            if edit.op != "replace" and any(place < 0 for place in places):
                message = f"the edit of {edit.at} counts from the end of a text that grows"
                raise UsageError(message, "count positions from its beginning, from 0")
            if edit.op == "mean" and edit.source is None:
                message = f"the mean of {edit.at} over positions changes with every token"
                raise UsageError(message, "take the mean of another trace: source")
            every = edit.position == "all" if edit.op == "patch" else edit.op == "add" and edit.source is not None
            if every and edit.source_position is None:
                message = f"{edit.at} takes every position of another trace, and the text grows beyond the other trace"
                raise UsageError(message, "name the positions, of add the one from_position")
        self.model: Any = edits.model(model)
        self.edits = edits

    @property
    def first_token(self) -> int | None:
        """Return the token that a row begins with, where the model writes beside a source."""
        token: int | None = self.model.first_token
        return token

    def start(
        self, source: Int[Tensor, "B L"], capacity: int, lengths: Numbers | None = None
    ) -> tuple[Float[Tensor, "B V"], DecodingSession]:
        """Read the prompt; as in ``DecodingModel``.

        Raises:
            UsageError: there are several prompts, or a pattern of an edit meets nothing.
        """
        if len(source) != 1:
            raise UsageError(f"edits are given with {len(source)} prompts", "continue one text at a time")
        inputs, more = [source], {}
        if self.first_token is not None:
            inputs.append(torch.tensor([[self.first_token]], device=source.device))  # a source may be a picture
        read = list(self.edits.read(self.model, inputs).values())
        if self.first_token is not None:
            more = {"prompt": read[1]}
        recorder = Recorder(keep=(), edit=self.edits.compiled(ComputedWindow(0, whole=False)))
        cache = _whole_cache(self.model, capacity, source)
        execution = Execution(eager, taps=_LastLogits(recorder, source.shape[1] - 1))
        started: tuple[Tensor, DecodingSession] = self.model.start(
            read[0], capacity, cache=cache, execution=execution, **more
        )
        recorder.check_used()
        return started

    def step(
        self, tokens: Int[Tensor, "B N"], session: DecodingSession, lengths: Numbers | None = None
    ) -> Float[Tensor, "B N V"]:
        """Write more tokens; as in ``DecodingModel``."""
        window = ComputedWindow(session.lengths[0], whole=False)
        recorder = Recorder(keep=(), edit=self.edits.compiled(window))
        logits_BNV: Tensor = self.model.step(tokens, session, lengths, execution=Execution(eager, taps=recorder))
        return logits_BNV


class _LastLogits:
    """A recorder to which the logits of a prompt's last token come as those of one token of a row."""

    def __init__(self, recorder: Recorder, last: int) -> None:
        self.recorder, self.last = recorder, last

    def __call__(self, key: str, value: Tensor) -> Tensor:
        """Show a value."""
        if key != "logits" or value.dim() != 2:
            return self.recorder(key, value)
        shown = value[:, None].expand(-1, self.last + 1, -1)
        return self.recorder(key, shown)[:, -1]

    def edit_in_time(self, key: str) -> Callable[[Tensor], Tensor] | None:
        """Hand the edits of a value over."""
        return self.recorder.edit_in_time(key)


def _whole_cache(model: Model, capacity: int, source: Tensor) -> RowCache:
    """Return a cache that keeps every token of one row, so that slots are positions."""
    device, masks = source.device, model.stack.masks
    stores = {
        name: StateStore() if isinstance(mask, RecurrentPast) else SlotStore(1, capacity, device=device)
        for name, mask in masks.items()
    }
    return RowCache(1, capacity, stores, device)


def _all(places: Any) -> tuple[int, ...]:
    return places if isinstance(places, tuple) else (places,) if isinstance(places, int) else ()
