"""How a model writes, as far as recipes and pipelines both say it: keys of ``generation_config.json``."""

from abc import ABC

from orrery.schema.numbers import AboveZero, Count, NotNegative, Positive, Share
from orrery.schema.section import Section


class GenerationKeys(Section, ABC):
    """Keys with the meaning that transformers gives them; one that is left out is as the model's files say."""

    num_beams: Positive | None = None
    length_penalty: NotNegative | None = None
    max_new_tokens: Positive | None = None
    min_new_tokens: Count | None = None
    no_repeat_ngram_size: Count | None = None
    repetition_penalty: AboveZero | None = None
    do_sample: bool | None = None
    temperature: NotNegative | None = None
    top_k: Count | None = None
    top_p: Share | None = None
