"""What a reward is: a number for each answer, by a rule, by what its prompt's row says, or by a model."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from orrery.schema.numbers import Number
from orrery.schema.registry import Registry
from orrery.schema.section import Section

if TYPE_CHECKING:
    from orrery.data.rows.prompts import Answered

ANSWERS = ("answer", "target", "output", "completion", "response", "solution", "label", "ground_truth",
           "reference_answer", "final_answer")  # fmt: skip
"""Names of the column with the right answer, the likeliest first."""


class RewardSettings(Section):
    """What the section of any reward says: its ``weight`` in the sum, and what it is called in the metrics."""

    kind: str
    weight: Number = 1.0
    name: str | None = Field(default=None, pattern=r"^\w[\w.-]*$", max_length=100)

    @property
    def label(self) -> str:
        """What it is called."""
        return self.name or self.kind


class Reward(ABC):
    """A way to judge answers.

    One file each, ``rewards/NAME.py``; a program defines its own and makes it known with ``register``. The keywords of
    its constructor are the fields of its settings. What it needs is imported where it is used, so that a recipe is read
    without torch.

    Attributes:
        Settings: its section of a recipe; the default of ``kind`` is its name.
    """

    Settings: ClassVar[type[RewardSettings]]

    @classmethod
    def of(cls, settings: Section) -> "Reward":
        """Return the reward that settings describe."""
        own = [name for name in type(settings).model_fields if name not in RewardSettings.model_fields]
        return cls(**{name: getattr(settings, name) for name in own})

    @property
    def fingerprint(self) -> str:
        """What a resumed run must find again beside the settings, such as a model's weights: nothing."""
        return ""

    @abstractmethod
    def score(self, answers: "Sequence[Answered]") -> Sequence[float]:
        """Return what each answer is worth.

        Raises:
            DataError: the row of a prompt lacks what an answer is compared with.
        """


REWARDS: Registry[Any] = Registry("reward", "orrery.rewards")
register = REWARDS.register
