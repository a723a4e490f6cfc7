"""The flags of a beam search over many sentences, which several verbs share."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from orrery.cli.numbers import COUNT, NUMBER

_BEAMS = "Hypotheses followed a sentence; 1 is greedy; by default what the model's files say, else 4."
_LENGTH_PENALTY = "0 favours short answers, the Transformer's paper used 0.6; by default what the files say, else 0.6."
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


BEAMS = Search()
"""What is used unless told otherwise."""
