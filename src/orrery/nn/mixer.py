"""The base of mixers with a state: what they must say, the forms they declare, and the choice among these."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from orrery.errors import UsageError
from orrery.nn.cache.contract import State
from orrery.nn.context import Context
from orrery.nn.gate_edits import StepEdit, edits_in_time, unedited
from orrery.nn.segments import PackedSegments

Show: TypeAlias = Callable[[str, Tensor], Tensor]
"""What sees a value of a step by its name, and returns it."""

Form: TypeAlias = Callable[[Tensor, PackedSegments | None, State], tuple[Tensor, State]]
"""From ``[B, L, D]``, its segments and the state before each of these to ``[B, L, D]`` and the states after them.

Where there are no segments, each row is one, and the states are the rows'."""

RowForm: TypeAlias = Callable[[Tensor, Bool[Tensor, "N T"] | None, State], tuple[Tensor, State]]
"""As a form, over rows ``[N, T, D]`` of one segment each, padded on the right; which tokens are real, or all."""


def unseen(name: str, value: Tensor) -> Tensor:
    """Show a value to nobody."""
    return value


def choose(mixer: nn.Module, forms: tuple[str, ...], name: str | None) -> str:
    """Return the form that is asked for, or the first.

    Raises:
        UsageError: the mixer has none of this name.
    """
    if name is not None and name not in forms:
        raise UsageError(f"{type(mixer).__name__} has no form {name!r}", f"it has: {', '.join(forms)}")
    return forms[0] if name is None else name


class StatefulMixer(nn.Module, ABC):
    """``y_t, s_t = step(x_t, s_{t-1})`` for t = 1 ... L, from ``begin`` or from what an earlier call left.

    ``step`` is the definition; ``forms`` are other ways to the same numbers, over whole rows (``parallel``) or piece by
    piece (``chunked``), and ``ctx.scan`` chooses. Under a recorder the definition runs beside another form, shows what
    is inside and decides nothing. Padding gives zeros and leaves the state alone; a document begins without a past.

    A new one says ``begin``, ``step`` and ``forms``; where its weights are not drawn as all others, ``initialise``
    too (``nn/initialisation.py``). The law of recurrence compares all forms. Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    role: str = ""
    mask: str
    output: ClassVar[str] = "state"
    """What taps call the output."""
    only_weights: ClassVar[bool] = False
    """Whether it multiplies by nothing but its weights, so that two operations for each of them are all its cost."""

    @property
    def forms(self) -> Mapping[str, Form]:
        """The forms beside ``step``, by name; the first is computed where none is asked for."""
        return {}

    @property
    def alone(self) -> Form | None:
        """A form for rows without a past that no call goes on with, as in training, if that is less work.

        It is given an empty state and returns any.
        """
        return None

    @abstractmethod
    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return the state before each row's first token, ``[B, ...]`` each."""

    @abstractmethod
    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row; return the output and the state after it. ``show`` sees what is inside, ``[B, E]``."""

    def word_deviation(self, width: int, tied: bool) -> float | None:
        """Return how widely a new model draws the words that this mixer reads, or nothing where as all else.

        ``width`` is that of the table, ``tied`` whether it is the head too.
        """
        return None

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Pass through every segment of the batch."""
        assert ctx.layer is not None
        assert ctx.segments is not None
        segments, form = ctx.segments[self.mask], self.form(ctx.scan)
        carried = ctx.layer.load_state(self.mask, self.role)
        before = carried or self.begin(x_BLD)
        if ctx.scan is None and carried is None and not ctx.layer.cache.remembers:
            run = partial(self.outputs, x_BLD, segments, before)
        else:
            run = partial(self.compute, form, x_BLD, segments, before)
        y_BLD, after = run() if ctx.taps is None else self.watched(ctx, form, run, x_BLD, segments, before)
        ctx.layer.store_state(self.mask, self.role, after)
        return ctx.tap(self, self.output, y_BLD)

    def form(self, name: str | None) -> str:
        """Return the name of the form to compute.

        Raises:
            UsageError: there is none of this name.
        """
        return choose(self, (*self.forms, "step"), name)

    def compute(
        self,
        form: str,
        x_BLD: Float[Tensor, "B L D"],
        segments: PackedSegments | None,
        before: State,
        show: Show = unseen,
        edit: StepEdit = unedited,
    ) -> tuple[Float[Tensor, "B L D"], State]:
        """Return the outputs in one form, and each row's state after its last segment; states ``[B, ...]``.

        A segment begins with its row's state: a row of several documents has none before them. Only the steps have
        anything to ``show`` and to ``edit``.
        """
        return _from_rows(self.forms.get(form) or partial(self.steps, show=show, edit=edit), x_BLD, segments, before)

    def outputs(self, x_BLD: Tensor, segments: PackedSegments | None, before: State) -> tuple[Tensor, State]:
        """Return the outputs behind an empty state, and what stands for states that no call goes on from.

        The first form gives them, unless there is one for outputs ``alone``.
        """
        if self.alone is None:
            return self.compute(self.form(None), x_BLD, segments, before)
        return _from_rows(self.alone, x_BLD, segments, before)

    def watched(
        self,
        ctx: Context,
        form: str,
        run: Callable[[], tuple[Tensor, State]],
        x_BLD: Tensor,
        segments: PackedSegments | None,
        before: State,
    ) -> tuple[Tensor, State]:
        """Run a form, and show what is inside the steps, which decide nothing unless an edit reaches it."""
        seen: dict[str, Tensor] = {}
        stepwise = self.compute("step", x_BLD, segments, before, seen.setdefault)
        edit = self._edit(ctx, x_BLD, segments, seen)
        if edit is not None:
            seen = {}
            stepwise = self.compute("step", x_BLD, segments, before, seen.setdefault, edit)
        beside = edit is None and form != "step"
        for name, value_BLE in (seen | ({"stepwise": stepwise[0]} if beside else {})).items():
            if ctx.tap(self, name, value_BLE) is not value_BLE:
                raise UsageError(f"the {name} of a recurrence is shown, not edited", "edit its gates, or its state")
        return run() if beside else stepwise

    def _edit(
        self, ctx: Context, x_BLD: Tensor, segments: PackedSegments | None, gates: Mapping[str, Tensor]
    ) -> StepEdit | None:
        """Return the edits that reach gates, step by step, if there are any."""
        held = _segments_of(x_BLD, segments)
        ends = held.pack(x_BLD).batch_sizes.cumsum(0).tolist()
        packed = {name: held.pack(gate_BLE).data for name, gate_BLE in gates.items()}
        return edits_in_time(
            partial(ctx.edit_in_time, self),
            packed,
            put=lambda name, gate_ME: held.unpack(gate_ME),
            take=lambda name, gate_BLE: held.pack(gate_BLE).data,
            at=lambda step: slice(ends[step - 1] if step else 0, ends[step]),
        )

    def steps(
        self,
        x_BLD: Tensor,
        segments: PackedSegments | None,
        state: State,
        *,
        show: Show = unseen,
        edit: StepEdit = unedited,
    ) -> tuple[Tensor, State]:
        """Run ``step`` token by token, over all segments that reach so far; ``show`` sees ``[B, L, E]``."""
        segments = _segments_of(x_BLD, segments)
        packed, seen = segments.pack(x_BLD), dict[str, list[Tensor]]()

        def collect(name: str, value_BE: Tensor) -> Tensor:
            steps = seen.setdefault(name, [])
            steps.append(edit(len(steps), name, value_BE))
            return steps[-1]

        y_MD, after = self._loop(packed, state, collect)
        for name, values in seen.items():
            show(name, segments.unpack(torch.cat(values)))
        return segments.unpack(y_MD), after

    def _loop(self, packed: PackedSequence, state: State, show: Show) -> tuple[Tensor, State]:
        """Step through packed tokens; the states come in the order of the segments and leave in it."""
        assert packed.sorted_indices is not None
        state = tuple(part[packed.sorted_indices] for part in state)
        said, ended = [], list[State]()
        for x_BD in packed.data.split(packed.batch_sizes.tolist()):
            if len(x_BD) < len(state[0]):
                ended.append(tuple(part[len(x_BD) :] for part in state))
                state = tuple(part[: len(x_BD)] for part in state)
            y_BD, state = self.step(x_BD, state, show)
            said.append(y_BD)
        last = [torch.cat(parts) for parts in zip(state, *reversed(ended), strict=True)]
        return torch.cat(said), tuple(part[packed.unsorted_indices] for part in last)

    def over_rows(self, form: RowForm) -> Form:
        """Return the form over segments that a form over rows makes: rows of like length are computed together."""
        return partial(_over_rows, form)


def _segments_of(x_BLD: Tensor, segments: PackedSegments | None) -> PackedSegments:
    """Return the segments, one a row where there are none."""
    if segments is not None:
        return segments
    real_BL = x_BLD.new_ones(x_BLD.shape[:2], dtype=torch.bool)
    return PackedSegments.of_lengths(real_BL, [x_BLD.shape[1]] * len(x_BLD))


def _from_rows(form: Form, x_BLD: Tensor, segments: PackedSegments | None, before: State) -> tuple[Tensor, State]:
    """Run a form from the states of rows, and return those of rows."""
    if segments is None:
        return form(x_BLD, None, before)
    if not len(segments.row_N):
        return torch.zeros_like(x_BLD), before
    y_BLD, ended = form(x_BLD, segments, tuple(part[segments.row_N] for part in before))
    after = tuple(old.index_copy(0, segments.row_N, new) for old, new in zip(before, ended, strict=True))
    return y_BLD, after


def _over_rows(form: RowForm, x_BLD: Tensor, segments: PackedSegments | None, state: State) -> tuple[Tensor, State]:
    if segments is None:
        return form(x_BLD, None, state)
    x_PD = x_BLD.flatten(0, 1)
    y_PD, after = torch.zeros_like(x_PD), state
    for one_N, token_NT, held_NT in segments.alike():
        y_NTD, ended = form(
            x_PD[token_NT].masked_fill(~held_NT[..., None], 0), held_NT, tuple(part[one_N] for part in state)
        )
        y_PD = y_PD.index_put((token_NT[held_NT],), y_NTD[held_NT].to(y_PD.dtype))  # narrower under autocast
        after = tuple(old.index_copy(0, one_N, new) for old, new in zip(after, ended, strict=True))
    return y_PD.view_as(x_BLD), after
