"""Circuits: runs with cut edges against edits of a trace, and the search on models whose circuit is known."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.research.circuits import connected, find_circuit, mean_log_probability
from orrery.inspection.research.computation_graph import ComputationGraph, Edge
from orrery.inspection.trace import trace
from tiny_models import smallest, tiny

RNG = torch.Generator().manual_seed(0)
CLEAN, CORRUPTED = torch.randint(0, 61, (2, 2, 7), generator=RNG)


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request):
    # Llama with a key-value head for every head.
    return tiny("gpt2") if request.param == "gpt2" else tiny("llama", num_key_value_heads=4)


@pytest.fixture(scope="module")
def graph(model):
    return ComputationGraph(model, CLEAN, CORRUPTED)


def written(model, inside, block: int, head: int):
    """What a head writes into the stream, from its mixed values and its columns of the output matrix."""
    out = model.stack.blocks[block].attention.branch.out.weight
    width = out.shape[1] // 4
    return inside[f"blocks.{block}.attention.mixed"][:, head] @ out[:, head * width : (head + 1) * width].T


def test_all_edges_are_the_clean_run_and_none_the_corrupted(model, graph) -> None:
    assert len(set(graph.edges)) == len(graph.edges) == 12 + 5 + 12 * 6 + 10 + 11
    for kept, ids in ((graph.edges, CLEAN), ((), CORRUPTED)):
        torch.testing.assert_close(graph.run(kept), model.logits(ids), rtol=0, atol=1e-9)


def test_a_cut_edge_into_the_logits_takes_the_other_output(model, graph) -> None:
    clean, other = trace(model, CLEAN), trace(model, CORRUPTED)
    cut = Edge("blocks.1.attention.2", "logits")
    logits = graph.run([edge for edge in graph.edges if edge != cut])
    stream = clean["blocks.1.resid_post"] - written(model, clean, 1, 2) + written(model, other, 1, 2)
    torch.testing.assert_close(logits, model.head(model.stack.final(stream)), rtol=0, atol=1e-9)
    assert (logits - clean.logits).abs().max() > 1e-3


@pytest.mark.parametrize("part", ["q", "k", "v"])
def test_a_cut_edge_into_one_head_reaches_that_head_alone(model, graph, part: str) -> None:
    clean, other = trace(model, CLEAN), trace(model, CORRUPTED)
    cut = Edge("blocks.0.feed_forward", f"blocks.1.attention.3.{part}")
    key = f"blocks.1.attention.{part}"
    added = "blocks.0.feed_forward.added"
    read = clean["blocks.1.resid_pre"] - clean[added] + other[added]
    # What this part would be of all heads if the stream were so: a run whose stream is edited gives it.
    wanted = trace(model, CLEAN, keep=[key], edit={"blocks.1.resid_pre": lambda value, name: read})[key]

    def edit(value, name):
        value = value.clone()
        value[:, 3] = wanted[:, 3]
        return value

    expected = trace(model, CLEAN, edit={key: edit}).logits
    logits = graph.run([edge for edge in graph.edges if edge != cut])
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-9)
    assert (logits - clean.logits).abs().max() > 1e-6


def test_a_cut_edge_into_a_layer_changes_what_it_reads(model, graph) -> None:
    clean, other = trace(model, CLEAN), trace(model, CORRUPTED)
    cut = Edge("embedded", "blocks.1.feed_forward")
    read = clean["blocks.1.attention.resid"] - clean["embedded"] + other["embedded"]
    hidden = trace(model, CLEAN, edit={"blocks.1.attention.resid": lambda value, key: read})
    added = hidden["blocks.1.feed_forward.added"]
    expected = model.head(model.stack.final(clean["blocks.1.attention.resid"] + added))
    torch.testing.assert_close(graph.run([edge for edge in graph.edges if edge != cut]), expected, rtol=0, atol=1e-9)


def test_edges_that_lead_nowhere_are_left_out() -> None:
    edges = [
        Edge("embedded", "blocks.0.attention.0.v"),
        Edge("embedded", "blocks.0.attention.1.k"),  # head 1 is not read
        Edge("blocks.0.attention.0", "blocks.1.attention.2.k"),
        Edge("blocks.0.feed_forward", "blocks.1.attention.2.v"),  # the layer reads nothing
        Edge("blocks.1.attention.2", "logits"),
    ]
    assert connected(edges) == (edges[0], edges[2], edges[4])
    assert connected(edges[:-1]) == ()


def test_the_threshold_decides_what_is_kept(model) -> None:
    targets = torch.full_like(CLEAN, -1)
    targets[:, -1] = CLEAN[:, 0]
    score = mean_log_probability(targets)
    clean, other = (score(model.logits(ids)) for ids in (CLEAN, CORRUPTED))
    told: list[tuple[int, int]] = []
    none = find_circuit(model, CLEAN, CORRUPTED, score, float("inf"), done=lambda *count: told.append(count))
    assert (none.edges, none.nodes) == ((), [])
    assert none.alone == pytest.approx(other, abs=1e-9)
    assert none.without == pytest.approx(clean, abs=1e-9)
    whole = find_circuit(model, CLEAN, CORRUPTED, score, float("-inf"))
    assert len(whole.edges) == whole.all_edges == len(told)
    assert (whole.clean, whole.corrupted) == pytest.approx((clean, other), abs=1e-9)
    assert whole.alone == pytest.approx(clean, abs=1e-9)
    assert whole.without == pytest.approx(other, abs=1e-9)
    heads = [[f"blocks.{block}.attention.{head}" for head in range(4)] for block in range(2)]
    assert whole.nodes == ["embedded", *heads[0], "blocks.0.feed_forward", *heads[1], "blocks.1.feed_forward"]


def test_the_circuit_of_a_model_with_one_way_is_that_way() -> None:
    """Everything but one head and the embedding writes nothing, so that the way through this head is the only one."""
    model = tiny("gpt2")
    with torch.no_grad():
        for number, block in enumerate(model.stack.blocks):
            block.feed_forward.branch.down.weight.zero_()
            out = block.attention.branch.out.weight
            kept = out[:, 8:16].clone()
            out.zero_()
            if number == 1:
                out[:, 8:16] = 3 * kept
    ids = CLEAN.clone()
    other = ids.clone()
    other[:, 3] = CORRUPTED[:, 3]
    wanted = model.logits(ids).detach()
    circuit = find_circuit(model, ids, other, lambda x: -float((x - wanted).square()[:, -1].sum()), 1e-6)
    assert {edge.receiver for edge in circuit.edges} == {"blocks.1.attention.1.k", "blocks.1.attention.1.v", "logits"}
    assert {edge.sender for edge in circuit.edges} == {"embedded", "blocks.1.attention.1"}
    assert circuit.alone == pytest.approx(circuit.clean, abs=1e-5)
    assert circuit.without < -1e-3


def test_the_score_is_the_mean_log_probability_of_what_is_asked() -> None:
    logits = torch.randn(2, 3, 5, generator=RNG)
    targets = torch.tensor([[-1, 2, -1], [4, -1, 0]])
    expected = [logits.log_softmax(-1)[0, 1, 2], logits.log_softmax(-1)[1, 0, 4], logits.log_softmax(-1)[1, 2, 0]]
    assert mean_log_probability(targets)(logits) == pytest.approx(float(sum(expected)) / 3, abs=1e-6)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda: tiny("llama"), "share keys and values"),
        (lambda: smallest("lstm"), "no sum|no plain"),
        (lambda: smallest("gemma2"), "plain|share"),
        (lambda: smallest("t5"), "reads"),
        (lambda: smallest("modernbert"), "edges of an encoder"),
        (lambda: tiny("gpt2").train(), "training mode"),
    ],
)
def test_models_without_such_edges_are_refused(model, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ComputationGraph(model(), CLEAN, CORRUPTED)


def test_texts_of_two_lengths_are_refused() -> None:
    with pytest.raises(UsageError, match="7 and 6 tokens"):
        ComputationGraph(tiny("gpt2"), CLEAN, CORRUPTED[:, :6])
