"""The way of one token from the text to what the model answers: its vector at every place, with the real numbers."""

from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check, stream_is_edited
from orrery.page.views._inside import AttentionSite, Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.page.views.classes import head_of_classes, probabilities
from orrery.page.views.lens import has_vocabulary, spelled
from orrery.page.views.residual import steps
from orrery.schema.section import Section

CHANNELS = 48
"""Numbers of a vector that are drawn, evenly spread; its length counts all of them."""
HEADS, LOOKED = 32, 3
"""Heads of an attention that are named, and tokens that each of them is said to look at."""
ANSWERS = 6
"""Tokens or classes that are named at the end."""


class WaySettings(Section):
    """What can be asked.

    Attributes:
        position: the token.
    """

    position: int = -1


@register
class WayView(View):
    """``x_0 = looked up; x_(l+1) = x_l + added_l; logits = head(final(x_N))``, for one token."""

    kind: ClassVar[str] = "way"
    order: ClassVar[int] = 15
    share: ClassVar[int] = 3
    Settings: ClassVar[type[Section]] = WaySettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model has a stream that begins with vectors of tokens."""
        return subject.inside is not None and len(stations_of(subject.inside)) > 1

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return the tokens, each with its way, the last one first."""
        yield from (WaySettings(position=place) for place in reversed(range(len(subject.seen.tokens))))

    def payload(self, subject: ViewSubject, settings: WaySettings) -> Payload:
        """Return the stations with some of their numbers, whom each head looks at, and what is answered."""
        inside = subject.seen
        length = len(inside.tokens)
        if not -length <= settings.position < length:
            raise UsageError(f"position {settings.position} of {length}", f"give {-length} to {length - 1}")
        position = settings.position % length
        keys = stations_of(inside)
        kept = inside.keeping(*keys, "blocks.*.added", "blocks.*.resid", "blocks.*.resid_post", "embedded")
        vectors = [kept[key][0, position].float() for key in keys]
        sites = {site.key(layer, "added"): (site, layer) for site in inside.sites for layer in site.layers}
        stations = [
            {
                "key": key,
                "kind": _kind(key),
                "size": len(vector),
                "length": float(vector.norm()),
                "heads": _heads(inside, *sites[key], position) if key in sites else [],
            }
            for key, vector in zip(keys, vectors, strict=True)
        ]
        checks = [] if stream_is_edited(kept.call.edit, kept) else [steps(kept)]
        answer = _answer(subject, position)
        if "mass" in answer:
            off = abs(answer.pop("mass") - 1)
            checks.append(Check("the probabilities of the answer sum to one", off, 1e-9))
        facts = {"position": position, "stations": stations, "answer": answer}
        return Payload(facts, {str(n): _some(vector) for n, vector in enumerate(vectors)}, checks)


def stations_of(inside: Inside) -> list[str]:
    """Return the keys of the stream of the stack that answers and of what is added to it, in their order."""
    keys: list[str] = []
    for key, shape in inside.shapes.items():
        whole = len(shape) == 3 and shape[1] == len(inside.tokens)
        if not whole or not (key in ("looked_up", "embedded", "final") or key.startswith("blocks.")):
            continue
        block, _, name = key.rpartition(".")
        last = keys[-1] if keys else ""
        after = name == "resid_post" and not (last.startswith(f"{block}.") and last.endswith(".resid"))
        if name in ("looked_up", "embedded", "final", "added", "resid") or after:
            keys.append(key)
    return keys


def _kind(key: str) -> str:
    """Return what a station is: the stream, what comes before it or behind it, or the part that adds."""
    if key in ("looked_up", "final"):
        return key
    return key.split(".")[-2] if key.endswith(".added") else "stream"


def _some(vector_D: Float[Tensor, "D"]) -> Float[Tensor, "C"]:
    """Return some numbers of a vector, evenly spread."""
    places = torch.linspace(0, len(vector_D) - 1, min(CHANNELS, len(vector_D))).round().long()
    return vector_D[places.to(vector_D.device)]


def _heads(inside: Inside, site: AttentionSite, layer: int, position: int) -> list[list[tuple[int, float]]]:
    """Return for each head the places that it looks at most, with their weights."""
    key = site.key(layer, "pattern")
    found: list[list[tuple[int, float]]] = []
    for head in range(min(HEADS, inside.shapes[key][1])):
        row_S = inside.rows(key, head, slice(position, position + 1))[0].float()
        most = row_S.topk(min(LOOKED, len(row_S)))
        found.append([(int(place), float(weight)) for place, weight in zip(most.indices, most.values, strict=True)])
    return found


def _answer(subject: ViewSubject, position: int) -> dict[str, Any]:
    """Return the likeliest tokens behind the position, or the classes; nothing where the head answers otherwise."""
    inside = subject.seen
    logits, classes = inside.first.logits[0].double(), head_of_classes(subject.lm.model)
    if not (has_vocabulary(inside) or classes) or (logits.dim() > 1 and len(logits) != len(inside.tokens)):
        return {}
    spec: Any = subject.lm.model.spec.heads[classes[0]] if classes else None
    logits_N = logits if logits.dim() == 1 else logits[position]
    function, shares_N = probabilities(logits_N, spec) if spec else ("softmax", logits_N.softmax(-1))
    best = shares_N.topk(min(ANSWERS, len(shares_N)))
    ids = best.indices.tolist()
    names = [(spec.names[id] if spec.names else f"LABEL_{id}") for id in ids] if spec else []
    names = names or [spelled(inside, ids)[str(id)] for id in ids]
    said = [{"text": name, "p": float(p)} for name, p in zip(names, best.values, strict=True)]
    mass = {"mass": float(shares_N.sum())} if function == "softmax" else {}
    return {"of": "classes" if spec else "tokens", "said": said, **mass}
