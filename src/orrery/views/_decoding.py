"""What a decoding tree says, compared with one pass over each of its ways."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.filters import History, VocabularyLimit
from orrery.generation.samplers import sampler
from orrery.generation.tree import Node
from orrery.inspection.checks import Check
from orrery.language_model.stored import reads_apart
from orrery.views._inside import Inside

BOUNDS = {torch.float64: 1e-9, torch.float32: 1e-4}
"""Nats between a cost read token by token and that of one pass; of 16-bit weights ``COARSE``."""
COARSE = 2e-2
MOST_STEPS, MOST_BEAMS, MOST_SAMPLES = 48, 8, 8


@final
@dataclass(frozen=True)
class Prompt:
    """What decoding begins behind: the tokens of a pass, or the source of an encoder-decoder."""

    inside: Inside

    @cached_property
    def ids(self) -> list[int]:
        """The tokens that are read before the first one is written."""
        first = self.inside.first
        read = first.ids if first.source_ids is None else first.source_ids
        return [int(id) for id in read[0].tolist()]

    def room(self, steps: int) -> int:
        """Return how many of so many tokens still fit the context.

        Raises:
            UsageError: none does.
        """
        taken = 1 if reads_apart(self.inside.lm._stored) else len(self.ids)
        rest = min(steps, self.inside.lm.context - taken)
        if rest < 1:
            raise UsageError("the text fills the context, and nothing can be written behind it", "shorten the text")
        return rest

    def logits(self, answer: Sequence[int]) -> Float[Tensor, "N V"]:
        """Return the logits behind the prompt and behind each token of an answer, from one pass over all of them."""
        lm = self.inside.lm
        if reads_apart(lm._stored):
            first = lm.model.first_token
            logits_BLV = lm.logits([self.ids], decoder_input_ids=[[*([] if first is None else [first]), *answer]])
        else:
            logits_BLV = lm.logits([[*self.ids, *answer]])
        logits_NV = logits_BLV[0, -len(answer) - 1 :]
        return VocabularyLimit(lm.tokenizer.size)(logits_NV).to(torch.promote_types(logits_NV.dtype, torch.float32))


def ways(tree: Node) -> Iterator[list[Node]]:
    """Yield every way from the root to a leaf."""
    for child in tree.sorted():
        if child.children:
            yield from ([child, *way] for way in ways(child))
        else:
            yield [child]


@torch.no_grad()
def checks(prompt: Prompt, tree: Node, beam_1: Sequence[int], greedy: Sequence[int]) -> list[Check]:
    """Compare a tree with the passes over its ways.

    Args:
        prompt: what stands before.
        tree: the tree.
        beam_1: what a beam search of one beam writes.
        greedy: what greedy decoding writes.

    Returns:
        the children of a node and the rest of the vocabulary have the mass 1; the total of a node is the score of its
        sequence; one beam is greedy decoding.
    """
    mass = cost = 0.0
    for way in ways(tree):
        inner = [tree, *way[:-1]]
        logp_NV = prompt.logits([node.token for node in way[:-1]]).log_softmax(-1)
        reached = 0.0
        for place, node in enumerate(inner):
            reached -= float(logp_NV[place, way[place].token])
            cost = max(cost, abs(way[place].total - reached) / max(1.0, reached))
            mass = max(mass, abs(_mass(node, logp_NV[place]) - 1))
    bound = BOUNDS.get(prompt.inside.lm.model.dtype, COARSE)
    other = sum(a != b for a, b in zip(beam_1, greedy, strict=False)) + abs(len(beam_1) - len(greedy))
    return [
        Check("children and rest sum to one", mass, bound),
        Check("each total is the score of its sequence", cost, bound),
        Check("one beam is greedy decoding", float(other), 0.0),
    ]


def _mass(node: Node, logp_V: Float[Tensor, "V"]) -> float:
    """Return the mass of the children, as the tree has it, and of all other tokens, as one pass has it."""
    children = torch.tensor(list(node.children), device=logp_V.device)
    rest = logp_V.double().exp().index_fill(0, children, 0.0).sum()
    return float(rest) + sum(math.exp(-child.cost) for child in node.children.values())


def drawn(prompt: Prompt, logits_V: Float[Tensor, "V"], answer: Sequence[int], **sampling: Any) -> Float[Tensor, "V"]:
    """Return the probabilities with which the server would draw the next token."""
    lm = prompt.inside.lm
    chosen = sampler(vocabulary=lm.tokenizer.size, **sampling)
    logits_1V = logits_V[None].double()
    kept_V = chosen.filtered(logits_1V, History.of([[*prompt.ids, *answer]], logits_1V))[0]
    if not chosen.draws:
        return torch.nn.functional.one_hot(kept_V.argmax(), len(kept_V)).double()
    return kept_V.softmax(-1)
