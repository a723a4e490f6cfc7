"""A shorter text that says what a longer one says: ``[{"summary_text": ...}]``."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orrery.scores.rouge import corpus_rouge, rouge
from orrery.tasks._no_text import NO_TEXT
from orrery.tasks._task import register
from orrery.tasks.finetuning._counting import MostSimilar
from orrery.tasks.finetuning._writing import WritesFromSource, answers, longest_target, references
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.pipelines._writing import FromSource

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel

LOOKED_UP = 20_000
"""Texts of training among which the most similar one is looked for, evenly spread: of more the words take gigabytes."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n")


@register
class Summarisation(WritesFromSource, FromSource):
    """A shorter text that says what a longer one says, which an encoder-decoder writes.

    Transformers 5 has no such task any more; the answers are those of transformers 4.
    """

    kind = "summarisation"
    names = ("summarization",)
    verb = "summarise"
    said = "summary"
    cuts = True
    returns = "summary"

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return ROUGE with stemming, of several references the best.

        Floors: the first sentence (lead-1), and the summary of the training text that is nearest by TF-IDF.
        """
        pairs = source.held_back
        said, right = answers(lm, pairs, longest_target(lm, source.train), done), references(pairs)
        scores = corpus_rouge(said, *right, stemmed=True)
        floors = {name: corpus_rouge(texts, *right, stemmed=True) for name, texts in plain_summaries(source).items()}
        each = [max(rouge(said[n], one[n], True)["ROUGE-L"].f1 for one in right) for n in range(len(pairs))]
        worst = sorted(range(len(pairs)), key=each.__getitem__)
        kinds = ("ROUGE-L", "ROUGE-1", "ROUGE-2")
        return Findings(
            scores=[scores[kind] for kind in kinds],
            examples=f"{len(pairs):,} texts held back",
            floors=[(name, rouge["ROUGE-L"]) for name, rouge in floors.items()],
            others=[(name, rouge[kind]) for name, rouge in floors.items() for kind in kinds[1:]],
            mistakes=[Mistake(pairs[n].source, pairs[n].target, said[n]) for n in worst],
        )

    def told(self, answer: Any) -> str:
        """Return the summary."""
        return "" if answer is None else str(answer[0]["summary_text"])

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return the summary."""
        yield NO_TEXT if answer is None else self.told(answer)


def plain_summaries(source: Any) -> dict[str, list[str]]:
    """Return what is written without a model for each source held back, by the name of the method."""
    known = source.train[:: 1 + len(source.train) // LOOKED_UP]
    nearest = MostSimilar([pair.source for pair in known])
    return {
        "the first sentence (lead-1)": [first_sentence(pair.source) for pair in source.held_back],
        "the nearest text's summary": [known[nearest.find(pair.source)].target for pair in source.held_back],
    }


def first_sentence(text: str) -> str:
    """Return the text up to the first full stop, question or exclamation mark before a blank, or an empty line."""
    return _SENTENCE.split(text.strip(), maxsplit=1)[0]
