"""What a request cost, in tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from orrery.generation.picture_writer import PictureRow
from orrery.generation.requests import Answering


class TokensDetails(BaseModel):
    """Which tokens of the prompt had been read before."""

    cached_tokens: int


class Usage(BaseModel):
    """What was read and written, in tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: TokensDetails


def places_of(prompt: Sequence[int]) -> int:
    """Return how many vectors a model reads of a prompt: its tokens, or the patches of a picture."""
    return prompt.places if isinstance(prompt, PictureRow) else len(prompt)


def usage_of(answers: Mapping[int, Answering], each: int) -> dict[str, Any]:
    """Return the object of a request's tokens.

    Args:
        answers: all of them, by their number.
        each: answers to one prompt, side by side; the prompt counts once.
    """
    firsts = [own for index, own in answers.items() if index % each == 0]
    read = sum(places_of(own.request.prompt) for own in firsts)
    output_tokens = sum(len(own.written) for own in answers.values())
    return {
        "prompt_tokens": read,
        "completion_tokens": output_tokens,
        "total_tokens": read + output_tokens,
        "prompt_tokens_details": {"cached_tokens": sum(own.reused for own in firsts)},
    }
