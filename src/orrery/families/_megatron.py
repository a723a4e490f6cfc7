"""What BLOOM, Falcon and GPT-NeoX took from Megatron-LM: the names of a layer's matrices, and q, k and v in one."""

from collections.abc import Sequence

from orrery.checkpoints.layouts import GroupInterleaved
from orrery.checkpoints.rules import Rule, renames


def branches(
    layer: str,
    attention: str,
    groups: int,
    places: Sequence[tuple[str, str]] = (("attention.branch", "feed_forward.branch"),),
) -> tuple[Rule, ...]:
    """Return the rules of both branches of every layer.

    Args:
        layer: what the names of a layer begin with in the files.
        attention: the name of the attention in a layer.
        groups: how many times the fused matrix says queries, key, value: once for each key-value head.
        places: where a block of ours may keep its attention and its feed-forward network, one pair for each form.
    """
    rules: list[Rule] = []
    for ours, network in places:
        for end in ("weight", "bias"):
            parts = tuple(f"stack.blocks.{{i}}.{ours}.{x}.{end}" for x in "qkv")
            rules.append(Rule(f"{layer}.{attention}.query_key_value.{end}", parts, GroupInterleaved(groups)))
        pairs = (
            (f"{attention}.dense", f"{ours}.out"),
            ("mlp.dense_h_to_4h", f"{network}.up"),
            ("mlp.dense_4h_to_h", f"{network}.down"),
        )
        rules += renames(layer, "stack.blocks.{i}", pairs)
    return tuple(rules)
