"""Embeddings: the row of a token, its nearest tokens, a map in two dimensions, and analogies."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check, bound
from orrery.inspection.explain.entry import TableRow
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.schema.section import Section
from orrery.tuning import matrix_of

NEAR = 12
"""Nearest tokens that are named."""
SAMPLE = 8192
"""Rows from which the plane of the map is found; all rows are then laid on it."""
SAVED = 48
"""Tokens of the text whose rows a saved page holds."""


class EmbeddingSettings(Section):
    """What can be asked; one of the three.

    Attributes:
        token: an id: its row and its nearest tokens.
        map: the tokens of the text, or those of the whole vocabulary, on a plane.
        analogy: ``a,b,c`` as three words with commas: what is nearest to ``a - b + c``.
    """

    token: int | None = None
    map: Literal["text", "vocabulary"] | None = None
    analogy: str | None = None


@register
class EmbeddingView(View):
    """What a token is before the model has read its neighbours: a row of the table."""

    kind: ClassVar[str] = "embedding"
    order: ClassVar[int] = 20
    Settings: ClassVar[type[Section]] = EmbeddingSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model looks tokens up in a table."""
        return subject.inside is not None and "embedded" in subject.inside and table_of(subject.inside) is not None

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return the map of the text, and the rows of its first tokens."""
        yield EmbeddingSettings(map="text")
        for id in _unique(subject.seen)[:SAVED]:
            yield EmbeddingSettings(token=id)

    def payload(self, subject: ViewSubject, settings: EmbeddingSettings) -> Payload:
        """Return the row of a token, a map, or what is nearest to an analogy."""
        inside = subject.seen
        table_VD = table_of(inside)
        assert table_VD is not None
        if settings.analogy is not None:
            return _analogy(inside, table_VD, settings.analogy)
        if settings.map is not None:
            ids = _unique(inside) if settings.map == "text" else list(range(len(table_VD)))
            return _map(inside, table_VD, ids)
        id = int(inside.first.ids[0, -1]) if settings.token is None else settings.token
        if not 0 <= id < len(table_VD):
            raise UsageError(f"there is no token {id}", f"the table has {len(table_VD):,} rows, from 0")
        return _row(inside, table_VD, id)


def table_of(inside: Inside) -> Float[Tensor, "V D"] | None:
    """Return the table in which the answering stack looks its tokens up, where there is one."""
    node = inside.explainer.numbers.nodes.get("word")
    return matrix_of(node.table) if isinstance(node, TableRow) else None


def entry_check(inside: Inside) -> Check:
    """Compare the rows, with all that is done to them, with what entered the first block."""
    numbers = inside.explainer.numbers
    with torch.no_grad():
        made = numbers.nodes["embedded"].compute(numbers)
    seen = inside["embedded"]
    off = float((made.double() - seen.double()).abs().max() / seen.double().abs().max().clamp(min=1))
    return Check("rows and positions are what enters the first block", off, bound(seen.dtype))


def nearest(table_VD: Float[Tensor, "V D"], vector_D: Float[Tensor, "D"], count: int) -> tuple[list[int], list[float]]:
    """Return the rows of the greatest cosine with a vector, and their cosines."""
    wide_VD, wide_D = table_VD.float(), vector_D.float()
    cosine_V = wide_VD @ wide_D / (wide_VD.norm(dim=1) * wide_D.norm()).clamp(min=1e-12)
    value, id = cosine_V.topk(min(count, len(cosine_V)))
    return id.tolist(), value.tolist()


def _row(inside: Inside, table_VD: Tensor, id: int) -> Payload:
    ids, cosines = nearest(table_VD, table_VD[id], NEAR + 1)
    near = [(one, cosine) for one, cosine in zip(ids, cosines, strict=True) if one != id][:NEAR]
    length_V = table_VD.float().norm(dim=1)
    facts = {
        **_named(inside, id),
        "near": [{**_named(inside, one), "cosine": cosine} for one, cosine in near],
        "length": float(length_V[id]),
        "mean_length": float(length_V.mean()),
    }
    own = float(torch.cosine_similarity(table_VD[id].double(), table_VD[id].double(), dim=0))
    kept = bool(table_VD[id].any())
    checks = [entry_check(inside), Check("the cosine of a row with itself is one", abs(own - 1) if kept else 0.0, 1e-9)]
    return Payload(facts, {"row": table_VD[id].float()}, checks)


def _map(inside: Inside, table_VD: Tensor, ids: Sequence[int]) -> Payload:
    """Return rows on the plane of their two largest principal components."""
    row_ND = table_VD[torch.tensor(ids)].double()
    centred_ND = row_ND - row_ND.mean(0)
    sample_MD = centred_ND[:: -(-len(ids) // SAMPLE)]
    values, vectors = torch.linalg.eigh(sample_MD.T @ sample_MD / len(sample_MD))
    axes_D2 = vectors[:, -2:].flip(1)
    # The sign of an axis is free: the largest coefficient is positive, so that a map is the same everywhere.
    axes_D2 = axes_D2 * axes_D2.gather(0, axes_D2.abs().argmax(0, keepdim=True)).sign()
    points_N2 = centred_ND @ axes_D2
    variance = float(centred_ND.square().sum())
    shares = [float(points_N2[:, n].square().sum()) / max(variance, 1e-30) for n in range(points_N2.shape[1])]
    checks = [Check("the axes of the map stand at right angles", float(_off_identity(axes_D2)), 1e-9)]
    if len(sample_MD) == len(ids) and variance > 0:
        variances = values[-len(shares) :].flip(0) * len(ids) / variance
        off = float((variances - torch.tensor(shares, dtype=torch.double)).abs().max())
        checks.append(Check("the spread of the map is what its axes hold", off, 1e-9))
    facts = {"ids": list(ids), "texts": [_named(inside, id)["text"] for id in ids], "shares": shares}
    return Payload(facts, {"points": points_N2.float()}, checks)


def _off_identity(axes_D2: Float[Tensor, "D N"]) -> Tensor:
    return (axes_D2.T @ axes_D2 - torch.eye(axes_D2.shape[1], dtype=axes_D2.dtype)).abs().max()


def _analogy(inside: Inside, table_VD: Tensor, text: str) -> Payload:
    words = [word.strip() for word in text.split(",")]
    if len(words) != 3:
        raise UsageError(f"{text!r} is no analogy", "write three words with commas: king,man,woman")
    a, b, c = (one_token(inside, word, len(table_VD)) for word in words)
    length_V = table_VD.float().norm(dim=1, keepdim=True).clamp(min=1e-12)
    unit_VD = table_VD.float() / length_V
    made_D = unit_VD[a] - unit_VD[b] + unit_VD[c]
    ids, cosines = nearest(unit_VD, made_D, NEAR + 3)
    near = [(one, cosine) for one, cosine in zip(ids, cosines, strict=True) if one not in (a, b, c)][:NEAR]
    first = near[0]
    again = float(torch.cosine_similarity(unit_VD[first[0]].double(), made_D.double(), dim=0))
    facts = {
        "given": [_named(inside, one) for one in (a, b, c)],
        "near": [{**_named(inside, one), "cosine": cosine} for one, cosine in near],
    }
    return Payload(facts, {}, [Check("the first cosine is that of its row", abs(again - first[1]), 1e-5)])


def one_token(inside: Inside, word: str, rows: int) -> int:
    """Return the id of a word that is one token, alone or behind a blank.

    Raises:
        UsageError: it is several.
    """
    tokenizer = inside.lm.tokenizer
    for spelling in (f" {word}", word):
        ids = tokenizer.encode(spelling)
        if len(ids) == 1 and ids[0] < rows and ids[0] != tokenizer.unknown_id:
            return ids[0]
    parts = " ".join(repr(inside.spell(id)) for id in tokenizer.encode(word))
    raise UsageError(f"{word!r} is no single token here but {parts or 'none'}", "give words that are one token each")


def _unique(inside: Inside) -> list[int]:
    return list(dict.fromkeys(inside.first.ids[0].tolist()))


def _named(inside: Inside, id: int) -> dict[str, Any]:
    tokenizer = inside.lm.stored.tokenizer
    return {"id": id, "text": inside.spell(id) if tokenizer is not None and id < tokenizer.size else ""}
