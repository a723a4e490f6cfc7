"""What an answer is worth, one file each; `register` makes known what a program defines. This imports no torch."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.rewards._reward import REWARDS, Reward, RewardSettings, register

__all__ = ["REWARDS", "Reward", "RewardSettings", "register"]


__getattr__ = lazily(__name__, {"_reward": __all__})
