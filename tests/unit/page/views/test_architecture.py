import pytest

from orrery.families import load_family, names
from orrery.models.meta_device import build_on_meta
from orrery.page.views._graph import Graph, graph_of, plain
from orrery.page.views._view import ViewSubject, shown
from orrery.planning.spec_tree import tree
from orrery.tuning.lora import LoRA
from views_toy import subject_of


def graph(family):
    rules = load_family(family)
    return graph_of(tree(rules.spec(rules.TINY), family))


def named(graph_of: Graph, id):
    return next(part for part in graph_of.parts if part.id == id)


def flow(graph_of: Graph, column):
    """Return role and slot of the parts of a column, in the order in which they follow each other."""
    after = {edge.first: edge.second for edge in graph_of.edges if edge.kind == "flow"}
    part = next(part for part in graph_of.parts if part.column == column and part.slot == "input")
    order = []
    while part is not None:
        order.append((part.role, part.slot))
        part = named(graph_of, after[part.id]) if part.id in after else None
    return order


@pytest.mark.parametrize("family", names())
def test_the_parts_of_the_figure_add_up_to_the_parameters(family):
    rules = load_family(family)
    model = build_on_meta(rules.spec(rules.TINY))
    assert graph(family).parameters == sum(parameter.numel() for parameter in model.parameters())


def test_figure_1_of_the_paper():
    graph_of = graph("transformer")
    begin = [("", "input"), ("", "embed"), ("enter", "enter"), ("added", "position"), ("start", "enter")]
    sublayers = {
        role: [(role, "branch"), (role, "add"), (role, "out")] for role in ("attention", "cross", "feed_forward")
    }
    assert flow(graph_of, "reader") == [*begin, *sublayers["attention"], *sublayers["feed_forward"]]
    assert flow(graph_of, "main") == [*begin, *(one for role in sublayers.values() for one in role), ("", "head")]
    (memory,) = [edge for edge in graph_of.edges if edge.kind == "memory"]
    first, second = named(graph_of, memory.first), named(graph_of, memory.second)
    assert (first.column, first.role, first.slot) == ("reader", "feed_forward", "out")
    assert (second.column, second.role, second.slot) == ("main", "cross", "branch")
    assert [(group.column, group.copies, group.depth) for group in graph_of.groups] == [
        ("reader", 2, "0-1"),
        ("main", 2, "0-1"),
    ]
    skips = [edge for edge in graph_of.edges if edge.kind == "skip"]
    assert [named(graph_of, edge.second).role for edge in skips] == [
        "attention", "feed_forward", "attention", "cross", "feed_forward",
    ]  # fmt: skip


def test_a_norm_before_and_one_after():
    roles = [("attention", "pre"), ("attention", "branch"), ("attention", "add")]
    assert [one for one in flow(graph("gpt2"), "main") if one[0] == "attention"] == roles
    assert ("attention", "post") in flow(graph("gemma2"), "main")


def test_parallel_branches_meet_in_one_sum():
    graph_of = graph("gpt_neox")
    branches = [part for part in graph_of.parts if part.slot == "branch"]
    assert [(part.role, part.lane) for part in branches] == [("feed_forward", (0, 2)), ("attention", (1, 2))]
    (total,) = [part for part in graph_of.parts if part.slot == "add"]
    into = {(edge.first, edge.kind) for edge in graph_of.edges if edge.second == total.id}
    assert {(part.id, "flow") for part in branches} < into
    assert [kind for _, kind in into].count("skip") == 1


def test_a_recurrence_without_a_residual_has_no_sum():
    graph_of = graph("rnnsearch")
    assert not [part for part in graph_of.parts if part.slot == "add"]
    (memory,) = [edge for edge in graph_of.edges if edge.kind == "memory"]
    assert named(graph_of, memory.first).kind == "BidirectionalGRUEncoder"
    assert named(graph_of, memory.second).kind == "BahdanauDecoder"


def test_positions_that_act_inside_attention_stand_beside_the_flow():
    graph_of = graph("llama")
    (rotary,) = [part for part in graph_of.parts if part.slot == "position"]
    assert rotary.role == "rotary"
    assert not [edge for edge in graph_of.edges if rotary.id in (edge.first, edge.second)]
    (learned,) = [part for part in graph("gpt2").parts if part.slot == "position"]
    assert learned.role == "added"


@pytest.mark.parametrize(
    "family", ["gpt2", "transformer", "rnnsearch", "elman_rnn", "gptj", "deepseek_v2", "bert", "t5"]
)
def test_shapes_are_those_of_a_pass(family):
    subject = subject_of(family)
    facts = shown("architecture", subject, {}).facts
    length = len(subject.inside.tokens)
    source = len(subject.inside.source_tokens)
    compared = 0
    for node in facts["nodes"]:
        if node["key"] in subject.inside and node["shape"]:
            sizes = {"L": length, "S": source}
            assert [sizes.get(side, side) for side in node["shape"]] == list(subject.inside[node["key"]].shape[1:])
            compared += 1
    assert compared >= 3
    for key, shape in facts["inner"].items():
        assert len(shape) == subject.inside[key].dim() - 1


def test_the_checks_notice_what_is_wrong(monkeypatch):
    subject = subject_of("gpt2")
    assert all(check.passed for check in shown("architecture", subject, {}).checks)
    lora = LoRA(rank=2, alpha=4).apply(subject.lm.model)
    assert lora.transforms
    payload = shown("architecture", ViewSubject(subject.lm), {})
    assert all(check.passed for check in payload.checks)
    assert payload.facts["nodes"][-1]["kind"] == "lora"
    whole = Graph.parameters.fget
    monkeypatch.setattr(Graph, "parameters", property(lambda graph: whole(graph) + 1))
    assert not shown("architecture", subject, {}).checks[0].passed


def test_the_tree_has_what_is_not_as_usual():
    rules = load_family("gpt2")
    told = plain(tree(rules.spec(rules.TINY), "gpt2"))
    attention = next(child for child in told["children"] if child["name"] == "stack")["children"][0]["children"][0]
    assert [child["name"] for child in attention["children"]] == ["branch", "pre"]
