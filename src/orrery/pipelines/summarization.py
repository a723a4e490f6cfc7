"""A shorter text that says the same: ``[{"summary_text": ...}]``."""

from orrery.pipelines._pipeline import register
from orrery.pipelines._writing import FromSource


@register
class Summarization(FromSource):
    """What a model of summaries writes for a text.

    Transformers 5 has no such task any more; the answers are those of transformers 4.
    """

    kind = "summarization"
    returns = "summary"
