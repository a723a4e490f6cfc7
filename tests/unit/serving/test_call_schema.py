"""The schema of a forced call: a tool's own references point to the tool's own parts, wherever it stands."""

import json

import pytest

from orrery.errors import UsageError
from orrery.generation.form_limits import check_schema
from orrery.generation.grammar import Form
from orrery.serving.call_schema import call_schema
from orrery.serving.schema.chat import MOST_TOOLS
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
        meant, schema = at(TOOLS[kind], reference), at(whole, moved)
        assert schema.keys() == meant.keys()
        assert schema == meant or list(refers(meant))  # one that refers on was moved itself


def test_a_part_with_a_name_of_its_own_is_its_own_root():
    own = {"$id": "https://example.org/item", "$defs": {"x": APPLE}, "$ref": "#/$defs/x"}
    moved = call_schema({"f": closed(a=own, b={"$ref": "#here"})})["properties"]["arguments"]
    assert moved["properties"] == {"a": own, "b": {"$ref": "#here"}}


def rich(number):
    """Return the parameters of a function as clients write them."""
    unit = {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "How degrees are counted. " * 10}
    days = {"type": "integer", "minimum": 1, "maximum": 14, "default": number, "title": "Days"}
    tags = {"type": "array", "items": {"$ref": "#/$defs/Tag"}, "maxItems": 5}
    options = {"anyOf": [{"type": "object", "properties": {"a": {"type": "number"}}}, {"type": "null"}]}
    fields = {"city": {"type": "string"}, "unit": unit, "days": days, "tags": tags, "options": options}
    return {**closed(**fields), "$defs": {"Tag": {"type": "string", "examples": ["old"]}}, "title": "Asked"}


def test_what_only_describes_is_left_to_the_prompt_and_names_are_kept():
    named = closed(description=APPLE, title={"type": "string", "title": "Title"}, default={"const": {"title": "x"}})
    arguments = call_schema({"f": {**named, "description": "What it does."}})["properties"]["arguments"]
    assert arguments == closed(description=APPLE, title={"type": "string"}, default={"const": {"title": "x"}})


@pytest.mark.parametrize("kind", ["rich", *TOOLS])
def test_as_many_tools_as_a_request_may_have_are_one_form(kind):
    parameters = rich(3) if kind == "rich" else TOOLS[kind]
    schema = call_schema({f"tool_{number}": parameters for number in range(MOST_TOOLS)})
    assert len(schema["anyOf"]) == MOST_TOOLS == 128
    assert Form(schema=schema).lark(False)


@pytest.mark.parametrize(
    "pointing", [{"$ref": "#/anyOf/0"}, {"$ref": "#/anyOf/10/x"}, {"$id": "x"}, {"$dynamicRef": "#"}]
)
def test_alternatives_that_point_out_of_themselves_are_counted_together(pointing):
    small = {"anyOf": [{"properties": {str(n): {} for n in range(298)}} for _ in range(2)]}
    check_schema(small)  # six hundred and one with what holds them, each half of them alone
    with pytest.raises(UsageError, match="more than 600 objects"):
        check_schema({"anyOf": [*small["anyOf"], pointing]})
    with pytest.raises(UsageError, match="more than 600 objects"):
        check_schema({"anyOf": [{"properties": {str(n): {} for n in range(600)}}]})


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model", context=1024)) as server:
        yield server


def test_one_of_128_tools_is_called(tmp_path):
    template = "{% if tools %}...{% endif %}<|im_start|>{{ messages[0].content }}<|im_end|>"
    tools = [{"type": "function", "function": {"name": f"f{n}", "parameters": rich(n)}} for n in range(MOST_TOOLS)]
    body = {"messages": [{"role": "user", "content": "the cat"}], "tools": tools, "tool_choice": "required"}
    with running(chat_model(tmp_path, template, context=1024)) as toy:
        status, answer = post(toy, {**body, "max_tokens": 900, "temperature": 1, "seed": 3}, "/v1/chat/completions")
    assert status == 200, answer
    (choice,) = answer["choices"]
    if choice["finish_reason"] == "tool_calls":
        (call,) = choice["message"]["tool_calls"]
        assert call["function"]["name"] in {tool["function"]["name"] for tool in tools}


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("several", [False, True])
def test_a_forced_call_keeps_to_the_schema(toy, kind, several):
    tools = [{"type": "function", "function": {"name": "f", "parameters": TOOLS[kind]}}]
    if several:
        tools.append({"type": "function", "function": {"name": "g", "parameters": closed(b={"const": 1})}})
    body = {"messages": [{"role": "user", "content": "the cat"}], "tools": tools, "tool_choice": "required"}
    status, answer = post(toy, {**body, "max_tokens": 100, "temperature": 1, "seed": 3}, "/v1/chat/completions")
    assert status == 200, answer
    (choice,) = answer["choices"]
    for call in choice["message"].get("tool_calls", ()):
        given = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "f" and TOOLS[kind]:
            assert set(given) <= set(TOOLS[kind]["properties"])
