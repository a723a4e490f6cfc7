"""What trains and what is held back, by rules that no shuffle and no machine can change."""

import hashlib
from collections.abc import Iterable

from orrery.data.corpora import Document


def held_back(name: str, every: int = 20) -> bool:
    """Whether a document of this name validates: the sha256, as a number, is a multiple of ``every``."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()) % every == 0


def split_documents(documents: Iterable[Document], every: int = 20) -> tuple[list[Document], list[Document]]:
    """Return (train, validation): whole documents, about one in ``every`` held back by its name."""
    train: list[Document] = []
    validation: list[Document] = []
    for document in documents:
        (validation if held_back(document.name, every) else train).append(document)
    return train, validation


def split_tail(text: str, fraction: float = 0.1) -> tuple[str, str]:
    """Return (train, validation) of one text: the last ``fraction`` of its characters validates.

    Tiny Shakespeare: 1,003,854 and 111,540 characters.
    """
    cut = tail_start(len(text), fraction)
    return text[:cut], text[cut:]


def tail_start(length: int, fraction: float = 0.1) -> int:
    """Return the character at which the last ``fraction`` of a text of ``length`` characters begins."""
    return int(length * (1 - fraction))
