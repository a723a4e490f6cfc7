"""A sentence in another language: ``[{"translation_text": ...}]``."""

from typing import Any

from pydantic import Field

from orrery.language_model.model import LanguageModel
from orrery.language_model.search import between
from orrery.scores.translation import bleu, chrf
from orrery.tasks._task import register
from orrery.tasks.finetuning._writing import WritesFromSource, answers, longest_target, references
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.pipelines._make import TRANSLATION
from orrery.tasks.pipelines._writing import FromSource, WritingSettings
from orrery.text.languages import knows_languages


class TranslationSettings(WritingSettings):
    """What says how to write, and both languages of a model of many, as its tokenizer spells them."""

    src_lang: str | None = Field(None, description="The language of the texts: en, eng_Latn, en_XX.")
    tgt_lang: str | None = Field(None, description="The language of the translations.")


@register
class Translation(WritesFromSource, FromSource):
    """A sentence in another language, or in another form of the same, which an encoder-decoder writes.

    Transformers 5 has no such task any more; the answers are those of transformers 4. ``translation_en_to_de`` takes
    what config.json says of this pair (``task_specific_params``), as T5 has it; of a model of many languages it names
    both, as ``src_lang`` and ``tgt_lang`` do, which count before it.
    """

    Settings = TranslationSettings

    kind = "translation"
    verb = "translate"
    route = "/v1/translate"
    returns = "translation"

    @classmethod
    def findings(cls, lm: LanguageModel, source: Any, length: int, done: Any = None) -> Findings:
        """Return BLEU and chrF; the floor is the source itself, copied."""
        pairs = source.held_back
        said, right = answers(lm, pairs, longest_target(lm, source.train), done), references(pairs)
        worst = sorted(range(len(pairs)), key=lambda n: chrf([said[n]], *[[each[n]] for each in right]).score)
        return Findings(
            scores=(bleu(said, *right), chrf(said, *right)),
            examples=f"{len(pairs):,} pairs held back",
            floors=[("the source, copied", bleu([pair.source for pair in pairs], *right))],
            mistakes=[Mistake(pairs[n].source, pairs[n].target, said[n]) for n in worst],
        )

    def writer(self, settings: TranslationSettings) -> LanguageModel:
        """Return the model between the two languages."""
        source, target = settings.src_lang, settings.tgt_lang
        named = TRANSLATION.fullmatch(self.task.replace("-", "_"))
        if named is not None and source is target is None and knows_languages(self.lm.tokenizer):
            source, target = named.groups()
        return self.lm if source is target is None else LanguageModel(between(self.lm.stored, source, target))
