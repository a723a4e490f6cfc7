"""The numbers of recipes: each kind says its range, and true or false stands for none of them."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

MOST = 2**31 - 1
"""No count of a recipe is larger: what has so many parts cannot be built, and what takes so many steps never ends."""
SEEDS = 2**63
"""Seeds are below it: torch's generators take 64 bits with a sign."""


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("number", "{word} is no number", {"word": str(value).lower()})
    return value


NoTruth = BeforeValidator(_no_truth)
Positive = Annotated[int, Field(ge=1, le=MOST), NoTruth]
Several = Annotated[int, Field(ge=2, le=MOST), NoTruth]
Count = Annotated[int, Field(ge=0, le=MOST), NoTruth]
Tokens = Annotated[int, Field(ge=1, lt=SEEDS), NoTruth]
Seed = Annotated[int, Field(ge=0, lt=SEEDS), NoTruth]
Number = Annotated[float, NoTruth]
Fraction = Annotated[float, Field(ge=0, lt=1), NoTruth]
Share = Annotated[float, Field(ge=0, le=1), NoTruth]
Part = Annotated[float, Field(gt=0, lt=1), NoTruth]
Factor = Annotated[float, Field(gt=0, le=1), NoTruth]
AboveZero = Annotated[float, Field(gt=0), NoTruth]
NotNegative = Annotated[float, Field(ge=0), NoTruth]
