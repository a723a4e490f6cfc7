"""A trace: everything inside one forward pass, by name, with checks that looking was honest."""

import difflib
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.asked import AttributionRequest
from orrery.inspection.call import ModelRun
from orrery.inspection.checks import Check, Gates, Mixing, StreamCheck, check_sight, sums_up, why_no_sum
from orrery.inspection.definition import Definition, DefinitionBeside, DefinitionItself
from orrery.inspection.edits import Edit
from orrery.inspection.interventions.intervention import Intervention
from orrery.inspection.interventions.interventions import Interventions
from orrery.inspection.interventions.operations import Source
from orrery.inspection.kept_on_disk import KeptOnDisk
from orrery.inspection.memory import refuse_too_large
from orrery.inspection.recorder import Recorder, Reducer, Watcher, refuse_training
from orrery.inspection.shown import shown
from orrery.models.default_device import doors_on_cpu_by_default
from orrery.models.model import Model
from orrery.nn.attention.kernels import eager, sdpa

if TYPE_CHECKING:
    from orrery.inspection.attribution.edges import EdgeShares
    from orrery.inspection.attribution.gradients import Saliency
    from orrery.inspection.attribution.head_roles import HeadRoles
    from orrery.inspection.attribution.lens import Lens
    from orrery.inspection.attribution.logit_attribution import LogitAttribution
    from orrery.inspection.attribution.neurons import Neurons
    from orrery.inspection.attribution.parts import StreamParts
    from orrery.inspection.explain.explain import Explainer, Explanation


@doors_on_cpu_by_default
@dataclass(frozen=True)
class Trace:
    """The inside of one call: ``trace["blocks.4.attention.pattern"]``.

    TransformerLens' names, such as ``blocks.4.attn.hook_pattern``, are understood too (``attribution/names.py``).

    Attributes:
        ids: the tokens, ``[B, L]``: those that were written, where a source was read beside them; or images.
        logits: ``[B, L, V]``.
        values: the kept tensors by key; beside the taps ``scores`` and ``pattern`` of every attention.
        checks: what was verified of this very call.
        notes: what a reader must know: another kernel, a check that does not apply.
        tokens: the spelling of the ids in the first row, where a tokenizer was at hand.
        source_tokens: that of the source.
        call: what was run, so that it can be run again with edits.
        definitions: by the key of an attention, what computes its scores and patterns, where ``defer`` was said.
        interventions: the edits of this run as data, if it had any, and the run that they change.
    """

    ids: Shaped[Tensor, "B ..."]
    call: "ModelRun[Trace]"
    logits: Float[Tensor, "..."]
    values: Mapping[str, Tensor]
    checks: Sequence[Check]
    notes: Sequence[str] = ()
    tokens: Sequence[str] = ()
    source_tokens: Sequence[str] = ()
    definitions: Mapping[str, Definition] = field(default_factory=dict, repr=False)
    interventions: "Interventions[Trace] | None" = field(default=None, repr=False)

    @property
    def model(self) -> Model:
        """The model that ran."""
        return self.call.model

    @property
    def inputs(self) -> Sequence[Tensor]:
        """All that the model read, in its order."""
        return self.call.inputs

    @property
    def source_ids(self) -> Shaped[Tensor, "B ..."] | None:
        """The source of an encoder-decoder, tokens or images; nothing for a model that reads one row."""
        return self.inputs[0] if len(self.inputs) > 1 else None

    def __getitem__(self, key: str) -> Tensor:
        from orrery.inspection.attribution.names import by_legacy_name

        if key in self.values:
            return self.values[key]
        tensor = by_legacy_name(self, key)
        if tensor is None:
            near = difflib.get_close_matches(key, self.values, n=3) or list(self.values)[:5]
            raise UsageError(f"nothing is called {key!r} in this trace", f"there is: {', '.join(near)}")
        return tensor

    def edit(
        self,
        edits: Sequence[Mapping[str, Any] | Intervention] = (),
        sources: Mapping[str, Source] | None = None,
    ) -> "Interventions[Trace]":
        """Return a list of edits of this run, to be added to and run: ``inside.edit().zero(key, head=1).run()``.

        Args:
            edits: as JSON holds them; those that the run had already come first.
            sources: other traces and vectors, by the names that edits call them.

        Raises:
            UsageError: nothing is known of the run, or an edit cannot be carried out.
        """
        return (self.interventions or Interventions(call=self.call)).more(edits, sources)

    def __repr__(self) -> str:
        """Return what was read, the names of what is kept, and which checks pass."""
        return shown(self)

    def __contains__(self, key: object) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def lens(self, k: int = 5, target: int | None = None) -> "Lens":
        """Return what the model would say after each block; see ``attribution/lens.py``."""
        from orrery.inspection.attribution.lens import logit_lens

        return logit_lens(self, k, target)

    @cached_property
    def explainer(self) -> "Explainer":
        """What explains the numbers of the first row, also those that follow from the kept ones."""
        from orrery.inspection.explain.explain import Explainer

        return Explainer(self.model, self, self.ids, self.source_ids)

    def explain(self, key: str, index: Sequence[int], most: int = 12) -> "Explanation":
        """Return one number of the first row as its formula with the real operands; see ``explain/explain.py``.

        Each operand with a key can be explained in turn, down to weights and the row of a token's table.

        Args:
            key: of a tensor of the pass, kept or derived from kept ones.
            index: its place, after the axis of rows; a negative number counts from the end.
            most: how many terms of a sum are named.

        Raises:
            UsageError: there is no such tensor or place, or what it follows from was not kept.
        """
        return self.explainer.explain(key, tuple(index), most)

    def parts(self, position: int | None = -1) -> "StreamParts":
        """Return the parts that sum to the stream after the last block; see ``attribution/parts.py``."""
        from orrery.inspection.attribution.parts import parts_of

        return parts_of(self, position)

    def logit_attribution(
        self, token: int | None = None, *, against: int | None = None, position: int | None = -1
    ) -> "LogitAttribution":
        """Return what each part adds to a token's logit; see ``attribution/logit_attribution.py``."""
        from orrery.inspection.attribution.logit_attribution import attribute_logit

        return attribute_logit(self, token, against=against, position=position)

    def head_roles(self, attention: str = "blocks.*.attention") -> "HeadRoles":
        """Return how far each head does what a role says; see ``attribution/head_roles.py``."""
        from orrery.inspection.attribution.head_roles import roles_of

        return roles_of(self, attention)

    def neurons(
        self,
        block: int,
        token: int | None = None,
        *,
        against: int | None = None,
        position: int = -1,
        k: int = 10,
        promoted: int = 5,
        channels: Sequence[int] | None = None,
    ) -> "Neurons":
        """Return the channels of a feed-forward that move a token's logit most; see ``attribution/neurons.py``."""
        from orrery.inspection.attribution.neurons import top_neurons

        settings: dict[str, Any] = {"against": against, "position": position, "k": k, "promoted": promoted}
        return top_neurons(self, block, token, channels=channels, **settings)

    def weighted_pattern(self, attention: str) -> Float[Tensor, "B H L S"]:
        """Return the length of what each key writes for each query; see ``attribution/edges.py``."""
        from orrery.inspection.attribution.edges import weighted_pattern

        return weighted_pattern(self, attention)

    def edge_shares(
        self,
        attention: str,
        token: int | None = None,
        *,
        against: int | None = None,
        position: int | None = -1,
    ) -> "EdgeShares":
        """Return what each key adds to a token's logit through each head; see ``attribution/edges.py``."""
        from orrery.inspection.attribution.edges import edge_shares

        return edge_shares(self, attention, token, against=against, position=position)

    def saliency(self, token: int | None = None, **asked: Unpack[AttributionRequest]) -> "Saliency":
        """Return the length of the gradient at each token; see ``attribution/gradients.py``."""
        from orrery.inspection.attribution.gradients import saliency

        return saliency(self, token, **asked)

    def gradient_times_input(self, token: int | None = None, **asked: Unpack[AttributionRequest]) -> "Saliency":
        """Return gradient times vector at each token; see ``attribution/gradients.py``."""
        from orrery.inspection.attribution.gradients import gradient_times_input

        return gradient_times_input(self, token, **asked)

    def integrated_gradients(
        self,
        token: int | None = None,
        *,
        baseline: int | None = None,
        steps: int = 256,
        batch_size: int = 32,
        **asked: Unpack[AttributionRequest],
    ) -> "Saliency":
        """Return integrated gradients at each token; see ``attribution/gradients.py``."""
        from orrery.inspection.attribution.gradients import integrated_gradients

        how: dict[str, Any] = {"baseline": baseline, "steps": steps, "batch_size": batch_size}
        return integrated_gradients(self, token, **how, **asked)


@torch.no_grad()
def trace(
    model: Model,
    *inputs: Shaped[Tensor, "B ..."],
    keep: Sequence[str] = ("*",),
    edit: Mapping[str, Edit] | None = None,
    tokens: Sequence[str] = (),
    source_tokens: Sequence[str] = (),
    folder: str | Path | None = None,
    spell: Callable[[int], str] | None = None,
    reducers: Sequence[Reducer] = (),
    defer: bool = False,
    interventions: Interventions[Trace] | None = None,
    **call: Any,
) -> Trace:
    """Run the model once and return what is inside.

    The fused kernel never holds the scores, so beside it the eager definition shows scores and patterns of the same
    q and k, a piece at a time, and they are checked against the fused kernel's output. An edit of scores or
    patterns needs them while the model runs: that attention then uses the eager kernel, and a note says so.

    Memory: the plain forward's, what is kept, and one piece of one pattern; each check runs as its layer passes.
    ``trace_bytes`` (``memory.py``) says before how much will be kept, and what does not fit is refused.

    Args:
        model: any assembly, in eval mode.
        inputs: token ids, or images; for an encoder-decoder those of the source and of the target.
        keep: patterns of the keys to keep.
        edit: by pattern of keys, ``edit(value, key)``: the tensor that takes the place of ``value``.
        tokens: the spelling of the ids, for pictures.
        source_tokens: that of the source.
        folder: where the kept values are written as the layers pass, a safetensors file each; they are read when
            they are asked for, so that no more than a layer of them is in memory.
        spell: gives the spelling of an id, for tokens that an edit replaces.
        reducers: what keeps less of a tensor than all of it, as it passes, such as ``Thumbnails``.
        defer: hold queries, keys and values of every attention, so that its scores and patterns can be computed when
            they are asked for, whole or a few rows (``trace.definitions``).
        interventions: where ``edit`` comes from: kept in the trace, so that more can be added.
        call: what else the model takes: ``real``, ``token_types``, ...

    Raises:
        UsageError: a pattern matches nothing, an edit does not take a value and its key, or it changes the shape.
        MachineError: what is to be kept does not fit into the free memory, or the disk refuses.
    """
    refuse_training(model)
    refuse_too_large(model, inputs, keep, to_disk=folder is not None)
    values: MutableMapping[str, Tensor] = {} if folder is None else KeptOnDisk(folder)
    mixing, gates, stream = Mixing(), Gates(), StreamCheck(model.stack)
    watchers: list[Watcher] = [mixing, gates, stream] if sums_up(model.stack) else [mixing, gates]
    recorder = Recorder(keep, edit, watchers=watchers, values=values, reducers=reducers)
    kernel = eager if model.kernel is eager else sdpa
    itself = DefinitionItself(recorder, defer=defer)
    running = itself if kernel is eager else DefinitionBeside(kernel, recorder, mixing, defer=defer)
    logits = model.logits(*inputs, kernel=running, taps=recorder, **call)
    recorder.check_used()
    if isinstance(values, KeptOnDisk):
        values.write()
    notes = ["the eager kernel ran, because an edit reaches scores or patterns"] if running.replaced else []
    checks = [*mixing.checks(), *gates.checks()]
    if not recorder.edit:
        checks.append(check_sight(logits, model.logits(*inputs, kernel=kernel, **call)))
    no_sum = why_no_sum(model.stack, recorder.edit, recorder.keys)
    if no_sum is None:
        checks += stream.checks()
    else:
        notes.append(no_sum)
    made = ModelRun(trace, model, inputs, recorder.edit, call, tokens, source_tokens, spell)
    facts = (tokens, source_tokens, running.definitions, interventions)
    return Trace(inputs[-1], made, logits, values, checks, notes, *facts)
