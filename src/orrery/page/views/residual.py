"""The residual stream: how long it is after each block, who wrote how much, and how it turns."""

from typing import Any, ClassVar

import torch
from torch.nn import functional as F

from orrery.inspection.attribution.sublayers import sublayers
from orrery.inspection.checks import Check, bound, error, stream_is_edited
from orrery.inspection.trace import Trace
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register

_WRITES = (".added",)


@register
class ResidualView(View):
    """``x_(l+1) = x_l + attention + feed_forward``: lengths of the stream and of what is added to it."""

    kind: ClassVar[str] = "residual"
    order: ClassVar[int] = 60
    compares: ClassVar[bool] = True

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model has a stream."""
        return subject.inside is not None and "blocks.0.resid_post" in subject.inside

    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return norms of the streams and of the additions, and the cosine of each stream with the one before."""
        inside = subject.seen
        streams = [key for key in inside.shapes if key == "embedded" or _own(key, ".resid_post")]
        writes = [key for key in inside.shapes if _own(key, ".added")]
        kept = inside.keeping("embedded", "blocks.*.resid", "blocks.*.resid_post", "blocks.*.added")
        stream_NLD = torch.stack([kept[key][0].float() for key in streams])
        added_NL = torch.stack([kept[key][0].float().norm(dim=-1) for key in writes])
        tensors = {
            "stream": stream_NLD.norm(dim=-1),
            "added": added_NL,
            "cosine": F.cosine_similarity(stream_NLD[1:], stream_NLD[:-1], dim=-1),
        }
        sums = [check for check in inside.checks if "sum to the stream" in check.name]
        if not stream_is_edited(kept.call.edit, kept):
            sums.append(steps(kept))
        return Payload({"streams": streams, "added": writes, "notes": list(inside.first.notes)}, tensors, sums)


@torch.no_grad()
def steps(kept: Trace) -> Check:
    """Compare each stream with ``out(skip(x) + added)``, what its sublayer makes of the one before it."""
    worst = 0.0
    for layer in sublayers(kept.model.stack):
        sum_BLD = layer.residual.skip(kept[layer.before]) + kept[f"{layer.key}.added"]
        worst = max(worst, error(layer.residual.out(sum_BLD), kept[layer.after]))
    return Check("each stream is the one before and what was added, through the norm", worst, bound(kept.logits.dtype))


def _own(key: str, ending: str) -> bool:
    return key.startswith("blocks.") and key.endswith(ending)
