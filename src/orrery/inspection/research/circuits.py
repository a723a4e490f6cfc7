"""Circuits: the few edges of a model that carry a task, found by cutting all others (ACDC)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from jaxtyping import Float, Int
from torch import Tensor

from orrery.inspection.research.computation_graph import EMBEDDED, LOGITS, ComputationGraph, Edge
from orrery.inspection.research.variants import Done

Score: TypeAlias = Callable[[Float[Tensor, "B L V"]], float]
"""From the logits of the clean texts to a number that is higher where the task is done better."""


@final
@dataclass(frozen=True)
class Circuit:
    """The edges that a task needs, and the proof by ablation.

    Attributes:
        edges: those that were kept and lie on a way from the embeddings to the logits.
        all_edges: how many the model has.
        clean: the score of the whole model.
        corrupted: the score with every edge cut.
        alone: the score where the circuit's edges alone are kept.
        without: the score where the circuit's edges alone are cut.
    """

    edges: tuple[Edge, ...]
    all_edges: int
    clean: float
    corrupted: float
    alone: float
    without: float

    @property
    def nodes(self) -> list[str]:
        """The senders of the circuit, in the order of computation."""
        # Whatever sends has read something itself, and edges stand in the order of those that read.
        senders = dict.fromkeys([EMBEDDED, *(_sender(edge.receiver) for edge in self.edges)])
        sending = {edge.sender for edge in self.edges}
        return [node for node in senders if node in sending]


def find_circuit(
    model: Any,
    clean_BL: Int[Tensor, "B L"],
    corrupted_BL: Int[Tensor, "B S"],
    score: Score,
    threshold: float,
    *,
    done: Done | None = None,
) -> Circuit:
    """Cut every edge whose loss costs the score less than ``threshold``, from the logits to the embeddings.

    ACDC, algorithm 1 of Conmy et al. 2023, on edges from heads and layers to the queries, keys and values of heads, to
    layers and to the logits. A cut edge carries what the corrupted text makes.
    Differs from the paper: the score is any number of the logits, where the paper has the KL divergence by default.

    Args:
        model: a decoder of plain pre-norm blocks with multi-head attention, in eval mode.
        clean_BL: texts on which the model does the task.
        corrupted_BL: texts of the same length on which it would do something else.
        score: how well the task is done.
        threshold: what an edge must be worth.
        done: told after each edge how many of how many were tried.

    Raises:
        UsageError: a model that is no such decoder, or texts of several lengths.
    """
    graph = ComputationGraph(model, clean_BL, corrupted_BL)
    kept = dict.fromkeys(graph.edges)
    clean = score(graph.run(kept))
    best = clean
    for tried, edge in enumerate(reversed(graph.edges), start=1):
        rest = [one for one in kept if one != edge]
        cut_score = score(graph.run(rest))
        if best - cut_score < threshold:
            del kept[edge]
            best = cut_score
        if done is not None:
            done(tried, len(graph.edges))
    edges = connected(kept)
    others = [edge for edge in graph.edges if edge not in edges]
    corrupted = score(graph.run(()))
    return Circuit(edges, len(graph.edges), clean, corrupted, score(graph.run(edges)), score(graph.run(others)))


def connected(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Return the edges on a way from the embeddings to the logits, in their order."""
    kept_edges, before = tuple(edges), None
    while kept_edges != before:
        before = kept_edges
        sending = {edge.sender for edge in kept_edges}
        reached = {EMBEDDED, *(_sender(edge.receiver) for edge in kept_edges)}
        kept_edges = tuple(
            edge
            for edge in kept_edges
            if edge.sender in reached and (edge.receiver == LOGITS or _sender(edge.receiver) in sending)
        )
    return kept_edges


def mean_log_probability(targets_BL: Int[Tensor, "B L"]) -> Score:
    """Return the score ``mean log p(target)`` in nats, over the positions whose target is at least 0."""
    asked_BL = targets_BL >= 0

    def score(logits_BLV: Tensor) -> float:
        logp_BL = logits_BLV.double().log_softmax(-1).gather(-1, targets_BL.clamp(min=0)[..., None])[..., 0]
        return float(logp_BL[asked_BL].detach().mean())

    return score


def _sender(receiver: str) -> str:
    """Return the node that a receiver belongs to: the head of its queries, keys or values."""
    parts = receiver.split(".")
    return receiver.rpartition(".")[0] if parts[-1] in ("q", "k", "v") else receiver
