"""In which order to read: subjects with what they need, one a week for a term, two a day for a week, one evening."""

from collections.abc import Mapping
from dataclasses import dataclass

from orrery_course.course._item import Item, decks


@dataclass(frozen=True)
class Subject:
    """What belongs together: the subjects that come before, and items as ``S0 one-hot``, in the order of reading."""

    name: str
    needs: tuple[str, ...]
    items: tuple[str, ...]

    @property
    def found(self) -> list[Item]:
        """The items."""
        return [_item(name) for name in self.items]


def _named(deck: str, names: str) -> tuple[str, ...]:
    return tuple(f"{deck} {name}" for name in names.split())


SUBJECTS = (
    Subject("Words as vectors", (), (
        *_named("S0", "one-hot cbow"), *_named("S4", "retrieval dense skip-gram negative-sampling hierarchical"),
        *_named("S4", "preprocessing embeddings"),
    )),
    Subject("Tokens and batches", (), (
        *_named("S3", "words characters subwords learned-pieces"), *_named("S1", "bpe-table rows"),
        *_named("S3", "padding batches"),
    )),
    Subject("Recurrences", ("Words as vectors",), (
        *_named("S4", "rnn hello lstm"), "S3 rnn-lm", *_named("S4", "fixed-context distance gradients bottleneck"),
    )),
    Subject("Attention between two texts", ("Recurrences",), (
        *_named("S2", "context heat-map kinds-of-attention"), "S4 by-length",
    )),
    Subject("Self-attention", ("Words as vectors",), (
        *_named("S0", "self-attention parameters multi-head"),
        *_named("S1", "third-value soft-dictionary all-at-once mask"),
        *_named("S3", "swap softmax-and-mask heads-in-matrices"), *_named("S4", "columns library"),
    )),
    Subject("Positions", ("Self-attention",), (
        "S0 positions", "S1 position-table", "S2 sinusoids", "S4 positions",
    )),
    Subject("The block", ("Self-attention",), (
        *_named("S0", "layer-norm feed-forward block"), *_named("S1", "residual-stream chains unembedding"),
        "S3 residual", "S4 figure-1",
    )),
    Subject("Learning the next word", ("The block", "Positions", "Tokens and batches"), (
        "S0 next-word", *_named("S1", "noam instability automaton"),
    )),
    Subject("Encoders and decoders", ("Learning the next word", "Attention between two texts"), (
        *_named("S2", "original three-uses interpretability bert next-sentence"),
        *_named("S4", "encoder-decoders shared apple pronoun"),
    )),
    Subject("Families", ("Encoders and decoders",), (
        *_named("S2", "llama deepseek"), *_named("S4", "deberta x-bert decoders"),
    )),
    Subject("Sizes and costs", ("Learning the next word",), (
        "S0 sizes", "S1 quadratic", *_named("S3", "llms gpts gpt3-sizes compute growth mixture"),
        *_named("S4", "weights versus"),
    )),
    Subject("Writing", ("Learning the next word",), (*_named("S3", "greedy sampling cache"), "S4 cloze")),
    Subject("Tasks and pictures", ("Encoders and decoders",), (
        "S2 pipeline", *_named("S4", "tasks captions"), *_named("S3", "pretraining corpora benchmarks"),
    )),
    Subject("After pre-training, after attention", ("Writing", "Tasks and pictures"), (
        "S3 chatgpt", "S0 rlhf", "S4 progress",
    )),
)  # fmt: skip
"""Every item stands in one of them."""

EVENING = (
    "S0 one-hot", "S0 self-attention", "S3 swap", "S1 mask", "S0 block", "S0 next-word", "S3 subwords", "S3 greedy",
    "S3 cache", "S4 weights",
)  # fmt: skip
"""Ten items that show how a language model comes from words."""
DAYS = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13))
"""The subjects of each day of a week."""


def levels() -> Mapping[str, int]:
    """Return how many subjects stand one behind the other before each."""
    found: dict[str, int] = {}
    for subject in SUBJECTS:
        found[subject.name] = max((found[name] + 1 for name in subject.needs), default=0)
    return found


def _item(name: str) -> Item:
    deck, _, own = name.partition(" ")
    return next(one for one in decks()[deck].items if one.name == own)
