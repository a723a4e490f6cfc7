"""What stands behind the masks of a text: ``[{"score", "token", "token_str", "sequence"}]``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError, UsageError
from orrery.language_model.model import LanguageModel
from orrery.nn.heads import LanguageModelHead
from orrery.schema.numbers import Positive
from orrery.tasks._task import register
from orrery.tasks.pipelines._heads import Scores, head_of, softmax, wide
from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings, text_of
from orrery.tasks.pipelines._rows import InputRow, ask, room_of, row, too_long


class FillMaskSettings(PipelineSettings):
    """``top_k`` tokens a mask, or ``targets``: the only ones that count."""

    top_k: Positive = 5
    targets: str | list[str] | None = None


@register
class FillMask(Pipeline):
    """``softmax`` over the vocabulary at each mask, the other masks left as they are: the probability of each token.

    A text with several masks has a list for each. A target of several tokens stands for its first one in transformers,
    with a warning; here it is refused, and ``lm.cloze`` gives its probability. Other control tokens that a text spells
    are refused too.
    """

    kind = "fill_mask"
    Settings = FillMaskSettings

    def __call__(self, inputs: Any, **settings: Any) -> Any:
        """Return the tokens; a list with one text has that text's answer, as in transformers."""
        answers_given = super().__call__(inputs, **settings)
        return answers_given[0] if isinstance(inputs, list) and len(inputs) == 1 else answers_given

    def rows(self, item: Any, settings: FillMaskSettings) -> Sequence[InputRow]:
        """Return the one row of a text with a mask.

        Raises:
            UsageError: there is no mask, or the text is longer than the context.
        """
        mask, tokenizer = mask_of(self.lm), self.lm.tokenizer
        ids, room = tokenizer.encode(text_of(item, self.task), special=True), room_of(self.lm, paired=False)
        if others := (set(ids) & tokenizer.control) - {mask, tokenizer.unknown_id}:
            spelt = tokenizer.token(min(others))
            raise DataError(
                f"the text spells the control token {spelt}", "write it otherwise: only the mask may be one"
            )
        if len(ids) > room and not settings.truncation:
            raise too_long(len(ids) + self.lm.context - room, self.lm.context)
        if mask not in (kept := tokenizer.kept(ids, room)):
            hint = f"write {tokenizer.token(mask)} where a word is left out"
            raise UsageError(f"{self.task}: the text has no mask", hint)
        return [row(self.lm, kept)]

    def ask(self, rows: Sequence[InputRow], settings: FillMaskSettings) -> Sequence[Scores]:
        """Return the probabilities of the vocabulary at each mask of each row."""
        name, _ = head_of(self.lm, LanguageModelHead.Spec, "masked", settings.head, self.task)
        logits, mask = ask(self.lm, rows, name)[0], mask_of(self.lm)
        return [softmax(wide(logits_LV[_places(one, mask)])) for logits_LV, one in zip(logits, rows, strict=True)]

    def answer(self, item: Any, rows: Sequence[InputRow], outputs: Sequence[Scores], settings: FillMaskSettings) -> Any:
        """Return the best tokens of each mask; a text with one mask has no list around them."""
        tokenizer, (row,) = self.lm.tokenizer, rows
        padding = tokenizer.special("pad") if "pad" in tokenizer.roles else None  # left out of the text, as there
        places, answers = _places(row, mask_of(self.lm)), []
        for place, scores in zip(places, outputs[0], strict=True):
            best = []
            for id in _best(scores, self._targets(settings), settings.top_k):
                ids = [other for other in (*row.ids[:place], id, *row.ids[place + 1 :]) if other != padding]
                sequence = tokenizer.decode(ids, special=len(places) > 1)
                spelt = tokenizer.decode([id], special=True)
                best.append({"score": float(scores[id]), "token": id, "token_str": spelt, "sequence": sequence})
            answers.append(best)
        return answers[0] if len(answers) == 1 else answers

    def _targets(self, settings: FillMaskSettings) -> list[int] | None:
        """Return the ids of the targets.

        Raises:
            UsageError: one has not exactly one token.
        """
        if settings.targets is None:
            return None
        given = [settings.targets] if isinstance(settings.targets, str) else settings.targets
        if not given:
            raise UsageError("there are no targets", "give at least one, or leave targets away")
        ids_of_words = []
        for target in given:
            known = self.lm.tokenizer.id(target)
            ids = self.lm.tokenizer.encode(target) if known is None else [known]
            if len(ids) != 1:
                hint = "lm.cloze(text, candidates) gives the probability of such a one"
                raise UsageError(f"the target {target!r} has {len(ids)} tokens, and a mask stands for one", hint)
            ids_of_words.append(ids[0])
        return sorted(set(ids_of_words))


def mask_of(lm: LanguageModel) -> int:
    """Return the id of the mask."""
    return lm.tokenizer.special("mask")


def _places(row: InputRow, mask: int) -> list[int]:
    return [place for place, id in enumerate(row.ids) if id == mask]


def _best(scores: Scores, targets: list[int] | None, count: int) -> list[int]:
    """Return the ids of the greatest scores, among the targets where there are any."""
    ids: NDArray[Any] = np.arange(len(scores)) if targets is None else np.array(targets)
    order = np.argsort(-scores[ids], kind="stable")[:count]
    return [int(id) for id in ids[order]]
