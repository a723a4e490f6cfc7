"""A label for each word, and the entities they make: ``[{"entity", "score", "index", "word", "start", "end"}]``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from orrery.data.batches.windows import windows
from orrery.errors import UsageError
from orrery.nn.heads import TokenHead
from orrery.schema.numbers import Count
from orrery.scores import classification, entities
from orrery.tasks._task import Learned, register
from orrery.tasks.finetuning._counting import MostFrequentTag
from orrery.tasks.finetuning.findings import Findings, Mistake, label_names
from orrery.tasks.pipelines._entities import Entity, Grouping, ScoredToken, Strategy, without_overlaps
from orrery.tasks.pipelines._heads import Scores, head_of, names_of, softmax, wide
from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings, text_of
from orrery.tasks.pipelines._rows import InputRow, ask, room_of, row, too_long
from orrery.text.engine import Span

if TYPE_CHECKING:
    from orrery.data.rows.tagged import Tagged
    from orrery.language_model.model import LanguageModel

BATCH = 32
"""Rows answered at once."""
OUTSIDE = "O"
"""The label of words outside of entities."""


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
class Tagging(Learned, Pipeline):
    """A label for each word of a sentence: parts of speech, names of people and places.

    It learns a label at each word's first token. The answer is ``softmax`` over the labels of each token, and
    ``Grouping`` of the tokens. A text that is longer than the context is read in windows with ``stride``, cut with
    ``truncation``, and refused otherwise, where transformers cuts in silence.
    """

    kind = "tagging"
    names = ("token_classification", "ner")
    verb = "tag"
    route = "/v1/tag"
    said = "entities"
    titled = True
    source = "tagged"
    objective = "tagging"
    columns = ("layer", "words", "tags")
    head = "token"
    Settings = TokenClassificationSettings

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the sentences."""
        return (sentence.parts for sentence in source.train)

    @classmethod
    def metrics(cls, source: Any) -> list[dict[str, Any]]:
        """Return entity F1 where the labels are those of entities."""
        return [{"kind": "entity_f1", "head": cls.head}] if are_entities(source.labels) else []

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return accuracy over words, and entity F1 where the labels are those of entities."""
        rows: Sequence[Tagged] = source.held_back
        gold = [row.tags for row in rows]
        said = predicted(lm, rows, length, usual(source.labels), done)
        counting = MostFrequentTag((row.words, row.tags) for row in source.train)
        counted = [counting.predict(row.words) for row in rows]
        flat = [[tag for tags in each for tag in tags] for each in (said, gold, counted)]
        labels, counts = classification.confusion(flat[0], flat[1])
        name, named = "the most frequent tag of each word", are_entities(source.labels)
        scores = [classification.accuracy(flat[0], flat[1]), classification.f1(flat[0], flat[1], "macro")]
        floor = classification.accuracy(flat[2], flat[1])
        table = classification.by_label(flat[0], flat[1])
        if named:
            scores, floor = [entities.entity_f1(said, gold), *scores], entities.entity_f1(counted, gold)
            table = entities.by_type(said, gold)
        return Findings(
            scores=scores,
            examples=f"{len(rows):,} sentences held back, {len(flat[1]):,} words",
            floors=[(name, floor)],
            confusion=([str(label) for label in labels], counts.tolist()),
            mistakes=mistakes(rows, said),
            by_label=[(str(each.label), each.precision, each.recall, each.f1, int(each.support)) for each in table],
        )

    def chosen(self, settings: Any) -> TokenClassificationSettings:
        """Return the settings of a call; windows overlap, so tokens that are seen twice must be joined."""
        settings_chosen: TokenClassificationSettings = super().chosen(settings)
        if settings_chosen.stride is not None and settings_chosen.aggregation_strategy == "none":
            hint = 'choose aggregation_strategy "simple", "first", "average" or "max"'
            raise UsageError("stride reads some tokens twice, and aggregation_strategy none keeps both", hint)
        return settings_chosen

    def __call__(self, inputs: Any, **settings: Any) -> Any:
        """Return the tokens or entities; see ``Pipeline``."""
        words = self.chosen(
            {k: v for k, v in settings.items() if k not in ("batch_size", "done", "names")}
        ).is_split_into_words
        single = words and isinstance(inputs, list) and not all(isinstance(item, list) for item in inputs)
        return super().__call__([inputs] if single else inputs, **settings)

    def rows(self, item: Any, settings: TokenClassificationSettings) -> Sequence[InputRow]:
        """Return the row of a text, or a row for each window over it."""
        ids, room = [id for id, _, _ in self._spans(item, settings)], room_of(self.lm, paired=False)
        if settings.stride is None:
            if len(ids) > room and not settings.truncation:
                raise too_long(len(ids) + self.lm.context - room, self.lm.context, "; stride=16 reads it in windows")
            kept = self.lm.tokenizer.kept(ids, room)
            return [row(self.lm, kept, None, 0 if self.lm.tokenizer.cut == "right" else len(ids) - len(kept))]
        return [row(self.lm, ids[start:end], None, start) for start, end in windows(len(ids), room, settings.stride)]

    def ask(self, rows: Sequence[InputRow], settings: TokenClassificationSettings) -> Sequence[Scores]:
        """Return the scores of the labels of each token."""
        name, _ = head_of(self.lm, TokenHead.Spec, "token", settings.head, self.task)
        return list(softmax(wide(ask(self.lm, rows, name)[0])))

    def answer(
        self, item: Any, rows: Sequence[InputRow], outputs: Sequence[Scores], settings: TokenClassificationSettings
    ) -> list[Entity]:
        """Return the tokens or entities with their places in the text."""
        _, spec = head_of(self.lm, TokenHead.Spec, "token", settings.head, self.task)
        grouping = Grouping(names_of(spec), self.lm.tokenizer.spell, settings.aggregation_strategy)
        text, spans = _text(item, settings), self._spans(item, settings)
        entities = [
            entity
            for row, scores in zip(rows, outputs, strict=True)
            for entity in grouping.of(self._tokens(text, spans, row, scores))
            if entity.get("entity", entity.get("entity_group")) not in settings.ignore_labels
        ]
        return without_overlaps(entities) if len(rows) > 1 else entities

    @classmethod
    def fits(cls, lm: "LanguageModel") -> bool:
        """Say whether the model has a head for tags; that of the ends of answers is none."""
        return any(isinstance(head, TokenHead.Spec) and name != "span" for name, head in lm.model.spec.heads.items())

    def told(self, answer: Any) -> list[Entity]:
        """Return the tokens or entities."""
        return answer or []

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line an entity: label, probability, place and words."""
        for entity in self.told(answer):
            label, start, end = entity.get("entity_group", entity.get("entity")), entity["start"], entity["end"]
            yield f"{label}  {entity['score']:.4f}  {start}-{end}  {item[start:end]}"

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

    def _tokens(self, text: str, spans: Sequence[Span], row: InputRow, scores: Scores) -> list[ScoredToken]:
        """Return the tokens of a row that are of the text."""
        tokenizer, scored, number = self.lm.tokenizer, [], row.start
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
            scored.append(ScoredToken(spelt, scores[index], start, end, index, inside and not unknown))
        return scored


def are_entities(labels: Iterable[str]) -> bool:
    """Say whether labels are those of entities: O, and others that begin with a letter and a hyphen."""
    others = [label for label in labels if label != OUTSIDE]
    return bool(others) and all(label[:2] in ("B-", "I-", "E-", "S-", "L-", "U-") for label in others)


def usual(labels: Mapping[str, int]) -> str:
    """Return the label of a word of which nothing is known: outside of all entities, else the most frequent one."""
    return OUTSIDE if OUTSIDE in labels else max(labels, key=labels.__getitem__)


def predicted(
    lm: "LanguageModel", sentences: "Sequence[Tagged]", length: int, unread: str, done: Any = None
) -> list[list[str]]:
    """Return the likeliest label of each word, read at its first token as in training.

    A word without a token, as a lone zero-width character has none, gets the label ``unread``: the model has not seen
    it, and what stands before it says nothing of it.
    """
    import torch

    from orrery.data.batches.padded_rows import padded
    from orrery.data.batches.token_windows import IGNORE
    from orrery.data.batches.words import tokenise_words
    from orrery.data.sources.tagged import rows_of

    names = label_names(lm, "token")
    predicted_labels: list[list[str]] = [[] for _ in sentences]
    rows: list[dict[str, Any]] = []
    owners: list[tuple[int, int]] = []
    for number, each in enumerate(sentences):
        tokens = tokenise_words(lm.tokenizer, each.words, each.written)
        predicted_labels[number] = [unread] * len(each.words)
        for one in rows_of(lm.tokenizer, tokens.ids, tokens.firsts, range(len(each.words)), length):
            owners.append((number, len(rows)))
            rows.append(dict(one))
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]["ids"]))
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        batch = {name: tensor.to(lm.device) for name, tensor in padded([rows[n] for n in some]).items()}
        with torch.no_grad():
            best = lm.model(batch, ["token"])["token"].argmax(-1).tolist()
        for n, labels in zip(some, best, strict=True):
            for word, label in zip(rows[n]["targets"], labels, strict=False):
                if word != IGNORE:
                    predicted_labels[owners[n][0]][word] = names[label]
        if done is not None:
            done(min(len(order), start + BATCH), len(order))
    return predicted_labels


def mistakes(rows: "Sequence[Tagged]", said: Sequence[Sequence[str]]) -> list[Any]:
    """Return the sentences with most wrong labels."""
    wrong = [[n for n, tag in enumerate(row.tags) if tags[n] != tag] for row, tags in zip(rows, said, strict=True)]
    order = sorted((n for n in range(len(rows)) if wrong[n]), key=lambda n: -len(wrong[n]))
    return [
        Mistake(
            rows[n].text,
            ", ".join(f"{rows[n].words[w]}: {rows[n].tags[w]}" for w in wrong[n][:8]),
            ", ".join(said[n][w] for w in wrong[n][:8]),
        )
        for n in order
    ]


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
