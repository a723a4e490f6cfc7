"""How a trained model writes where its caller says nothing: the section ``generation`` of a recipe."""

from typing import Any

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orrery.schema.section import Section
from orrery.schema.writing import at, fault_of
from orrery.schema.writing_fields import with_settings


@with_settings(*at("recipe"))
class GenerationSettings(Section):
    """Keys of ``generation_config.json`` that are written beside the model: verbs, pipelines, transformers follow them.

    So does the evaluation after ``orrery finetune``, which draws nothing, whatever ``do_sample`` says.
    """

    @property
    def said(self) -> dict[str, Any]:
        """The keys that have a value."""
        return self.model_dump(exclude_none=True)

    @model_validator(mode="after")
    def _one_way(self) -> "GenerationSettings":
        if fault := fault_of(self.said):
            raise PydanticCustomError("generation", "{fault}", {"fault": f"generation.{fault}"})
        return self
