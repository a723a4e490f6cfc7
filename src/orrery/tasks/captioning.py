"""Sentences about pictures, learned from pairs of both; a model that has learned it is asked as ``image-to-text``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orrery.scores.resampled import Resampled, mean_of
from orrery.scores.rouge import corpus_rouge
from orrery.scores.signature import signature
from orrery.tasks._task import register
from orrery.tasks.finetuning._counting import most_frequent
from orrery.tasks.finetuning._words_on_pictures import looked_at
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.pipelines._of_pictures import LearnedOfCaptions

if TYPE_CHECKING:
    from orrery.data.rows.pictures import LabelledPicture
    from orrery.language_model.model import LanguageModel

BATCH = 32
"""Pictures answered at once."""
SHOWN = 10
"""Pictures of which a report shows where each word looked."""


@register
class Captioning(LearnedOfCaptions):
    """A sentence that says what a picture shows, which a model writes that reads pictures."""

    kind = "captioning"
    objective = "captioning"
    asked_as = "image_to_text"

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return the share of captions that is a right one, word for word, and ROUGE-L; and where each word looked."""
        rows: Sequence[LabelledPicture] = source.held_back
        said = written(lm, rows, length, done)
        usual = most_frequent([caption for row in source.train for caption in row.target])
        worst = sorted(range(len(rows)), key=lambda n: (said[n] in rows[n].target, n))
        wrong = [n for n in worst if said[n] not in rows[n].target]
        return Findings(
            scores=(exact(said, rows), longest_shared(said, rows)),
            examples=f"{len(rows):,} pictures held back",
            floors=[("the most frequent caption", exact([usual] * len(rows), rows))],
            others=[("the most frequent caption", longest_shared([usual] * len(rows), rows))],
            mistakes=[Mistake(rows[n].where, rows[n].target[0], said[n], None, rows[n].pixels()) for n in wrong],
            shown=[
                (f"{rows[n].where}: {said[n]}", looked_at(lm, rows[n], said[n])) for n in range(min(SHOWN, len(rows)))
            ],
        )


def written(lm: "LanguageModel", rows: "Sequence[LabelledPicture]", length: int, done: Any = None) -> list[str]:
    """Return the caption of each picture, the likeliest token by token, unless the model's files say otherwise."""
    limit: Any = {} if "max_new_tokens" in lm.writing else {"max_new_tokens": min(length, lm.context - 1)}
    found: list[str] = []
    for first in range(0, len(rows), BATCH):
        some = [row.pixels().permute(1, 2, 0) for row in rows[first : first + BATCH]]
        found += lm.caption(some, batch_size=BATCH, **limit)
        if done is not None:
            done(len(found), len(rows))
    return [" ".join(each.split()) for each in found]


def exact(said: Sequence[str], rows: "Sequence[LabelledPicture]") -> Resampled:
    """Return the share of captions that is a right one, word for word."""
    hits = [float(one in row.target) for one, row in zip(said, rows, strict=True)]
    return mean_of("exact", signature(n=len(rows), case="kept", blanks="one"), hits)


def longest_shared(said: Sequence[str], rows: "Sequence[LabelledPicture]") -> Resampled:
    """Return ROUGE-L, of several right captions the best."""
    most = max(len(row.target) for row in rows)
    right = [[row.target[min(n, len(row.target) - 1)] for row in rows] for n in range(most)]
    return corpus_rouge(list(said), *right)["ROUGE-L"]
