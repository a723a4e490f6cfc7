"""How a trained model writes where its caller says nothing: the section ``generation`` of a recipe."""

from typing import Any

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orrery.schema.generation import GenerationKeys


class GenerationSettings(GenerationKeys):
    """Keys of ``generation_config.json`` that are written beside the model: verbs, pipelines, transformers follow them.

    So does the evaluation after ``orrery finetune``, which draws nothing, whatever ``do_sample`` says.
    """

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
