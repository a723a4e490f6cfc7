import pytest
import torch

from orrery.families import load_family, names
from orrery.models.distinct_blocks import distinct_blocks
from orrery.planning.spec_tree import SpecDifference, SpecNode, differences, lines, tree


def spec_of(family, **config):
    rules = load_family(family)
    return rules.spec({**rules.TINY, **config})


def heavier_than_its_parts(node):
    parts = sum((child.parameters or 0) * child.copies for child in node.children)
    assert (node.parameters or 0) >= parts, node.name
    for child in node.children:
        heavier_than_its_parts(child)


@pytest.mark.parametrize("family", names())
def test_a_tree_counts_what_the_model_has(family):
    spec = spec_of(family)
    with torch.device("meta"):
        whole = sum(parameter.numel() for parameter in spec.build().parameters())
    root = tree(spec, family)
    assert root.parameters == whole == distinct_blocks(spec).parameters()
    heavier_than_its_parts(root)


@pytest.mark.parametrize("family", names())
def test_nothing_differs_from_itself(family):
    assert list(differences(tree(spec_of(family), "a"), tree(spec_of(family), "b"))) == []


def test_equal_blocks_are_one_node():
    text = list(lines(tree(spec_of("llama", num_hidden_layers=7), "llama")))
    (block,) = [line for line in text if "blocks" in line]
    assert block == "    blocks: Block(depth=0-6)  [7 x 4,464]"


def test_the_first_block_alone_shows_its_depth():
    text = list(lines(tree(spec_of("deepseek_v3", first_k_dense_replace=1), "deepseek_v3")))
    blocks = [line.split("  [")[0].strip() for line in text if "blocks" in line]
    assert blocks == ["blocks.0: Block(depth=0)", "blocks.1: Block(depth=1)"]
    (block,) = [line for line in lines(tree(spec_of("llama", num_hidden_layers=1), "llama")) if "blocks" in line]
    assert block == "    blocks: Block(depth=0)  [4,464]"


def test_published_sizes_are_counted_in_an_instant():
    assert tree(load_family("gpt2").spec({}), "gpt2").parameters == 124_439_808
    assert tree(load_family("llama").spec({}), "llama").parameters == 6_738_415_616


def test_a_difference_names_its_path_and_both_sides():
    first, second = tree(spec_of("gpt2"), "a"), tree(spec_of("gpt2", n_layer=3, n_head=2), "b")
    assert list(differences(first, second)) == [
        SpecDifference("stack.blocks.depth", "0-1", "0-2"),
        SpecDifference("stack.blocks.attention.branch.heads", "3", "2"),
        SpecDifference("stack.blocks.attention.branch.kv_heads", "3", "2"),
        SpecDifference("stack.blocks.attention.branch.head_width", "8", "12"),
    ]


def test_a_part_that_one_side_lacks_is_shown_on_the_other():
    by_path = {
        d.path: (d.first, d.second) for d in differences(tree(spec_of("gpt2"), "a"), tree(spec_of("llama"), "b"))
    }
    assert by_path["stack.positions.learned"] == ("LearnedPositions(length=48)", "")
    assert by_path["stack.positions.rotary"][0] == ""
    assert by_path["stack.final"][0].startswith("LayerNorm")
    assert by_path["stack.final"][1].startswith("RMSNorm")


def test_assemblies_are_compared_in_what_both_have():
    by_path = {d.path: (d.first, d.second) for d in differences(tree(spec_of("bert"), "a"), tree(spec_of("gpt2"), "b"))}
    assert by_path["assembly"] == ("Encoder", "Decoder")
    assert by_path["stack.masks.full"] == ("Full", "")
    assert by_path["head"][0] == ""


def test_one_spec_of_many_experts_is_counted_so():
    text = "\n".join(lines(tree(spec_of("mixtral"), "mixtral")))
    assert "expert: GatedMLP(hidden=12, activation=silu)  [4 x 576]" in text
    assert "base=1000000)" in text


def test_settings_read_like_words():
    node = SpecNode("a", "Norm", {"bias": "yes", "gain": "no", "offset": "0", "eps": "1e-06"})
    assert node.what == "Norm(bias, eps=1e-06)"
    assert node.weight == ""
