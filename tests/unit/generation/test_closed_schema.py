"""Objects of a schema are closed where they list their properties, and left where parts are put together."""

import pytest

from orrery.generation.closed_schema import closed

CITY = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SHUT = {**CITY, "additionalProperties": False}


def test_objects_are_closed_wherever_a_schema_stands() -> None:
    places = [
        lambda one: one,
        lambda one: {"type": "array", "items": one},
        lambda one: {"type": "object", "properties": {"city": one}, "additionalProperties": True},
        lambda one: {"anyOf": [one, {"type": "null"}]},
        lambda one: {"allOf": [one]},
        lambda one: {"$ref": "#/$defs/properties", "$defs": {"properties": one}},
        lambda one: {"prefixItems": [{"patternProperties": {"^a": one}}]},
    ]
    for place in places:
        assert closed(place(CITY)) == place(SHUT)


@pytest.mark.parametrize("kept", [
    {}, {"type": "object"}, {**CITY, "additionalProperties": True}, {**CITY, "additionalProperties": {}},
    {**CITY, "patternProperties": {"^x": {}}}, {**CITY, "required": ["name", "mayor"]}, {**CITY, "minProperties": 2},
    {"allOf": [CITY, {"properties": {"mayor": {}}}]}, {**CITY, "anyOf": [{"required": ["name"]}, {}]},
    {**CITY, "$ref": "#/$defs/a", "$defs": {"a": CITY}}, {**CITY, "if": {}}, {"not": CITY},
    {"const": CITY}, {"enum": [CITY]}, {"default": CITY},
])  # fmt: skip
def test_a_schema_that_speaks_of_other_properties_is_left_as_it_is(kept: dict[str, object]) -> None:
    assert closed(kept) == kept


def test_a_property_may_be_called_like_a_keyword() -> None:
    schema = {"type": "object", "properties": {"not": CITY, "allOf": {"type": "integer"}, "enum": CITY}}
    shut = {"type": "object", "properties": {"not": SHUT, "allOf": {"type": "integer"}, "enum": SHUT}}
    assert closed(schema) == {**shut, "additionalProperties": False}
