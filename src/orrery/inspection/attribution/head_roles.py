"""Head roles: how far each head looks at the token before, at what followed the same token, at itself, at the first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.view import wide
from orrery.inspection.memory import refuse_too_large
from orrery.inspection.recorded import RecordedPass
from orrery.inspection.recorder import Recorder, refuse_training
from orrery.models.model import Model
from orrery.nn.attention.kernels import eager

ROLES = ("previous_token", "induction", "duplicate_token", "first_token", "entropy", "distance")


@dataclass(frozen=True)
class HeadRoles:
    """Scores of every head, each from 0 to 1; NaN where the text has nothing to measure, or a layer has fewer heads.

    Attributes:
        attentions: the keys of the attentions, one for each row: ``blocks.3.attention``.
        score_NH: by role.
    """

    attentions: Sequence[str]
    score_NH: Mapping[str, Float[Tensor, "N H"]]

    def __getitem__(self, role: str) -> Float[Tensor, "N H"]:
        """Return the scores of one role.

        Raises:
            UsageError: there is none of this name.
        """
        if role not in self.score_NH:
            raise UsageError(f"no role is called {role!r}", f"there is: {', '.join(self.score_NH)}")
        return self.score_NH[role]

    def top(self, role: str, k: int = 5) -> list[tuple[str, float]]:
        """Return the heads with the highest scores of a role, by name."""
        score_NH = self[role].nan_to_num(nan=-1.0)
        order = score_NH.flatten().argsort(descending=True)[:k].tolist()
        places = [divmod(place, score_NH.shape[1]) for place in order]
        return [(f"{self.attentions[n]}.head.{h}", float(self[role][n, h])) for n, h in places]


def roles_of(trace: RecordedPass, attention: str = "blocks.*.attention") -> HeadRoles:
    """Return how far each head of a trace does what a role says, as the mean over the queries that can.

    - ``previous_token``: the weight on the token before.
    - ``induction``: on tokens that followed an earlier occurrence of the query's own token (Olsson et al. 2022).
    - ``duplicate_token``: on earlier occurrences of it (Wang et al. 2022).
    - ``first_token``: on the first token, the sink (Xiao et al. 2023).
    - ``entropy``: of the row, as a share of the greatest that so many keys allow: 1 is even attention.
    - ``distance``: how far the keys are from the query, as a share of the furthest that it sees.

    Where weight goes to a learned sink, entropy and distance are those of the rest.

    Args:
        trace: of any model with attention over its own tokens, with its patterns kept.
        attention: which attentions, a pattern: ``encoder.blocks.*.attention`` for those of an encoder-decoder's reader.

    Raises:
        UsageError: no pattern of such an attention was kept.
    """
    keys = [key.removesuffix(".pattern") for key in trace if fnmatchcase(key, f"{attention}.pattern")]
    if not keys:
        hint = 'trace with keep=["*.pattern"]; attention over a source has an alignment instead (lm.align)'
        raise UsageError(f"no pattern of {attention!r} was kept", hint)
    reader = attention.startswith("encoder.")
    ids = trace.inputs[0] if reader else trace.ids
    real_BL = trace.call.how.get("source_real" if reader else "real")
    row = _Row(ids, real_BL, trace[f"{keys[0]}.pattern"].shape[2])
    scores_by_attention = [_of_heads(trace[f"{key}.pattern"], row) for key in keys]
    heads = max(len(scores["entropy"]) for scores in scores_by_attention)
    return HeadRoles(
        keys, {role: torch.stack([_padded(one[role], heads) for one in scores_by_attention]) for role in ROLES}
    )


def induction_scores(
    model: Model, seed: int = 1337, *, length: int = 32, rows: int = 4
) -> tuple[list[str], Float[Tensor, "N H"]]:
    """Return the keys of the attentions and how far each head attends by induction on repeated random tokens.

    Each row is random tokens, then the same again: only a head that finds the earlier occurrence of a token and
    looks at what followed it scores near 1 (Elhage et al. 2021, Olsson et al. 2022). The queries are the second half.

    Args:
        model: a decoder, in eval mode.
        seed: of the tokens.
        length: the tokens of a half; fewer where the model's context is shorter.
        rows: how many rows the mean is taken over.

    Raises:
        UsageError: a model that does not write one row from left to right.
    """
    vocabulary = model.spec.vocabulary
    if not model.spec.writes or model.spec.reads_source or vocabulary is None:
        raise UsageError("only a decoder repeats what it reads", "for other models look at trace.head_roles()")
    length = min(length, model.spec.context // 2)
    half_BL = torch.randint(vocabulary, (rows, length), generator=torch.Generator().manual_seed(seed))
    ids_BL = torch.cat([half_BL, half_BL], dim=1).to(next(model.parameters()).device)
    patterns = _patterns(model, ids_BL)
    # Query L + i has its token at i; what followed that stands at i + 1.
    scores = [one_BHLL.float().diagonal(1 - length, -2, -1)[..., 1:].mean((0, 2)) for one_BHLL in patterns.values()]
    return [key.removesuffix(".pattern") for key in patterns], torch.stack(scores)


@torch.no_grad()
def _patterns(model: Model, ids_BL: Int[Tensor, "B L"]) -> Mapping[str, Tensor]:
    """Return the pattern of every attention by its key."""
    refuse_training(model)
    recorder = Recorder(["*.attention.pattern"])
    refuse_too_large(model, (ids_BL,), recorder.keep, to_disk=False)
    model.logits(ids_BL, kernel=eager, taps=recorder)
    recorder.check_used()
    return recorder.values


class _Row:
    """Where each query of the rows finds what a role asks for: masks ``[B, L, L]``."""

    def __init__(self, given: Tensor, real_BL: Bool[Tensor, "B L"] | None, length: int) -> None:
        at_L = torch.arange(length, device=given.device)
        # The patches of an image are all different: nothing is repeated there.
        ids_BL = given if given.dim() == 2 else at_L.expand(len(given), -1)
        real_BL = torch.ones_like(ids_BL, dtype=torch.bool) if real_BL is None else real_BL
        self.real_BL = real_BL
        first_B1 = real_BL.int().argmax(-1, keepdim=True)
        earlier_LL = at_L < at_L[:, None]
        key_B1L = real_BL[:, None]
        same_BLL = (ids_BL[:, :, None] == ids_BL[:, None]) & key_B1L & earlier_LL
        # What stands behind an earlier occurrence; behind the token before the query that is the query itself.
        followed_BLL = torch.cat([torch.zeros_like(same_BLL[..., :1]), same_BLL[..., :-1]], dim=-1)
        self.previous = (at_L == at_L[:, None] - 1) & key_B1L
        self.first = ((at_L == first_B1)[:, None] & earlier_LL).expand_as(same_BLL)
        self.duplicate, self.induction = same_BLL, followed_BLL
        self.apart_LL = (at_L - at_L[:, None]).abs()


def _of_heads(pattern_BHLS: Tensor, row: _Row) -> dict[str, Float[Tensor, "H"]]:
    """Return the scores of each head of one attention; what is computed of one head is in memory at a time."""
    length = pattern_BHLS.shape[2]
    # Keys of a tuned prefix stand before those of the tokens.
    scores = [_scores(wide(pattern_BLS[..., -length:]), row) for pattern_BLS in pattern_BHLS.unbind(1)]
    return {role: torch.stack([one[role] for one in scores]) for role in ROLES}


def _scores(pattern_BLL: Tensor, row: _Row) -> dict[str, Tensor]:
    places = {
        "previous_token": row.previous,
        "induction": row.induction,
        "duplicate_token": row.duplicate,
        "first_token": row.first,
    }
    scores = {
        role: _mean((pattern_BLL * where_BLL).sum(-1), where_BLL.any(-1) & row.real_BL)
        for role, where_BLL in places.items()
    }
    seen_BLL = pattern_BLL > 0
    share_BLL = pattern_BLL / pattern_BLL.sum(-1, keepdim=True)
    counted_BL = seen_BLL.sum(-1)
    several_BL = (counted_BL > 1) & row.real_BL
    entropy_BL = torch.special.entr(share_BLL).sum(-1) / counted_BL.to(share_BLL.dtype).log()
    distance_BL = (share_BLL * row.apart_LL).sum(-1) / (seen_BLL * row.apart_LL).amax(-1)
    return scores | {"entropy": _mean(entropy_BL, several_BL), "distance": _mean(distance_BL, several_BL)}


def _mean(value_BL: Tensor, counted_BL: Tensor) -> Tensor:
    """Return the mean over rows and queries that count; NaN where none does."""
    return torch.where(counted_BL, value_BL, 0).sum() / counted_BL.sum()


def _padded(score_H: Tensor, heads: int) -> Tensor:
    return torch.nn.functional.pad(score_H, (0, heads - len(score_H)), value=float("nan"))
