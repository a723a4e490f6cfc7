"""The flags of beam searches, over one text or many sentences."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

from cyclopts import Parameter

from orrery.cli.numbers import COUNT
from orrery.cli.writing_options import with_flags
from orrery.errors import UsageError
from orrery.schema.writing import BEAMS as USUAL_BEAMS
from orrery.schema.writing import is_searched

_AS_FILES = "what the model's files say, else"


def given(flags: Any) -> dict[str, Any]:
    """Return the values of a class of flags, by name."""
    return {one.name: getattr(flags, one.name) for one in fields(flags)}


@with_flags(
    "num_beams", "length_penalty", "max_new_tokens", "beyond_source", "coverage_penalty",
    num_beams=f"{_AS_FILES} {USUAL_BEAMS}", length_penalty=f"{_AS_FILES} 0.6", max_new_tokens=128, coverage_penalty=0.0,
)  # fmt: skip
@dataclass(frozen=True)
class TranslationSearch:
    """How translations are searched for."""

    batch_size: Annotated[int, COUNT, Parameter(help="Sentences translated at once.")] = 64


BEAMS = TranslationSearch()
"""What is used unless told otherwise."""


@with_flags(
    "num_beams", "length_penalty", "num_beam_groups", "diversity_penalty", "coverage_penalty", "answers",
    num_beams=1, length_penalty=0.6, num_beam_groups=1, diversity_penalty=0.5, coverage_penalty=0.0, answers=1,
)  # fmt: skip
@dataclass(frozen=True)
class BeamOptions:
    """How answers to one text are searched for."""

    @property
    def searches(self) -> bool:
        """Whether several beams are followed."""
        return is_searched(given(self))

    def refuse_without_beams(self) -> None:
        """Refuse what means nothing for one beam.

        Raises:
            UsageError: several answers, groups or a ranking were asked for.
        """
        flags = given(self)
        if not self.searches and (flags["answers"] > 1 or flags["num_beam_groups"] > 1 or flags["coverage_penalty"]):
            raise UsageError("one beam has one answer, one group and no ranking", "add --num-beams 4")


ONE = BeamOptions()
"""No search."""


@with_flags(
    "max_new_tokens", "min_new_tokens", "num_beams", "length_penalty", "no_repeat_ngram_size",
    max_new_tokens=f"{_AS_FILES} 256", min_new_tokens=f"{_AS_FILES} none", num_beams=f"{_AS_FILES} {USUAL_BEAMS}",
    length_penalty=f"{_AS_FILES} 1", no_repeat_ngram_size="what the model's files say",
)  # fmt: skip
@dataclass(frozen=True)
class Summaries:
    """How summaries are searched for; the penalty of lengths is that of Hugging Face's files."""


SUMMARIES = Summaries()
"""What is used unless told otherwise."""


@with_flags(
    "max_new_tokens", "min_new_tokens", "num_beams", "length_penalty", "no_repeat_ngram_size",
    max_new_tokens=f"{_AS_FILES} 256", min_new_tokens=f"{_AS_FILES} none", num_beams=f"{_AS_FILES} 1",
    length_penalty=f"{_AS_FILES} 1", no_repeat_ngram_size="what the model's files say",
)  # fmt: skip
@dataclass(frozen=True)
class Captions:
    """How captions are searched for; the penalty of lengths is that of Hugging Face's files."""


CAPTIONS = Captions()
"""What is used unless told otherwise."""


@with_flags("num_beams", "length_penalty", num_beams=3, length_penalty=0.6)
@dataclass(frozen=True)
class Ways:
    """Which ways the beams of a tree follow at each depth."""


WAYS = Ways()
"""What is used unless told otherwise."""
