"""The text as tokens, and what the page must know of the pass: its size, its attentions, its checks."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from orrery.inspection.interventions.configured import attentions, rotations
from orrery.language_model.model import LanguageModel
from orrery.page.views import _view
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._reconfigured import quickly
from orrery.page.views._view import View, ViewSubject, register
from orrery.tuning import numbers_of


@register
class TokensView(View):
    """Every other view begins from what this one tells."""

    kind: ClassVar[str] = "tokens"
    order: ClassVar[int] = 10

    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return the tokens, the facts of the model, and the views that fit."""
        inside = subject.seen
        return Payload({**session(subject), **_pass(inside)}, checks=inside.checks)


def session(subject: ViewSubject) -> dict[str, Any]:
    """Return what is known without a pass: the model, and the views that show something of the subject."""
    lm = subject.lm
    views = [
        {"kind": view.kind, "screen": view.screen, "order": view.order, "compares": view.compares}
        for view in _view.fitting(subject)
    ]
    return {
        "model": lm.stored.name,
        "load": load_line(lm),
        "run": None if subject.run is None else subject.run.name,
        "family": lm.family,
        "parameters": numbers_of(lm.model),
        "dtype": str(lm.model.dtype).removeprefix("torch."),
        "device": str(lm.device),
        "context": lm.context,
        "writes": lm.model.spec.writes,
        "views": views,
    }


def _pass(inside: Inside) -> dict[str, Any]:
    first, model = inside.first, inside.lm.model
    scales: dict[str, Any] = {path: part.scale for path, part in attentions(model)}
    sites = [
        {
            **{"path": site.path, "layers": site.layers, "heads": site.heads},
            **{"queries": site.queries, "keys": site.keys, "scale": scales.get(site.key(site.layers[0], "")[:-1])},
        }
        for site in inside.sites
    ]
    blocks = {key.split(".")[1] for key in inside.shapes if key.startswith("blocks.")}
    return {
        "id": inside.id,
        "given": {name: value if _is_plain(value) else "…" for name, value in inside.given.items()},
        "edits": inside.edits.plain(),
        "python": trace_line(inside.given),
        "sources": {name: trace_line(one.given) for name, one in inside.sources.items()},
        "kept_bytes": inside.memory.held,
        "memory_bytes": inside.memory.total,
        "tokens": _spelt(first.ids, inside.tokens),
        "source": [] if first.source_ids is None else _spelt(first.source_ids, inside.source_tokens),
        "sites": sites,
        "quick": quickly(inside),
        "bases": {path: part.base for path, part in rotations(model)},
        "blocks": len(blocks),
        "shapes": {key: list(shape) for key, shape in inside.shapes.items()},
        "notes": list(first.notes),
    }


def load_line(lm: LanguageModel) -> str:
    """Return the Python that loads the model as it is here."""
    arguments = str(lm.folder), str(lm.device), str(lm.model.dtype).removeprefix("torch.")
    return f"orrery.load({', '.join(map(repr, arguments))})"


def trace_line(given: Mapping[str, Any]) -> str:
    """Return the Python that makes a trace of what a pass reads; an array of an image is named, not written out."""
    said = {name: repr(value) if _is_plain(value) else name for name, value in given.items()}
    if "source" in said or "target" in said:
        return f"lm.trace(({said.get('source', said.get('image'))}, {said.get('target', repr(''))}))"
    (read,) = said.values()
    return f"lm.trace({read})"


def _spelt(read: Tensor, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return each token with its id; a patch of an image has its place instead."""
    ids = range(len(texts)) if read.is_floating_point() else read[0].tolist()
    return [{"id": id, "text": text} for id, text in zip(ids, texts or [f"[{id}]" for id in ids], strict=True)]


def _is_plain(value: Any) -> bool:
    """Say whether JSON can hold what was read: an array of an image is left out."""
    return isinstance(value, str | list | tuple)
