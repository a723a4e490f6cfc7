"""Translation: a sentence in another language."""

from typing import TYPE_CHECKING, Any, ClassVar

from orrery.tasks.finetuning.tasks import register
from orrery.tasks.finetuning.tasks._writing import WritesFromSource, answers, longest_target, references

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel
    from orrery.tasks.finetuning.findings import Findings


@register
class Translation(WritesFromSource):
    """A sentence in another language, or in another form of the same."""

    kind: ClassVar[str] = "translation"

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> "Findings":
        """Return BLEU and chrF; the floor is the source itself, copied."""
        from orrery.scores.translation import bleu, chrf
        from orrery.tasks.finetuning.findings import Findings, Mistake

        pairs = source.held_back
        said, right = answers(lm, pairs, longest_target(lm, source.train), done), references(pairs)
        worst = sorted(range(len(pairs)), key=lambda n: chrf([said[n]], *[[each[n]] for each in right]).score)
        return Findings(
            scores=(bleu(said, *right), chrf(said, *right)),
            examples=f"{len(pairs):,} pairs held back",
            floors=[("the source, copied", bleu([pair.source for pair in pairs], *right))],
            mistakes=[Mistake(pairs[n].source, pairs[n].target, said[n]) for n in worst],
        )
