"""What the stores of keys and values share: they keep no state of a recurrence."""

from abc import ABC

from orrery.errors import UsageError
from orrery.nn.cache.contract import Place, State
from orrery.nn.cache.store import Store


class KeysOnly(Store, ABC):
    """A store of keys and values, which refuses the state of a recurrence by name."""

    def load_state(self, mask: str, place: Place) -> State | None:
        """Refuse: keys and values are kept here.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"the mask {mask!r} keeps keys, not the state of a recurrence", "give the recurrence Past()")

    def store_state(self, mask: str, place: Place, state: State) -> None:
        """Refuse as ``load_state`` does.

        Raises:
            UsageError: always.
        """
        self.load_state(mask, place)
