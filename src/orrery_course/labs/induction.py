"""Which edges of a model repeat what it has read before?

Two layers of attention alone learn to go on with a sequence that comes a second time. The circuit is found by cutting
edges, without looking at any pattern; what it should be is known: a head that looks at the token before, read as keys
by a head that looks at what followed an earlier occurrence of its token (Elhage et al. 2021, Olsson et al. 2022).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from orrery.families import load_family
from orrery.inspection.research.circuits import find_circuit, mean_log_probability
from orrery.inspection.research.computation_graph import ComputationGraph
from orrery.inspection.trace import trace
from orrery.nn.cross_entropy import IGNORED
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import bar_chart
from orrery.studies.compare.probes.repeated import VOCABULARY, Repeated
from orrery.studies.fitting import fit
from orrery_course.labs._lab import Numbers

RATE, STEPS, QUICK_STEPS = 0.01, 1200, 800
CONFIG = {
    "vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "tie_word_embeddings": False,
}  # fmt: skip
WORTH = 0.05
"""What an edge must be worth, in nats a token."""
KNOWN, LOST, FEW, LOOKS = 0.8, 0.2, 0.4, 0.5


def run(seed: int, quick: bool = False) -> Numbers:
    """Train, find the circuit on new rows, and return how much is right with it alone and without it on others."""
    task, model = Repeated(), attention_only(seed)
    fit(model, CausalLanguageModel(), task, QUICK_STEPS if quick else STEPS, RATE, seed)
    rng = torch.Generator().manual_seed(seed + 1000)
    found_on, judged_on = task(rng), task(rng)
    score = mean_log_probability(found_on["targets"])
    circuit = find_circuit(model, found_on["ids"], task.corrupted(found_on, rng), score, WORTH)
    graph = ComputationGraph(model, judged_on["ids"], task.corrupted(judged_on, rng))
    others = [edge for edge in graph.edges if edge not in circuit.edges]
    kept = {"all edges": graph.edges, "the circuit alone": circuit.edges, "all but the circuit": others, "no edge": ()}
    right = {name: accuracy(graph.run(edges), judged_on["targets"]) for name, edges in kept.items()}
    previous, induction = looks(model, judged_on["ids"], task.new)
    reads = [(e.sender, e.receiver.removesuffix(".k")) for e in circuit.edges if e.receiver.endswith(".k")]
    pairs = [min(previous.get(sender, 0.0), induction.get(reader, 0.0)) for sender, reader in reads]
    return {
        "right": right,
        "edges": {"circuit": len(circuit.edges), "all": circuit.all_edges},
        "previous-token head into the keys of an induction head": max(pairs, default=0.0),
        "circuit": [f"{edge.sender} > {edge.receiver}" for edge in circuit.edges],
    }


def attention_only(seed: int, **more: object) -> Any:
    """Return a GPT-2 without its feed-forwards, its weights drawn from the seed; ``more`` belongs to `CONFIG`."""
    spec: Any = load_family("gpt2").spec({**CONFIG, **more})
    blocks = [replace(block, residuals={"attention": block.residuals["attention"]}) for block in spec.stack.blocks]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return replace(spec, stack=replace(spec.stack, blocks=tuple(blocks))).build(0)


def accuracy(logits_BLV: Float[Tensor, "B L V"], targets_BL: Tensor) -> float:
    """Return the share of the tokens that come again which are right."""
    asked_BL: Bool[Tensor, "B L"] = targets_BL != IGNORED
    return float((logits_BLV.argmax(-1) == targets_BL)[asked_BL].double().mean())


def looks(model: Any, ids_BL: Tensor, new: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return of each head the weight on the token before, among what is new, and by induction."""
    inside = trace(model, ids_BL, keep=["*.pattern"])
    roles = inside.head_roles()
    previous, induction = {}, {}
    for place, score_H in zip(roles.attentions, roles["induction"], strict=True):
        weight_H = inside[f"{place}.pattern"][:, :, :new, :new].diagonal(-1, -2, -1).mean((0, 2))
        for head in range(len(score_H)):
            previous[f"{place}.{head}"], induction[f"{place}.{head}"] = float(weight_H[head]), float(score_H[head])
    return previous, induction


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold that the circuit is needed, enough and small, and what it should be."""
    right, edges = numbers["right"], numbers["edges"]
    pair = numbers["previous-token head into the keys of an induction head"]
    return {
        f"with the circuit alone {KNOWN:.0%} is right": right["the circuit alone"] - KNOWN,
        f"without it no more than {LOST:.0%} is right": LOST - right["all but the circuit"],
        f"it has at most {FEW:.0%} of the edges": FEW - edges["circuit"] / edges["all"],
        f"in it a head with {LOOKS:.0%} on the token before is the keys of one with {LOOKS:.0%} by induction": pair
        - LOOKS,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw how much is right with which edges, the mean over the seeds."""
    bars = {name: sum(numbers["right"][name] for numbers in runs) / len(runs) for name in runs[0]["right"]}
    return bar_chart(bars, title="Repeated tokens by the edges that are kept", x_label="part that is right")
