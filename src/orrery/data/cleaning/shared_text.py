"""What a corpus of any size has on both sides of its split: documents and long lines, compared by digest.

Of the held-back side at most `MOST` digests of each are in memory: where there are more, those below a limit, which
are a sample that does not depend on the order, and stand on the training side too or not as all would.
"""

import hashlib
from collections.abc import Iterable, Iterator

from orrery.data.cleaning.leaks import long_lines, notes_on_shares
from orrery.data.shards.encoding import Assigned
from orrery.data.shards.index import SharedText, Split

MOST = 1 << 20
"""Digests that are compared at most, of documents and of lines each: about 100 MB."""
_BYTES = 8


class _Sample:
    """Different digests, at most `MOST` of them: when they are more, the smaller half stays."""

    def __init__(self) -> None:
        self.kept: dict[int, bool] = {}
        self.limit = 1 << 8 * _BYTES

    def add(self, digest: int) -> None:
        if digest >= self.limit:
            return
        self.kept[digest] = False
        while len(self.kept) > MOST:
            self.limit //= 2
            self.kept = {each: False for each in self.kept if each < self.limit}

    def meet(self, digest: int) -> bool:
        """Mark a digest of the other side; return whether it is here and was not met before."""
        if self.kept.get(digest, True):
            return False
        self.kept[digest] = True
        return True

    @property
    def met(self) -> int:
        return sum(self.kept.values())


def shared_text(held_back: Iterable[Assigned], train: Iterable[Assigned]) -> SharedText:
    """Return what stands on both sides of a source that is read twice; blocks of the other side are passed over."""
    documents, lines, first = _Sample(), _Sample(), ""
    for _, digest, whole in _pieces(held_back, "validation"):
        (documents if whole else lines).add(digest)
    for name, digest, whole in _pieces(train, "train"):
        if (documents if whole else lines).meet(digest) and whole:
            first = first or name
    return SharedText(
        documents=documents.met,
        of_documents=len(documents.kept),
        first=first,
        lines=lines.met,
        of_lines=len(lines.kept),
    )


def notes_on_shards(shared: SharedText | None, again: str) -> list[str]:
    """Say what stands on both sides of prepared shards; ``again`` is the command that finds out where nobody did."""
    if shared is None:
        return [f"whether a text is trained on and held back too is not recorded in these shards; {again}"]
    return notes_on_shares((shared.documents, shared.of_documents, shared.first), (shared.lines, shared.of_lines))


def _pieces(blocks: Iterable[Assigned], side: Split) -> Iterator[tuple[str, int, bool]]:
    """Yield the name of each document of one side that is not empty, a digest, and whether it is of the whole.

    A line may lie in several blocks, so the last of a block waits for the next.
    """
    digest, held, size = hashlib.blake2b(digest_size=_BYTES), "", 0
    for split, block in blocks:
        if split != side:
            continue
        digest.update(block.text.encode("utf-8", "surrogatepass"))
        size += len(block.text)
        text = held + block.text
        end = len(text) if block.last else text.rfind("\n") + 1
        for line in long_lines(text[:end]):
            yield block.document, _digest(line), False
        held = text[end:]
        if block.last:
            if size:
                yield block.document, int.from_bytes(digest.digest(), "big"), True
            digest, held, size = hashlib.blake2b(digest_size=_BYTES), "", 0


def _digest(text: str) -> int:
    hashed = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_BYTES)
    return int.from_bytes(hashed.digest(), "big")
