"""The likeliest of thousands of labels for a text: clusters by an encoder, then a linear classifier a label."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from orrery.nn.heads import SequenceHead
from orrery.schema.numbers import Positive
from orrery.tasks._no_text import NO_TEXT
from orrery.tasks._task import Learned, register
from orrery.tasks.finetuning.findings import Findings
from orrery.tasks.pipelines._heads import head_of
from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings, text_of
from orrery.tasks.pipelines._rows import InputRow
from orrery.tasks.xbert import CLUSTERS

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel
    from orrery.recipes.config import Recipe
    from orrery.tasks.xbert.reading import Matched
    from orrery.tasks.xbert.saved import SavedRanker


class ManyLabelsSettings(PipelineSettings):
    """``top_k`` labels, of those in so many of the likeliest ``clusters``.

    A text longer than the rows in training is cut for the encoder, with ``truncation`` or without; all of its words are
    counted.
    """

    top_k: Positive = Field(5, description="How many labels are told.")
    clusters: Positive = Field(CLUSTERS, description="How many clusters of labels are searched, the likeliest first.")


@register
class ManyLabels(Learned, Pipeline):
    """The likeliest of thousands of labels: ``p(cluster | x) exp(-max(0, 1 - w x)^3)`` for those in likely clusters.

    X-BERT (Chang et al. 2020): labels that are alike form clusters, an encoder learns clusters, and a linear classifier
    a label ranks those in the likeliest few, from the words of the text and the encoder's vector. The answer is a list
    of labels with scores, the best first; a score is no probability.

    Differs from the paper: clusters are learned by cross entropy with one of the text's drawn each time, the paper has
    a squared hinge; linear classifiers over the words have a share in how likely a cluster is (``data.encoder``; 1 is
    the paper's); equal scores stand in the order of the labels.
    """

    kind = "many_labels"
    names = ("extreme_classification",)
    verb = "label"
    route = "/v1/label"
    said = "labels"
    source = "many_labels"
    objective = "classification"
    columns = ("text", "label", "labels")
    head = "sequence"
    longest = 128
    Settings = ManyLabelsSettings
    saved: "SavedRanker | None" = None

    @classmethod
    def begins(cls, source: Any, steps: int | None = None) -> dict[str, Any]:
        """Return the model that is made where none is named: a small encoder over the words."""
        from orrery.tasks.xbert.default_model import sections

        return sections(source, cls.longest, steps)

    @classmethod
    def finish(cls, lm: "LanguageModel", source: Any, recipe: "Recipe", done: Any = None) -> None:
        """Learn the ranker, and write it beside the model."""
        from orrery.tasks.xbert.finishing import learned_ranker
        from orrery.tasks.xbert.saved import save

        save(lm.stored.folder, learned_ranker(lm, source, recipe.batches.length, done))

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return precision, gain and recall of the first labels, also with rare ones counted more; simple methods."""
        from orrery.tasks.xbert.scoring import findings

        return findings(lm, source, done)

    def rows(self, item: Any, settings: ManyLabelsSettings) -> Sequence[InputRow]:
        """Return the one row of a text."""
        from orrery.tasks.xbert.reading import row_of

        return [row_of(self.lm, text_of(item, self.task), self.beside_model().length)]

    def ask(self, rows: Sequence[InputRow], settings: ManyLabelsSettings) -> Sequence["Matched"]:
        """Return the likelihood of each cluster and the vector of each row."""
        from orrery.tasks.xbert.reading import match

        name, _ = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        return match(self.lm, rows, name)

    def answer(
        self, item: Any, rows: Sequence[InputRow], found: Sequence["Matched"], settings: ManyLabelsSettings
    ) -> list[dict[str, Any]]:
        """Return the best labels."""
        saved = self.beside_model()
        words = saved.features.rows([item])
        (likely,) = saved.words.beside(words, found[:1])
        features = words.beside(likely.vector_E[None])
        best = saved.ranker.within(features, 0, likely.best(settings.clusters), settings.top_k)
        return [{"label": saved.labels[label], "score": float(np.exp(score))} for label, score in best]

    def beside_model(self) -> "SavedRanker":
        """Return the ranker, read once.

        Raises:
            ModelFileError: the folder of the model has none.
        """
        from orrery.tasks.xbert.saved import load

        if self.saved is None:
            self.saved = load(self.lm.stored.folder)
        return self.saved

    @classmethod
    def fits(cls, lm: "LanguageModel") -> bool:
        """Say whether a ranker stands beside the model."""
        from orrery.tasks.xbert.saved import NAMES

        return (lm.stored.folder / NAMES).is_file()

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line with the labels and their scores."""
        yield NO_TEXT if answer is None else "  ".join(f"{each['label']} {each['score']:.4f}" for each in answer)
