"""The flags of beam searches, over one text or many sentences."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from orrery.cli.numbers import COUNT, NOT_NEGATIVE, NUMBER
from orrery.errors import UsageError

_BEAMS = "Hypotheses followed a sentence; 1 is greedy; by default what the model's files say, else 4."
_LENGTH_PENALTY = "0 favours short answers, the Transformer's paper used 0.6; by default what the files say, else 0.6."
_COVERAGE = "How much a translation that leaves a part of its source out ranks lower; Wu et al. 2016 used 0.2."
_BEYOND = "The most tokens of an answer beyond those of its source, where that is fewer; the paper had 50."


@Parameter(name="*")
@dataclass(frozen=True)
class Search:
    """How translations are searched for."""

    num_beams: Annotated[int | None, COUNT, Parameter(help=_BEAMS)] = None
    length_penalty: Annotated[float | None, NUMBER, Parameter(help=_LENGTH_PENALTY)] = None
    max_new_tokens: Annotated[int, COUNT, Parameter(help="The most tokens of an answer.")] = 128
    batch_size: Annotated[int, COUNT, Parameter(help="Sentences translated at once.")] = 64
    beyond_source: Annotated[int | None, COUNT, Parameter(help=_BEYOND)] = None
    coverage_penalty: Annotated[float, NOT_NEGATIVE, Parameter(help=_COVERAGE)] = 0.0


BEAMS = Search()
"""What is used unless told otherwise."""


_ONE = "Above 1 searches for the answer of the greatest score instead of drawing tokens."
_GROUPS = "Above 1, groups of beams that avoid each other's choices."
_DIVERSITY = "What a choice of an earlier group costs a later one, in nats."
_LENGTH = "Of beams; 0 favours short answers, the Transformer's paper used 0.6."
_OF_ONE = "Of encoder-decoders: ranks answers lower that leave a part of the source out; Wu et al. 2016 used 0.2."


@Parameter(name="*")
@dataclass(frozen=True)
class Beams:
    """How answers to one text are searched for."""

    num_beams: Annotated[int, COUNT, Parameter(help=_ONE)] = 1
    length_penalty: Annotated[float, NUMBER, Parameter(help=_LENGTH)] = 0.6
    num_beam_groups: Annotated[int, COUNT, Parameter(help=_GROUPS)] = 1
    diversity_penalty: Annotated[float, NOT_NEGATIVE, Parameter(help=_DIVERSITY)] = 0.5
    coverage_penalty: Annotated[float, NOT_NEGATIVE, Parameter(help=_OF_ONE)] = 0.0
    answers: Annotated[int, COUNT, Parameter(help="How many answers are shown, the best first.")] = 1

    def refuse_without_beams(self) -> None:
        """Refuse what means nothing for one beam.

        Raises:
            UsageError: several answers, groups or a ranking were asked for.
        """
        if self.num_beams == 1 and (self.answers > 1 or self.num_beam_groups > 1 or self.coverage_penalty):
            raise UsageError("one beam has one answer, one group and no ranking", "add --num-beams 4")


ONE = Beams()
"""No search."""
