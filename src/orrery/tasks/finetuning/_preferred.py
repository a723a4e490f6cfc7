"""What the tasks share that learn from preferences: how rows are read, and how long they are."""

from abc import ABC
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orrery.tasks._task import Learned

if TYPE_CHECKING:
    from orrery.exchange.reading.read import Stored


class OnPreferences(Learned, ABC):
    """A task that learns from chosen and rejected replies."""

    source = "preferences"
    batches = "pairs"
    split_by = "prompt"

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data``: a tenth of the first prompts is held back, and a prompt too long is cut."""
        return {**super().data(train, val, columns), "long": "cut"}

    @classmethod
    def lengths(cls, source: Any, stored: "Stored", most: int) -> tuple[int, list[int]]:
        """Return how many rows there are, and how many ids the longer side of some has."""
        from orrery.tasks.finetuning._pairs import lengths

        return lengths(source, stored, most)
