"""Trees of messages: OASST's, replies to replies with a rank among those to one message, and ChatGPT's export's."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orrery.data.readers.columns import truth_of

FLAT = frozenset({"message_id", "parent_id", "text", "role"})
"""Columns of a table with a message in each row."""
_ASKS = "prompter"
APART = "apart"
Node = Mapping[str, Any]
Replies = tuple[list[dict[str, Any]], list[tuple[Any, float | None]]]
"""What was said, and the replies to it, each with a score where it is ranked."""


def is_tree(row: Mapping[str, Any]) -> bool:
    """Say whether a row is a tree of messages."""
    return isinstance(row.get("prompt"), Mapping) and "replies" in row["prompt"]


def trees_of(
    rows: Iterable[tuple[str, Mapping[str, Any]]], tally: Counter[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the trees of a table with a message in each row, which is read whole; a tree stands where it begins.

    Args:
        rows: the table.
        tally: counts as ``APART`` the messages that are in no tree.
    """
    placed = list(rows)
    nodes = {str(row.get("message_id")): (where, {**row, "replies": []}) for where, row in placed}
    roots = []
    for where, node in nodes.values():
        if node.get("parent_id") in (None, ""):
            roots.append((where, {"prompt": node}))
        elif parent := nodes.get(str(node["parent_id"])):
            parent[1]["replies"].append(node)
    reached = [root["prompt"] for _, root in roots]
    for node in reached:
        reached += node["replies"]
    tally[APART] += len(placed) - len(reached)
    yield from roots


def threads(node: Node, before: list[dict[str, Any]] | None = None) -> list[list[dict[str, Any]]]:
    """Return the conversations of a tree that end with the assistant, each of the best replies to a message."""
    said, replies = _said(node, before)
    if node.get("role") == _ASKS:
        ranked = {place: score for place, reply in enumerate(replies) if (score := _score(reply)) is not None}
        best = replies[max(ranked, key=ranked.__getitem__, default=0)] if replies else None
        return [] if best is None else threads(best, said)
    return [thread for reply in replies for thread in threads(reply, said)] or [said]


def asked_in(node: Node, before: list[dict[str, Any]] | None = None) -> Iterator[Replies]:
    """Yield each place of a tree where the assistant is asked, with the replies there."""
    said, replies = _said(node, before)
    if node.get("role") == _ASKS:
        yield said, [(reply.get("text"), _score(reply)) for reply in replies]
    for reply in replies:
        yield from asked_in(reply, said)


def of_chatgpt(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a conversation of ChatGPT's export: the messages from its beginning to the one that was seen last.

    What is no text (a picture, code that ran, a call of a tool) stays a part of its type, by which it is refused.
    """
    nodes, name = row.get("mapping"), row.get("current_node")
    if not isinstance(nodes, Mapping) or not isinstance(name, str):
        return None
    try:
        said = _seen(nodes, name)
    except (AttributeError, KeyError, TypeError):  # a mapping of another form
        return None
    return {"messages": said} if said else None


def _seen(nodes: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the messages from the beginning of a tree to a node."""
    said: list[dict[str, Any]] = []
    for _ in nodes:  # no more steps than nodes: a tree that runs in a circle ends
        message = nodes[name].get("message")
        content = message.get("content", {}) if message else {}
        kind, parts = content.get("content_type"), list(content.get("parts") or ())
        text = "".join(parts) if kind == "text" and all(isinstance(part, str) for part in parts) else None
        if message and text != "":
            own = [{"type": kind}] if text is None else text
            said.append({"role": message["author"]["role"], "content": own})
        if (name := nodes[name].get("parent")) is None:
            break
    return said[::-1]


def _said(node: Node, before: list[dict[str, Any]] | None) -> tuple[list[dict[str, Any]], list[Node]]:
    """Return the messages up to a node, and the replies to it that were not deleted."""
    own = {"role": node.get("role"), "content": node.get("text")}
    return [*(before or ()), own], [each for each in node.get("replies") or () if not truth_of(each.get("deleted"))]


def _score(node: Node) -> float | None:
    """Return how good a reply is, where it has a rank: 0 is the best."""
    rank = str(node.get("rank"))
    return -float(rank) if rank.replace(".", "", 1).isdecimal() else None
