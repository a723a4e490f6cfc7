"""A head on every row: classes, rewards."""

from typing import TYPE_CHECKING, Literal

from orrery.models.heads import Head, HeadSettings, register
from orrery.models.heads._head import counted
from orrery.schema.numbers import Positive

if TYPE_CHECKING:
    from orrery.nn.spec import ModuleSpec


class SequenceSettings(HeadSettings):
    """``labels`` scores for every row, from its first real token, its last, or the mean of all (``pool``).

    An objective that learns labels fills in how many they are and their names.
    """

    kind: Literal["sequence"] = "sequence"
    labels: Positive | None = None
    names: tuple[str, ...] = ()
    problem: Literal["", "single_label_classification", "multi_label_classification", "regression"] = ""
    pool: Literal["first", "last", "mean"] = "last"


@register
class Sequence(Head):
    """``W pool(x) + b`` for every row."""

    Settings = SequenceSettings

    @staticmethod
    def spec(settings: SequenceSettings) -> "ModuleSpec":
        """Return a linear head over the pooled stream."""
        from orrery.nn.heads import First, Last, Mean, Pooler, SequenceHead

        pools = {"first": First(), "last": Last(), "mean": Mean()}
        return SequenceHead.Spec(
            labels=counted(settings.labels, settings.kind),
            pooler=Pooler.Spec(pool=pools[settings.pool]),
            names=settings.names,
            problem=settings.problem,
        )
