"""Which number of a prediction is asked about, beside its token."""

from typing import TypedDict


class AttributionRequest(TypedDict, total=False):
    """What narrows a question about a prediction.

    Attributes:
        against: another id, whose logit is subtracted; by default none.
        position: of the prediction, a negative one from the right; by default the last.
        measure: ``logit``, the default, or ``log_probability``, in nats.
    """

    against: int | None
    position: int
    measure: str
