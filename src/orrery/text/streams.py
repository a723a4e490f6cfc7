"""Texts that are encoded part by part, cut anywhere."""

from abc import ABC, abstractmethod


class EncodingStream(ABC):
    """The encoding of one text: the ids of its parts and of its end, joined, are those of the whole text."""

    @abstractmethod
    def push(self, text: str) -> list[int]:
        """Take more of the text; return the ids that nothing later can change."""

    @abstractmethod
    def finish(self) -> list[int]:
        """Return the ids that were still open at the end of the text."""
