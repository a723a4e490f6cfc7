"""What a decoding tree says, compared with one pass over each of its ways."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.exchange.stored import reads_apart
from orrery.generation.filters import History, VocabularyLimit
from orrery.generation.samplers import sampler
from orrery.generation.tree import TreeNode
from orrery.inspection.checks import Check
from orrery.page.views._inside import Inside

BOUNDS = {torch.float64: 1e-9, torch.float32: 1e-4}
"""Nats between a cost read token by token and that of one pass; of 16-bit weights ``COARSE``."""
COARSE = 2e-2
MOST_STEPS, MOST_BEAMS, MOST_SAMPLES = 48, 8, 8
MOST_LOGITS = 1 << 24
"""Logits that the rows of one pass may have."""


@final
@dataclass(frozen=True)
class DecodingPrompt:
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
        taken = 1 if reads_apart(self.inside.lm.stored) else len(self.ids)
        rest = min(steps, self.inside.lm.context - taken)
        if rest < 1:
            raise UsageError("the text fills the context, and nothing can be written behind it", "shorten the text")
        return rest

    def logits(self, answer: Sequence[int]) -> Float[Tensor, "N V"]:
        """Return the logits behind the prompt and behind each token of an answer, from one pass over all of them."""
        return next(self.all_logits([answer]))

    def all_logits(self, answers: Sequence[Sequence[int]]) -> Iterator[Float[Tensor, "N V"]]:
        """Yield the ``logits`` of answers, one after another; those of one length that stand together share a pass."""
        for length, group in groupby(answers, len):
            rows, size = list(group), MOST_LOGITS // ((len(self.ids) + length) * self.inside.lm.tokenizer.size)
            for start in range(0, len(rows), max(1, size)):
                for logits_LV in self._read(rows[start : start + max(1, size)]):
                    yield self._allowed(logits_LV[-length - 1 :])

    def _read(self, answers: Sequence[Sequence[int]]) -> Float[Tensor, "B L V"]:
        lm = self.inside.lm
        if not reads_apart(lm.stored):
            return lm.logits([[*self.ids, *answer] for answer in answers])
        first = [] if lm.model.first_token is None else [lm.model.first_token]
        return lm.logits([self.ids] * len(answers), decoder_input_ids=[[*first, *answer] for answer in answers])

    def _allowed(self, logits_NV: Float[Tensor, "N V"]) -> Float[Tensor, "N V"]:
        """Return logits without what has no spelling, in float32 at least."""
        limit = VocabularyLimit(self.inside.lm.tokenizer.size)
        return limit(logits_NV).to(torch.promote_types(logits_NV.dtype, torch.float32))


def ways(tree: TreeNode) -> Iterator[list[TreeNode]]:
    """Yield every way from the root through nodes that something follows, as far as they go.

    What follows them is judged by the same passes: nodes that have one above them in common need one pass.
    """
    inner = [child for child in tree.sorted() if child.children]
    if not inner:
        yield [tree]
    for child in inner:
        yield from ([tree, *way] for way in ways(child))


@torch.no_grad()
def checks(prompt: DecodingPrompt, tree: TreeNode, beam_1: Sequence[int], greedy: Sequence[int]) -> list[Check]:
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
    sorted_ways = sorted(ways(tree), key=len)
    read = prompt.all_logits([[node.token for node in way[1:]] for way in sorted_ways])
    for way, logits_NV in zip(sorted_ways, read, strict=True):
        reached = 0.0
        for place, (node, logp_V) in enumerate(zip(way, logits_NV.log_softmax(-1), strict=True)):
            for child in node.children.values():
                total = reached - float(logp_V[child.token])
                cost = max(cost, abs(child.total - total) / max(1.0, total))
            mass = max(mass, abs(_mass(node, logp_V) - 1))
            if place + 1 < len(way):
                reached -= float(logp_V[way[place + 1].token])
    bound = BOUNDS.get(prompt.inside.lm.model.dtype, COARSE)
    other = sum(a != b for a, b in zip(beam_1, greedy, strict=False)) + abs(len(beam_1) - len(greedy))
    return [
        Check("children and rest sum to one", mass, bound),
        Check("each total is the score of its sequence", cost, bound),
        Check("one beam is greedy decoding", float(other), 0.0),
    ]


def _mass(node: TreeNode, logp_V: Float[Tensor, "V"]) -> float:
    """Return the mass of the children, as the tree has it, and of all other tokens, as one pass has it."""
    children = torch.tensor(list(node.children), device=logp_V.device)
    rest = logp_V.double().exp().index_fill(0, children, 0.0).sum()
    return float(rest) + sum(math.exp(-child.cost) for child in node.children.values())


def drawn(
    prompt: DecodingPrompt, logits_V: Float[Tensor, "V"], answer: Sequence[int], **sampling: Any
) -> Float[Tensor, "V"]:
    """Return the probabilities with which the server would draw the next token."""
    lm = prompt.inside.lm
    chosen = sampler(vocabulary=lm.tokenizer.size, **sampling)
    logits_1V = logits_V[None].double()
    kept_V = chosen.filtered(logits_1V, History.of([[*prompt.ids, *answer]], logits_1V))[0]
    if not chosen.draws:
        return torch.nn.functional.one_hot(kept_V.argmax(), len(kept_V)).double()
    return kept_V.softmax(-1)
