"""What the tasks that write share: pairs of texts, and the answers to the sources held back."""

from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.tasks._task import Learned
from orrery.tasks.pipelines._make import pipeline

if TYPE_CHECKING:
    from orrery.data.records import Pair
    from orrery.language_model.model import LanguageModel

BATCH = 32
"""Sources answered at once."""


class WritesFromSource(Learned, ABC):
    """A text that is written from another one: an encoder-decoder learns it from pairs."""

    source = "pairs"
    objective = "seq2seq"
    columns = ("source", "target")
    batches = "pairs"
    cuts: ClassVar[bool] = False

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data``; without pairs to validate on a tenth of them is held back."""
        held_back = {"split": {"every": 10, "by": cls.split_by}} if val is None else {"val": val}
        long = {"long": "cut"} if cls.cuts else {}
        return {"kind": cls.source, "pairs": train, **held_back, "columns": dict(columns), **long}

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the sources, which rows are as long as."""
        return ((pair.source,) for pair in source.train)


def answers(lm: "LanguageModel", pairs: "Sequence[Pair]", longest: int, done: Any = None) -> list[str]:
    """Return what the model writes for each source, cut where it is longer than the context.

    Four beams and ``longest`` tokens are what holds where the model's generation_config.json says nothing.
    """
    ask = pipeline("text2text-generation", lm, batch_size=BATCH)
    limit = {} if "max_new_tokens" in lm.writing else {"max_new_tokens": longest}
    settings: dict[str, Any] = {"truncation": True, "do_sample": False, **limit}
    written_texts = ask([pair.source for pair in pairs], done=done, **settings)
    return [each[0]["generated_text"] if isinstance(each, list) else each["generated_text"] for each in written_texts]


def references(pairs: "Sequence[Pair]") -> list[list[str]]:
    """Return the right answers as lists with one for each pair; a pair with fewer of them has its first again."""
    most = max(len(pair.references) for pair in pairs)
    return [[pair.target for pair in pairs]] + [
        [pair.references[n] if n < len(pair.references) else pair.target for pair in pairs] for n in range(most)
    ]


def longest_target(lm: "LanguageModel", pairs: "Sequence[Pair]") -> int:
    """Return how many tokens an answer may have: a half more than the longest target of training, with its end."""
    tokens = max(len(ids) for ids in lm.tokenizer.encode_batch([pair.target for pair in pairs]))
    return min(lm.context - 1, 3 * tokens // 2 + 1)
