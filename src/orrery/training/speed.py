"""How fast a run could be: what a token costs, and what the machine can do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Speed:
    """What a token costs in floating-point operations, and what one process can do a second: the MFU."""

    operations_per_token: float
    operations_per_second: float

    @property
    def tokens_per_second(self) -> float:
        """The tokens that one process could learn a second at its peak."""
        return self.operations_per_second / self.operations_per_token
