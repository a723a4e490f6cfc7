"""Token shards: ids that stay on disk, so that a corpus may be larger than the memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from orrery.data.sources import BatchRequest, Examples, HeldBack, Source, SourceSettings, register

NAME = "shards"
"""What the shards are called in tables."""
AGAIN = "the `orrery data prepare` that made them, given again, compares both sides"


class ShardSettings(SourceSettings):
    """A folder of token shards that ``orrery data prepare`` wrote; the tokenizer is the file that made them."""

    kind: Literal["shards"] = "shards"
    shards: Path

    @property
    def described(self) -> str:
        """The folder's name."""
        return self.shards.name

    @property
    def holds_back(self) -> bool:
        """Shards may have a part for validation."""
        return True


@register
class ShardSource(Source):
    """Random crops of the shards; held back are windows over those for validation."""

    Settings = ShardSettings
    gives = ("ids", "targets")
    batch_kinds = ("crops",)
    needs_tokenizer = counts_bytes = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def read(cls, settings: ShardSettings) -> "ShardSource":
        """Return the folder; it is opened with the tokenizer."""
        return cls(settings.shards)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the text that the shards were made of."""
        from orrery.data.shards.index import finished

        return finished(self.folder).source

    def remarks(self) -> Sequence[str]:
        """Say what the preparation found on both sides: documents, long lines."""
        from orrery.data.cleaning.shared_text import notes_on_shards
        from orrery.data.shards.index import finished

        return notes_on_shards(finished(self.folder).shared, AGAIN)

    def examples(self, request: BatchRequest) -> Examples:
        """Open the shards.

        Raises:
            DataError: the folder is unfinished, or another tokenizer made it.
        """
        from orrery.data.batches.token_windows import CropBatches
        from orrery.data.shards.index import ShardSet

        shards = ShardSet.open(self.folder, "train", request.required_tokenizer.fingerprint)
        train = CropBatches(shards, request.length, request.size, request.seed)
        return Examples(train, self._windows(request), {NAME: len(shards)}, request.size * request.length)

    def _windows(self, request: BatchRequest) -> HeldBack | None:
        """Return windows over the validation shards, or None where the folder has none."""
        from orrery.data.batches.token_windows import SequentialWindows
        from orrery.data.shards.index import ShardSet, finished

        shards = ShardSet.open(self.folder, "validation", request.required_tokenizer.fingerprint)
        if len(shards) < 2:
            return None
        windows = SequentialWindows(shards, request.length, request.size)
        size = finished(self.folder).splits["validation"].bytes
        return HeldBack(windows, request.limited(len(windows)), size / (len(shards) - 1))
