"""The schema of a forced call: a tool's own references point to the tool's own parts, wherever it stands."""

import json

import pytest

from orrery.serving.call_schema import call_schema
from serving_toy import chat_model, post, running

APPLE = {"enum": ["apple"]}


def closed(**fields):
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


TOOLS = {
    "$defs": {**closed(a={"$ref": "#/$defs/Item"}), "$defs": {"Item": APPLE}},
    "definitions": {**closed(a={"$ref": "#/definitions/Item"}), "definitions": {"Item": APPLE}},
    "a property": closed(b=APPLE, a={"$ref": "#/properties/b"}),
    "in a list": closed(
        a={"type": "array", "items": {"$ref": "#/properties/b"}, "minItems": 1, "maxItems": 1}, b=APPLE
    ),
    "in anyOf": {**closed(a={"anyOf": [{"$ref": "#/$defs/Item"}]}), "$defs": {"Item": APPLE}},
    "of a reference": {**closed(a={"$ref": "#/$defs/One"}), "$defs": {"One": {"$ref": "#/$defs/Item"}, "Item": APPLE}},
    "a name like a keyword": {**closed(default={"$ref": "#/$defs/enum"}), "$defs": {"enum": APPLE}},
    "a property called $ref": closed(**{"$ref": APPLE, "a": {"$ref": "#/properties/$ref"}}),
    "data like a reference": closed(a={"enum": [{"$ref": "#/$defs/none"}]}),
    "the root, at most twice": closed(a=APPLE) | {"properties": {"a": APPLE, "more": {"$ref": "#"}}},
    "nothing": None,
    "an empty object": {},
}


def refers(value):
    """Yield every reference of a schema."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str):
                yield inner
            elif key != "enum":
                yield from refers(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from refers(inner)


def at(schema, pointer):
    for part in pointer.removeprefix("#").split("/")[1:]:
        schema = schema[int(part)] if isinstance(schema, list) else schema[part]
    return schema


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("others", [(), ("first",), ("first", "second")])
def test_every_reference_is_found_where_the_tool_stands(kind, others):
    functions = {**{name: closed(b={"const": name}) for name in others}, "f": TOOLS[kind]}
    whole = call_schema(functions)
    for reference, moved in zip(refers(TOOLS[kind]), refers(whole), strict=True):
        meant, found = at(TOOLS[kind], reference), at(whole, moved)
        assert found.keys() == meant.keys()
        assert found == meant or list(refers(meant))  # one that refers on was moved itself


def test_a_part_with_a_name_of_its_own_is_its_own_root():
    own = {"$id": "https://example.org/item", "$defs": {"x": APPLE}, "$ref": "#/$defs/x"}
    moved = call_schema({"f": closed(a=own, b={"$ref": "#here"})})["properties"]["arguments"]
    assert moved["properties"] == {"a": own, "b": {"$ref": "#here"}}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model", context=1024)) as found:
        yield found


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("several", [False, True])
def test_a_forced_call_keeps_to_the_schema(toy, kind, several):
    tools = [{"type": "function", "function": {"name": "f", "parameters": TOOLS[kind]}}]
    if several:
        tools.append({"type": "function", "function": {"name": "g", "parameters": closed(b={"const": 1})}})
    body = {"messages": [{"role": "user", "content": "the cat"}], "tools": tools, "tool_choice": "required"}
    status, found = post(toy, {**body, "max_tokens": 100, "temperature": 1, "seed": 3}, "/v1/chat/completions")
    assert status == 200, found
    (choice,) = found["choices"]
    for call in choice["message"].get("tool_calls", ()):
        given = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "f" and TOOLS[kind]:
            assert set(given) <= set(TOOLS[kind]["properties"])
