"""A trace: everything inside one forward pass, by name, with checks that looking was honest."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.call import Call
from orrery.inspection.checks import Check, Gates, Mixing, Stream, check_sight, sums_up, why_no_sum
from orrery.inspection.definition import Beside
from orrery.inspection.edits import Edit
from orrery.inspection.recorder import Recorder, Watcher
from orrery.models.model import Model
from orrery.nn.attention.kernels import eager, sdpa

if TYPE_CHECKING:
    from orrery.inspection.interventions.intervention import Intervention
    from orrery.inspection.interventions.interventions import Interventions
    from orrery.inspection.interventions.operations import Source


@dataclass(frozen=True)
class Trace:
    """The inside of one call: ``trace["blocks.4.attention.pattern"]``.

    Attributes:
        ids: the tokens, ``[B, L]``.
        tokens: their spelling in the first row, where a tokenizer was at hand.
        logits: ``[B, L, V]``.
        values: the kept tensors by key; beside the taps ``scores`` and ``pattern`` of every attention.
        checks: what was verified of this very call.
        notes: what a reader must know: another kernel, a check that does not apply.
        call: what was run, so that it can be run again with edits.
    """

    ids: Int[Tensor, "B L"]
    logits: Float[Tensor, "..."]
    values: Mapping[str, Tensor]
    checks: Sequence[Check]
    notes: Sequence[str] = ()
    tokens: Sequence[str] = ()
    call: Call | None = field(default=None, repr=False, compare=False)

    def __getitem__(self, key: str) -> Tensor:
        if key not in self.values:
            near = difflib.get_close_matches(key, self.values, n=3) or list(self.values)[:5]
            raise UsageError(f"nothing is called {key!r} in this trace", f"there is: {', '.join(near)}")
        return self.values[key]

    def edit(
        self,
        edits: "Sequence[Mapping[str, Any] | Intervention]" = (),
        sources: "Mapping[str, Source] | None" = None,
    ) -> "Interventions":
        """Return a list of edits of this run, to be added to and run: ``inside.edit().zero(key, head=1).run()``.

        Args:
            edits: as JSON holds them; those that the run had already come first.
            sources: other traces and vectors, by the names that edits call them.

        Raises:
            UsageError: nothing is known of the run, or an edit cannot be carried out.
        """
        from orrery.inspection.interventions.interventions import Interventions

        if self.call is None:
            raise UsageError("nothing is known of the run of this trace", "make it with lm.trace or trace(model, ids)")
        begun = self.call.interventions or Interventions()
        return replace(begun, call=self.call).more(edits, sources)

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)


@torch.no_grad()
def trace(
    model: Model,
    *ids_BL: Int[Tensor, "B _"],
    keep: Sequence[str] = ("*",),
    edit: Mapping[str, Edit] | None = None,
    tokens: Sequence[str] = (),
    spell: Callable[[int], str] | None = None,
    **call: Any,
) -> Trace:
    """Run the model once and return what is inside.

    The fused kernel never holds the scores, so beside it the eager definition shows scores and patterns of the same
    q and k, a piece at a time, and they are checked against the fused kernel's output. An edit of scores or
    patterns needs them while the model runs: that attention then uses the eager kernel, and a note says so.

    Memory: the plain forward's, what is kept, and one piece of one pattern; each check runs as its layer passes.

    Args:
        model: any assembly, in eval mode.
        ids_BL: token ids; for an encoder-decoder those of the source and of the target.
        keep: patterns of the keys to keep.
        edit: by pattern of keys, ``edit(value, key)``: the tensor that takes the place of ``value``.
        tokens: the spelling of the ids, for pictures.
        spell: gives the spelling of an id, for tokens that an edit replaces.
        call: what else the model takes: ``real``, ``segments``, ...

    Raises:
        UsageError: a pattern matches nothing, an edit does not take a value and its key, or it changes the shape.
    """
    if model.training:
        raise UsageError("a model in training mode drops numbers at random", "call model.eval() before a trace")
    mixing, gates, stream = Mixing(), Gates(), Stream(model.stack)
    watchers: list[Watcher] = [mixing, gates, stream] if sums_up(model.stack) else [mixing, gates]
    recorder = Recorder(keep, edit, watchers=watchers)
    kernel = eager if model.kernel is eager else sdpa
    beside = Beside(kernel, recorder, mixing)
    logits = model.logits(*ids_BL, kernel=eager if kernel is eager else beside, taps=recorder, **call)
    recorder.check_used()
    notes = ["the eager kernel ran, because an edit reaches scores or patterns"] if beside.replaced else []
    checks = [*mixing.checks(), *gates.checks()]
    if not recorder.edit:
        checks.append(check_sight(logits, model.logits(*ids_BL, kernel=kernel, **call)))
    no_sum = why_no_sum(model.stack, recorder.edit, recorder.keys)
    if no_sum is None:
        checks += stream.checks()
    else:
        notes.append(no_sum)
    made = Call(model, ids_BL, dict(edit or {}), call, tokens, spell)
    return Trace(ids_BL[-1], logits, recorder.values, checks, notes, tokens, made)
