"""Embedding: vectors of texts, near each other where texts belong together."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from orrery.scores.retrieval import recall_at, reciprocal_rank
from orrery.tasks._task import Learned, register
from orrery.tasks.finetuning._counting import features
from orrery.tasks.finetuning.findings import Findings, Mistake

if TYPE_CHECKING:
    import torch

    from orrery.exchange.reading.read import Stored
    from orrery.language_model.model import LanguageModel

BATCH = 64
"""Texts read at once."""


@register
class Embedding(Learned):
    """Vectors of texts that lie near each other where two texts belong together: retrieval, similarity."""

    kind = "embedding"
    verb = "embed"
    route = "/v1/embeddings"
    source = "matches"
    objective = "contrastive"
    columns = ("text", "pair")
    batches = "matches"

    @classmethod
    def learns(cls, stored: "Stored") -> dict[str, Any]:
        """Return the pooling of the model's folder, where it has one alone: what it was trained with is trained on."""
        modes = () if stored.sentences is None else stored.sentences.vectors.pooling.modes
        return {"pooling": modes[0]} if len(modes) == 1 else {}

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the longer text of each pair."""
        return ((max(pair.source, pair.target, key=len),) for pair in source.train)

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return how often a text finds its own partner among all that are held back; the floor is shared words."""
        pairs = source.held_back
        partners = list(dict.fromkeys(pair.target for pair in pairs))
        right = [{other.target for other in pairs if other.source == pair.source} for pair in pairs]
        near = vectors(lm, [pair.source for pair in pairs], done) @ vectors(lm, partners, done).T
        ranked = [[partners[place] for place in row] for row in near.argsort(dim=1, descending=True).tolist()]
        words = [features(partner) for partner in partners]
        counted = []
        for pair in pairs:
            own = features(pair.source)
            shared = [len(own & other) / max(1, len(own | other)) for other in words]
            counted.append([partners[place] for place in sorted(range(len(partners)), key=lambda n: -shared[n])])
        wrong = [n for n in range(len(pairs)) if ranked[n][0] not in right[n]]
        return Findings(
            scores=(
                recall_at(1, ranked, right),
                recall_at(min(10, len(partners)), ranked, right),
                reciprocal_rank(ranked, right),
            ),
            examples=f"{len(pairs):,} texts held back, among {len(partners):,} partners",
            floors=[("the share of common words (Jaccard)", recall_at(1, counted, right))],
            mistakes=[Mistake(pairs[n].source, pairs[n].target, ranked[n][0]) for n in wrong],
        )


def vectors(lm: "LanguageModel", texts: Sequence[str], done: Any = None) -> "torch.Tensor":
    """Return a vector of length one for each text, as the model makes them."""
    return lm.embed(list(texts), normalise=True, truncation=True, batch_size=BATCH, done=done)
