"""Labels of tokens, and the entities that they make: ``[{"entity", "score", "index", "word", "start", "end"}]``."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from orrery.data.batches.windows import windows
from orrery.errors import UsageError
from orrery.nn.heads import TokenHead
from orrery.schema.numbers import Count
from orrery.tasks.pipelines._entities import Entity, Grouping, Strategy, Token, without_overlaps
from orrery.tasks.pipelines._heads import Scores, head_of, names_of, softmax, wide
from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings, register, text_of
from orrery.tasks.pipelines._rows import Row, ask, room_of, row, too_long
from orrery.text.engine import Span


class TokenClassificationSettings(PipelineSettings):
    """How tokens become entities, and which labels are left out; ``stride`` tokens are shared by windows.

    ``is_split_into_words``: texts are lists of words, which ``delimiter`` joins into the text that places refer to.
    """

    aggregation_strategy: Strategy = "none"
    ignore_labels: tuple[str, ...] = ("O",)
    stride: Count | None = None
    is_split_into_words: bool = False
    delimiter: str = " "


@register
class TokenClassification(Pipeline):
    """``softmax`` over the labels of each token, and ``Grouping`` of the tokens.

    A text that is longer than the context is read in windows with ``stride``, cut with ``truncation``, and refused
    otherwise, where transformers cuts in silence.
    """

    kind = "token_classification"
    Settings = TokenClassificationSettings

    def chosen(self, settings: Any) -> TokenClassificationSettings:
        """Return the settings of a call; windows overlap, so tokens that are seen twice must be joined."""
        found: TokenClassificationSettings = super().chosen(settings)
        if found.stride is not None and found.aggregation_strategy == "none":
            hint = 'choose aggregation_strategy "simple", "first", "average" or "max"'
            raise UsageError("stride reads some tokens twice, and aggregation_strategy none keeps both", hint)
        return found

    def __call__(self, inputs: Any, **settings: Any) -> Any:
        """Return the tokens or entities; see ``Pipeline``."""
        words = self.chosen(
            {k: v for k, v in settings.items() if k not in ("batch_size", "done", "names")}
        ).is_split_into_words
        single = words and isinstance(inputs, list) and not all(isinstance(item, list) for item in inputs)
        return super().__call__([inputs] if single else inputs, **settings)

    def rows(self, item: Any, settings: TokenClassificationSettings) -> Sequence[Row]:
        """Return the row of a text, or a row for each window over it."""
        ids, room = [id for id, _, _ in self._spans(item, settings)], room_of(self.lm, paired=False)
        if settings.stride is None:
            if len(ids) > room and not settings.truncation:
                raise too_long(len(ids) + self.lm.context - room, self.lm.context, "; stride=16 reads it in windows")
            return [row(self.lm, ids[:room])]
        return [row(self.lm, ids[start:end], None, start) for start, end in windows(len(ids), room, settings.stride)]

    def ask(self, rows: Sequence[Row], settings: TokenClassificationSettings) -> Sequence[Scores]:
        """Return the scores of the labels of each token."""
        name, _ = head_of(self.lm, TokenHead.Spec, "token", settings.head, self.task)
        return list(softmax(wide(ask(self.lm, rows, name)[0])))

    def answer(
        self, item: Any, rows: Sequence[Row], found: Sequence[Scores], settings: TokenClassificationSettings
    ) -> list[Entity]:
        """Return the tokens or entities with their places in the text."""
        _, spec = head_of(self.lm, TokenHead.Spec, "token", settings.head, self.task)
        grouping = Grouping(names_of(spec), self.lm.tokenizer.spell, settings.aggregation_strategy)
        text, spans = _text(item, settings), self._spans(item, settings)
        entities = [
            entity
            for row, scores in zip(rows, found, strict=True)
            for entity in grouping.of(self._tokens(text, spans, row, scores))
            if entity.get("entity", entity.get("entity_group")) not in settings.ignore_labels
        ]
        return without_overlaps(entities) if len(rows) > 1 else entities

    def _spans(self, item: Any, settings: TokenClassificationSettings) -> list[Span]:
        """Return the ids of a text with their places; the words of one that is split are cut each for itself."""
        tokenizer = self.lm.tokenizer
        if not settings.is_split_into_words:
            return tokenizer.spans(text_of(item, self.task))
        words = _words(item, self.task)
        starts = [0, *accumulate(len(word) + len(settings.delimiter) for word in words)]
        return [
            (id, start + before, end + before)
            for word, before in zip(words, starts, strict=False)
            for id, start, end in tokenizer.spans(word)
        ]

    def _tokens(self, text: str, spans: Sequence[Span], row: Row, scores: Scores) -> list[Token]:
        """Return the tokens of a row that are of the text."""
        tokenizer, found, number = self.lm.tokenizer, [], row.start
        for index, of in enumerate(row.texts):
            if of < 0:
                continue
            id, start, end = spans[number]
            number += 1
            spelt, unknown = tokenizer.token(id), id == tokenizer.unknown_id
            if tokenizer.marks_continuations:
                inside = len(spelt) != end - start
            else:
                inside = start > 0 and " " not in text[start - 1 : start + 1]
            spelt = text[start:end] if unknown else spelt
            found.append(Token(spelt, scores[index], start, end, index, inside and not unknown))
        return found


def _words(item: Any, task: str) -> list[str]:
    """Return the words of a text that is given as a list of them.

    Raises:
        UsageError: it is no such list.
    """
    if not isinstance(item, list) or not all(isinstance(word, str) for word in item):
        raise UsageError(f"{task} with is_split_into_words reads lists of words", 'give ["Ada", "wrote"]')
    return item


def _text(item: Any, settings: TokenClassificationSettings) -> str:
    return settings.delimiter.join(item) if settings.is_split_into_words else item
