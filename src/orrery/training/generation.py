"""How a trained model writes where its caller says nothing: the section ``generation`` of a recipe."""

from typing import Any

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orrery.schema.numbers import AboveZero, Count, NotNegative, Positive, Share
from orrery.schema.section import Section


class GenerationSettings(Section):
    """Keys of ``generation_config.json``, with the meaning that transformers gives them; what is left out is as usual.

    They are written beside the model: its evaluation, the verbs and the pipelines follow them, as transformers does.
    """

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

    @property
    def said(self) -> dict[str, Any]:
        """The keys that have a value."""
        return self.model_dump(exclude_none=True)

    @model_validator(mode="after")
    def _one_way(self) -> "GenerationSettings":
        if (self.num_beams or 1) > 1 and (self.do_sample or self.repetition_penalty not in (None, 1)):
            message = "generation.num_beams above 1 goes with neither do_sample nor repetition_penalty"
            raise PydanticCustomError("generation", message)
        if (self.min_new_tokens or 0) > (self.max_new_tokens or float("inf")):
            raise PydanticCustomError("generation", "generation.min_new_tokens is more than max_new_tokens")
        return self
