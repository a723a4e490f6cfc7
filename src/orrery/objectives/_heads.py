"""The head that an objective trains, as it asks for it: the model's own, or a new one."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class NeededHead:
    """A head that a model gets where it has none of this name.

    Attributes:
        name: what it is called.
        kind: one answer a row (``sequence``), one a token (``token``), the two ends of an answer (``span``); of
            pictures one a pixel (``pixel``), or things with their boxes (``boxes``).
        labels: how many numbers it gives.
        names: what they are called, where they are labels.
        problem: of a row, what transformers calls the ``problem_type``.
    """

    name: str
    kind: Literal["sequence", "token", "span", "pixel", "boxes"]
    labels: int
    names: tuple[str, ...] = ()
    problem: str = ""
