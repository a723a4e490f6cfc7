"""YAML of strangers: plain values alone, no key twice, bounded depth, size and numbers."""

import math
import re
from pathlib import Path
from typing import Any

import yaml

DEPTH, SIZE, VALUES = 40, 1_000_000, 30_000
"""Levels of nesting, characters, and values: written, and after every alias stands for what it names."""
LARGEST = 10**40
_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map", "merge")}

_NUMBERS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
_UNCLEAR = re.compile(r"[-+]?0_*[0-7]|.*:")


class _Plain(yaml.SafeLoader):
    """YAML's safe loader for words, numbers, true, false, null, lists and mappings; a date stays a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping after checking that its keys are words that differ."""
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _fault("a list or a mapping cannot be a key", key)
            if key.value in seen:
                raise _fault(f"key {key.value[:100]!r} twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Build one value; what is no plain one is refused by its tag."""
        if node.tag not in _PLAIN:
            raise _fault(f"{node.tag.rpartition(':')[2]} is no kind of value here", node)
        if node.tag in _NUMBERS and _UNCLEAR.match(str(node.value)):
            raise _fault(f"{node.value[:40]} is read in base 8 or 60; write it in base 10", node)
        try:
            value = super().construct_object(node, deep)
        except (ValueError, OverflowError, LookupError) as error:
            raise _fault(f"{str(node.value)[:40]!r}: {str(error).partition(';')[0]}", node) from error
        if isinstance(value, str) and ("\0" in value or re.search("[\ud800-\udfff]", value)):
            raise _fault(f"{value[:40]!r} holds a character that no text has", node)
        if isinstance(value, int) and abs(value) > LARGEST:
            raise _fault(f"{str(node.value)[:40]} is beyond all numbers", node)
        if isinstance(value, float) and not math.isfinite(value):
            raise _fault(f"{node.value[:40]} is no finite number", node)
        return value


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _PLAIN]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_text(path: Path, limit: int = SIZE) -> str:
    """Return the text of a file of at most ``limit`` bytes; pipes are read too.

    Raises:
        OSError: it cannot be read.
        ValueError: it is longer, it is not UTF-8, or the path itself holds a NUL.
    """
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 at byte {error.start:,}") from error


def parse(text: str) -> Any:
    """Return the plain values that a text says.

    Raises:
        yaml.YAMLError: it is not YAML, too long or nested too deeply, has a key twice, or a value that is not plain.
    """
    if len(text) > SIZE:
        raise yaml.MarkedYAMLError(problem=f"{len(text):,} characters, at most {SIZE:,} are read")
    _check_events(text)
    loader = _Plain(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, set(), {})
        return loader.construct_document(node)
    except (ValueError, TypeError, AttributeError) as error:  # a tag that its value cannot have
        raise yaml.MarkedYAMLError(problem=str(error).partition(";")[0]) from error
    finally:
        loader.dispose()


def _check_events(text: str) -> None:
    """Refuse deep nesting and too many values before anything is built: a call within another, and minutes."""
    depth = values = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise _fault(f"nested more than {DEPTH} deep", event)
        values += isinstance(event, yaml.NodeEvent)
        if values > VALUES:
            raise _fault(f"more than {VALUES:,} values", event)


def _count(node: yaml.Node, above: set[int], known: dict[int, int]) -> int:
    """Return how many values a node stands for; refuse one that holds itself, and more than anybody writes."""
    if id(node) in above:
        raise _fault("a value that holds itself", node)
    if id(node) in known or isinstance(node, yaml.ScalarNode):
        return known.get(id(node), 1)
    inner = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    size = 1 + sum(_count(part, above | {id(node)}, known) for part in inner)
    if size > VALUES:
        raise _fault(f"more than {VALUES:,} values", node)
    known[id(node)] = size
    return size


def _fault(problem: str, node: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
