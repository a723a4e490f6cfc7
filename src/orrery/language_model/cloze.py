"""Which of several words or phrases fits a gap: their exact probabilities, by decoders and by masked models."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import DataError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import device_of, refuse_no_number, tokenizer_of, vocabulary
from orrery.generation.generate import padded, too_long
from orrery.generation.scoring import log_probabilities
from orrery.language_model.texts import before_text
from orrery.nn.embeddings import TokenTypeEmbedding, check_ids
from orrery.nn.heads import LanguageModelHead

GAP = "__"
"""What stands for the gap in a text."""


@dataclass(frozen=True)
class Filled:
    """One candidate in the gap, in nats.

    Attributes:
        candidate: as it was given.
        text: the text with the candidate in the gap.
        ids: the tokens of the candidate.
        log_probabilities: of each of them, given what stands before, and for a masked model also behind.
        log_probability: their sum.
        rest: of a decoder, the log probability of what stands behind the gap, given the candidate; 0 for a masked
            model, which has read it already.
        score: what candidates are ranked by.
    """

    candidate: str
    text: str
    ids: list[int]
    log_probabilities: list[float]
    log_probability: float
    rest: float
    score: float


def cloze(
    stored: Stored, text: str, candidates: Sequence[str], *, both_sides: bool, mean: bool, batch_size: int
) -> list[Filled]:
    """Return the candidates, the best first; see ``LanguageModel.cloze``."""
    before, after = _sides(text)
    given = list(dict.fromkeys(candidates))
    if not given:
        raise UsageError("there are no candidates", 'give at least one: "an apple, a banana"')
    if batch_size < 1:
        raise UsageError(f"batch_size = {batch_size} is not possible", "it must be at least 1")
    with torch.no_grad():
        if stored.model.spec.writes and not stored.model.spec.reads_source:
            scored = _by_decoder(stored, before, after, given, both_sides, batch_size)
        elif not both_sides:
            raise UsageError("a masked model reads both sides of the gap", "leave out what stands behind it yourself")
        else:
            scored = _by_masks(stored, before, after, given, batch_size)
    filled = []
    for candidate, (ids, inside, rest) in zip(given, scored, strict=True):
        total, behind = math.fsum(inside), math.fsum(rest)
        refuse_no_number(stored, total + behind)
        score = (total + behind) / (len(inside) + len(rest)) if mean else total + behind
        filled.append(Filled(candidate, before + candidate + after, ids, inside, total, behind, score))
    return sorted(filled, key=lambda one: -one.score)


Found = tuple[list[int], list[float], list[float]]
"""The tokens of a candidate, their log probabilities, and those of what stands behind the gap."""


def _by_decoder(
    stored: Stored, before: str, after: str, candidates: Sequence[str], both_sides: bool, batch_size: int
) -> list[Found]:
    """Return ``log p(c_i | before, c_<i)`` and, with ``both_sides``, ``log p(a_j | before, c, a_<j)``."""
    parts = [_cut(stored, before, candidate, after if both_sides else "") for candidate in candidates]
    lead = before_text(stored)
    if not lead and any(first == 0 for _, first, _ in parts):
        raise UsageError("nothing stands before the gap, and this tokenizer has no start token", "begin with a word")
    scored: list[Found] = []
    for begin in range(0, len(parts), batch_size):
        some = parts[begin : begin + batch_size]
        rows = [[*lead, *ids] for ids, _, _ in some]
        _check(stored, rows)
        ids_BL, lengths = padded(rows, device_of(stored))
        real_BL = None if lengths is None else torch.arange(ids_BL.shape[1]) < torch.tensor(lengths)[:, None]
        real_BL = None if real_BL is None else real_BL.to(ids_BL.device)
        logp_BM = log_probabilities(stored.model.logits(ids_BL, real=real_BL), ids_BL).double().cpu()
        for (ids, first, last), logp_M in zip(some, logp_BM, strict=True):
            own = logp_M.tolist()[len(lead) - 1 :] if lead else [0.0, *logp_M.tolist()]
            scored.append((ids[first:last], own[first:last], own[last : len(ids)]))
    return scored


def _by_masks(stored: Stored, before: str, after: str, candidates: Sequence[str], batch_size: int) -> list[Found]:
    """Return ``log p(c_i | before, c_<i, mask_i ... mask_n, after)``: filled from left to right, n masks in the gap."""
    head = _masked_head(stored)
    tokenizer, mask = tokenizer_of(stored), tokenizer_of(stored).special("mask")
    parts = [_cut(stored, before, candidate, after) for candidate in candidates]
    rows, places, wanted, owners = [], [], [], []
    for number, (ids, first, last) in enumerate(parts):
        for place in range(first, last):
            framed = tokenizer.around([*ids[:place], *[mask] * (last - place), *ids[last:]])
            rows.append(framed)
            places.append([n for n, of in enumerate(framed.texts) if of == 0][place])
            wanted.append(ids[place])
            owners.append(number)
    _check(stored, [framed.ids for framed in rows])
    values: list[list[float]] = [[] for _ in candidates]
    for begin in range(0, len(rows), batch_size):
        stop = begin + batch_size
        some = rows[begin:stop]
        logits_BLV = _logits(stored, head, [one.ids for one in some], [one.token_types for one in some])
        picked_BV = logits_BLV[torch.arange(len(some)), torch.tensor(places[begin:stop])]
        logp_BV = picked_BV.to(torch.promote_types(picked_BV.dtype, torch.float32)).log_softmax(-1).double()
        for owner, id, logp_V in zip(owners[begin:stop], wanted[begin:stop], logp_BV, strict=True):
            values[owner].append(float(logp_V[id]))
    return [(ids[first:last], values[n], []) for n, (ids, first, last) in enumerate(parts)]


def _logits(
    stored: Stored, head: str, rows: Sequence[list[int]], token_types: Sequence[list[int]]
) -> Float[Tensor, "B L V"]:
    """Return the logits of a masked head for rows of several lengths."""
    ids_BL, lengths = padded(rows, device_of(stored))
    batch: dict[str, Any] = {"ids": ids_BL}
    if lengths is not None:
        batch["real"] = (torch.arange(ids_BL.shape[1]) < torch.tensor(lengths)[:, None]).to(ids_BL.device)
    if isinstance(getattr(stored.model.spec, "embed", None), TokenTypeEmbedding.Spec):
        batch["token_types"] = padded(token_types, device_of(stored))[0]
    return stored.model(batch, (head,))[head].cpu()


def _masked_head(stored: Stored) -> str:
    """Return the name of the head that fills masks.

    Raises:
        UsageError: there is none.
    """
    for name, head in stored.model.spec.heads.items():
        if isinstance(head, LanguageModelHead.Spec) and not stored.model.spec.writes:
            return name
    raise UsageError("only a decoder or a model with a masked head fills a gap", "load one, such as gpt2 or bert")


def _sides(text: str) -> tuple[str, str]:
    """Return what stands before the gap and behind it.

    Raises:
        UsageError: there is not exactly one gap.
    """
    parts = text.split(GAP)
    if len(parts) != 2:
        message = f"the text has {len(parts) - 1} gaps" if len(parts) > 1 else "the text has no gap"
        raise UsageError(message, f'write {GAP} once, where a candidate is to stand: "I was eating {GAP}."')
    return parts[0], parts[1]


def _cut(stored: Stored, before: str, candidate: str, after: str) -> tuple[list[int], int, int]:
    """Return the ids of the whole text, and where among them those of the candidate begin and end.

    The whole is cut into tokens at once, as a text that was read so. A token belongs to the candidate if it holds one
    of its characters: where a token spans an edge of the gap, the letters of both sides count with the candidate.

    Raises:
        DataError: the candidate has no token.
    """
    if not candidate.strip():
        raise DataError("a candidate is empty", "give words, with commas between them")
    start, end = len(before), len(before) + len(candidate)
    spans = tokenizer_of(stored).spans(before + candidate + after)
    inside = [n for n, (_, left, right) in enumerate(spans) if left < end and right > start]
    if not inside:
        raise DataError(f"the candidate {candidate!r} has no token", "this tokenizer cannot spell it")
    return [id for id, _, _ in spans], inside[0], inside[-1] + 1


def _check(stored: Stored, rows: Sequence[Sequence[int]]) -> None:
    """Refuse rows that the model cannot read."""
    check_ids(torch.tensor([id for row in rows for id in row], dtype=torch.long), vocabulary(stored))
    longest = max(map(len, rows))
    if longest > stored.model.spec.context:
        raise too_long(longest, stored.model.spec.context)
