"""A recipe of word vectors: closed and checked settings of their own; importing it imports no torch.

Word vectors have no batches, optimizer or checkpoints: the algorithm is one pass of single steps over the text, and
a whole training takes minutes. So they share the verb, the overrides and the run folder with the other recipes, and
not the loop.
"""

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from orrery.recipes.config import ExpectSettings, RunName
from orrery.schema.numbers import AboveZero, Count, NotNegative, Positive, Seed
from orrery.schema.section import Section, kind_or

RATES = {"skip-gram": 0.025, "cbow": 0.075}
"""The first learning rate where none is given.

That of skip-gram is the C program's. CBOW's is three times as large, because its gradient carries the 1/n of the mean
of n context words, which the C program and gensim leave out (Irsoy et al. 2021): a step here is smaller by that n,
which is about 3 to 6 once frequent words are dropped. docs/word-vectors.md has what other rates give.
"""

MEASURES = ("step", "words", "train/loss", "loss", "tokens_per_second")
"""What each epoch's line of metrics holds."""


class WordDataSettings(Section):
    """Which text, where a sentence ends, and what a word is: runs of letters, or all between spaces."""

    train: str
    column: str = "text"
    invalid: Literal["error", "replace"] = "error"
    skip_bad: Count = 0
    sentences: Literal["lines", "paragraphs"] = "lines"
    words: Literal["letters", "spaces"] = "letters"
    lowercase: bool = True


class VocabularySettings(Section):
    """Which words: those seen ``min_count`` times; frequent ones are sampled down to ``sample`` of the text.

    ``phrases`` is how many passes join pairs of words into one, the first above ``threshold``.
    """

    min_count: Positive = 5
    sample: NotNegative = 1e-3
    phrases: Annotated[Count, Field(le=20)] = 0
    threshold: AboveZero = 100.0


class WordModelSettings(Section):
    """What is read: one word, which predicts a neighbour (skip-gram), or all words around the predicted one (cbow)."""

    kind: Literal["skip-gram", "cbow"] = "skip-gram"
    width: Positive = 100
    window: Positive = 5


class NegativeSettings(Section):
    """Negative sampling: the word against drawn ones, by their count to the ``power``."""

    kind: Literal["negative"] = "negative"
    negatives: Positive = 5
    power: Annotated[NotNegative, Field(le=10)] = 0.75


class HierarchicalSettings(Section):
    """Hierarchical softmax over a Huffman tree."""

    kind: Literal["hierarchical"] = "hierarchical"


class FullSettings(Section):
    """The full softmax, by the plain definition: for small texts."""

    kind: Literal["full"] = "full"


WordObjective = Annotated[
    Annotated[NegativeSettings, Tag("negative")]
    | Annotated[HierarchicalSettings, Tag("hierarchical")]
    | Annotated[FullSettings, Tag("full")],
    kind_or("negative", "hierarchical", "full"),
]


class WordTrainingSettings(Section):
    """How to learn: passes over the text, the first rate (by default that of the model's kind), threads.

    Any number of ``workers`` leaves the same bytes; ``hogwild`` lets them write without waiting for each other, which
    is faster and different each time.
    """

    epochs: Positive = 5
    rate: AboveZero | None = None
    final_rate: NotNegative = 0.0001
    workers: Positive = 1
    hogwild: bool = False


class WordVectorRecipe(Section):
    """One run, from text to word vectors."""

    kind: Literal["word2vec"]
    name: RunName
    seed: Seed = 1337
    data: WordDataSettings
    words: VocabularySettings = VocabularySettings()
    model: WordModelSettings = WordModelSettings()
    objective: WordObjective = NegativeSettings()
    training: WordTrainingSettings = WordTrainingSettings()
    expect: ExpectSettings | None = None

    @model_validator(mode="after")
    def _measured(self) -> "WordVectorRecipe":
        if self.expect is not None and self.expect.metric not in MEASURES:
            parts = {"metric": self.expect.metric[:100], "known": ", ".join(MEASURES)}
            raise PydanticCustomError("metric", "expect.metric {metric} is never measured here; known: {known}", parts)
        return self

    @property
    def rate(self) -> float:
        """The first learning rate."""
        return self.training.rate or RATES[self.model.kind]
