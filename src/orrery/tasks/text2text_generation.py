"""What an encoder-decoder writes for a text: ``[{"generated_text": ...}]``."""

from orrery.tasks._task import register
from orrery.tasks.pipelines._writing import FromSource


@register
class Text2TextGeneration(FromSource):
    """Any text to text.

    Transformers 5 has no such task any more; the answers are those of transformers 4.
    """

    kind = "text2text_generation"
    returns = "generated"
