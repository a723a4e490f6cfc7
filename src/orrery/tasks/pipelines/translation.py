"""A text in another language: ``[{"translation_text": ...}]``."""

from orrery.tasks.pipelines._pipeline import register
from orrery.tasks.pipelines._writing import FromSource


@register
class Translation(FromSource):
    """What a model of translations writes for a text.

    Transformers 5 has no such task any more; the answers are those of transformers 4.

    ``translation_en_to_de`` takes what config.json says of this pair (``task_specific_params``), as T5 has it.
    """

    kind = "translation"
    returns = "translation"
