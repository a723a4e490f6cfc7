"""A shorter text that says the same: ``[{"summary_text": ...}]``."""

from orrery.tasks.pipelines._pipeline import register
from orrery.tasks.pipelines._writing import FromSource


@register
class Summarization(FromSource):
    """What a model of summaries writes for a text.

    Transformers 5 has no such task any more; the answers are those of transformers 4.
    """

    kind = "summarization"
    returns = "summary"
