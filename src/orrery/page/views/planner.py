"""What a batch costs: operations, memory and time, by formula, with this machine's speed where it is measured."""

import time
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from orrery.errors import UsageError
from orrery.inspection.checks import Check
from orrery.models.decoding_memory import layers
from orrery.models.model import HIDDEN, ModelSpec
from orrery.nn.attention.kernels import eager
from orrery.nn.context import DEFAULT_EXECUTION, Execution
from orrery.nn.mixer import StatefulMixer
from orrery.nn.spec import traverse
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.planning.windows import pair_channels, windowed
from orrery.schema.section import Section
from orrery.training.machine_rates import matmul_rate
from orrery.training.operations import multiplied_parameters
from orrery.tuning import TransformedLinear, numbers_of

SHORT = 8
"""Tokens of the pass whose operations are counted."""
COUNTED = 200_000_000
"""Parameters up to which that pass is made: it reads all of them."""
MOST_MEASURED = 3e11
"""Operations of a pass that is timed: a few seconds."""


class PlannerSettings(Section):
    """What can be asked.

    Attributes:
        rows: with a length: time one pass over so many rows of it.
        length: tokens of a row.
    """

    rows: Annotated[int, Field(ge=1, le=4096)] | None = None
    length: Annotated[int, Field(ge=1)] | None = None


@register
class Planner(View):
    """A pass multiplies each token by N weights, 2 N operations, and each pair of tokens by the heads' channels.

    Pairs that a window hides are none, as in `orrery plan`: a kernel may compute and hide them.
    """

    kind: ClassVar[str] = "planner"
    screen: ClassVar[str] = "model"
    order: ClassVar[int] = 30
    Settings: ClassVar[type[Section]] = PlannerSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model reads tokens."""
        return subject.lm.model.spec.vocabulary is not None

    def payload(self, subject: ViewSubject, settings: PlannerSettings) -> Payload:
        """Return what the formulas need, or the time of one pass and the speed of this machine."""
        if settings.rows is not None and settings.length is not None:
            return Payload(_measured(subject, settings.rows, settings.length))
        model, spec = subject.lm.model, subject.lm.model.spec
        weights = list(model.parameters())
        facts: dict[str, Any] = {
            "numbers": numbers_of(model),
            "bytes": sum(weight.nbytes for weight in weights),
            "size": model.dtype.itemsize,
            "multiplied": multiplied_parameters(model),
            "attention": [{"channels": channels, "keys": keys} for keys, channels in attention_by_window(spec).items()],
            "context": subject.lm.context,
            "vocabulary": spec.target_vocabulary or spec.vocabulary,
            "layers": [{"cached": layer.cached, "window": layer.window} for layer in layers(spec)]
            if spec.writes
            else [],
        }
        # The head of a row is multiplied once a row.
        counted = spec.writes and facts["numbers"] <= COUNTED and not any(map(_hides, model.modules()))
        return Payload(facts, checks=_counted(subject) if counted else [])


def _hides(module: nn.Module) -> bool:
    """Say whether torch sees no product of a module, or products with what is no weight.

    Kernels of recurrences and of stored matrices hide theirs; other mixers multiply by what they remember.
    """
    if isinstance(module, TransformedLinear):
        return module.stored_as is not None
    return isinstance(module, nn.RNNBase) or (isinstance(module, StatefulMixer) and not module.only_weights)


def attention_channels(spec: ModelSpec) -> int:
    """Return the channels of all attentions together: a pair of tokens costs four operations for each of them."""
    return sum(pair_channels(part) or 0 for _, part in traverse(spec))


def attention_by_window(spec: ModelSpec) -> dict[int | None, int]:
    """Return the channels of all attentions by the most keys that a query of theirs sees; of ``None`` all."""
    by_window: dict[int | None, int] = {}
    for one in windowed(spec):
        by_window[one.keys] = by_window.get(one.keys, 0) + one.channels
    rest = attention_channels(spec) - sum(by_window.values())
    return {None: rest, **by_window} if rest else by_window


@torch.no_grad()
def _pass(subject: ViewSubject, rows: int, length: int, execution: Execution = DEFAULT_EXECUTION) -> Any:
    lm = subject.lm
    ids_BL = torch.ones(rows, length, dtype=torch.long, device=lm.device)
    heads = lm.model.spec.head_names[:1] or (HIDDEN,)
    return lm.model({name: ids_BL for name in lm.model.spec.inputs}, heads, execution)


def _counted(subject: ViewSubject) -> list[Check]:
    """Compare the products that torch counts in one pass with ``2 N`` a token and ``4 channels`` a pair of tokens."""
    length = min(SHORT, subject.lm.context)
    with FlopCounterMode(display=False) as counter:
        _pass(subject, 1, length, Execution(eager))  # the fused kernel hides its products
    counts = {str(name).split(".")[-1]: count for name, count in counter.get_flop_counts()["Global"].items()}
    weights, pairs = counts.get("mm", 0) + counts.get("addmm", 0), counts.get("bmm", 0)
    wanted = 2 * multiplied_parameters(subject.lm.model) * length
    attention = 4 * attention_channels(subject.lm.model.spec) * length**2
    return [
        Check("products with weights that torch counts are 2 N a token", float(abs(weights - wanted)), 0.0),
        Check("those of attention are 4 channels a pair of tokens", float(abs(pairs - attention)), 0.0),
    ]


def _measured(subject: ViewSubject, rows: int, length: int) -> dict[str, Any]:
    """Return the speed of a product and the seconds of one pass, the best of two."""
    lm = subject.lm
    if length > lm.context:
        raise UsageError(f"rows of {length:,} tokens do not fit the context", f"take {lm.context:,} at most")
    cost = 2 * multiplied_parameters(lm.model) * rows * length
    if cost > MOST_MEASURED:
        raise UsageError(f"a pass of {cost:.1e} operations takes too long to be timed here", "take fewer rows")
    dtype = lm.model.dtype
    rate = matmul_rate(dtype, lm.device.type)
    best = float("inf")
    for _ in range(2):
        began = time.perf_counter()
        _pass(subject, rows, length)
        best = min(best, time.perf_counter() - began)
    return {"rate": rate, "seconds": best, "rows": rows, "length": length}
