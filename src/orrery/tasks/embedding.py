"""Embedding: vectors of texts, near each other where texts belong together; a text's is a list of numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orrery.language_model.vectors import TextEmbedder, TextVector
from orrery.schema.section import Section
from orrery.scores.retrieval import recall_at, reciprocal_rank
from orrery.tasks._task import Learned, register
from orrery.tasks.finetuning._counting import features
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.pipelines._pipeline import Pipeline, text_of

if TYPE_CHECKING:
    import torch

    from orrery.exchange.reading.read import Stored
    from orrery.language_model.model import LanguageModel

BATCH = 64
"""Texts read at once."""


class SentenceVectorSettings(Section):
    """``prompt``, ``normalise`` and ``truncation`` of ``LanguageModel.embed``: what is null is as the folder says."""

    prompt: str | None = None
    normalise: bool | None = None
    truncation: bool | None = None


@register
class Embedding(Learned, Pipeline):
    """Vectors of texts that lie near each other where two texts belong together: retrieval, similarity.

    A text is answered by one vector, as ``SentenceTransformer.encode`` does, and is what ``LanguageModel.embed`` makes
    of it; ``feature-extraction`` answers with one for each token, as in transformers.
    """

    kind = "embedding"
    verb = "embed"
    route = "/v1/embeddings"
    said = "vector"
    Settings = SentenceVectorSettings
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

    def __call__(self, inputs: Any, **settings: Any) -> Any:
        """Return the vectors as lists of numbers; see ``Pipeline``."""
        found = super().__call__(inputs, **settings)
        if isinstance(found, Iterator):
            return map(self.told, found)
        return [self.told(one) for one in found] if self.is_many(inputs) else self.told(found)

    def chosen(self, settings: Mapping[str, Any]) -> SentenceVectorSettings:
        """Return the settings of a call, checked, the prompt among them.

        Raises:
            UsageError: one that the task lacks, or a prompt that the folder has not.
        """
        found: SentenceVectorSettings = super().chosen(settings)
        self._embedder(found)
        return found

    def rows(self, item: Any, settings: SentenceVectorSettings) -> Sequence[Any]:
        """Return the one row of a text, or of a list of ids."""
        ids = isinstance(item, list) and all(type(id) is int for id in item)
        return [self._embedder(settings).row(item if ids else text_of(item, self.task))]

    def ask(self, rows: Sequence[Any], settings: SentenceVectorSettings) -> Sequence[TextVector]:
        """Return the vector of each row."""
        return self._embedder(settings).vectors(rows)

    def answer(
        self, item: Any, rows: Sequence[Any], found: Sequence[TextVector], settings: SentenceVectorSettings
    ) -> TextVector:
        """Return the vector of a text, with how many tokens were read and left out."""
        return found[0]

    def told(self, answer: TextVector | None) -> list[float] | None:
        """Return the numbers."""
        return None if answer is None else answer.vector.tolist()

    def _embedder(self, settings: SentenceVectorSettings) -> TextEmbedder:
        return TextEmbedder.of(self.lm.stored, settings.prompt, settings.normalise, settings.truncation)


def vectors(lm: "LanguageModel", texts: Sequence[str], done: Any = None) -> "torch.Tensor":
    """Return a vector of length one for each text, as the model makes them."""
    return lm.embed(list(texts), normalise=True, truncation=True, batch_size=BATCH, done=done)
