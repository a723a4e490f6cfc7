"""Contrastive search: the probable token whose meaning is least like what stands already."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from orrery.errors import UsageError
from orrery.generation.answer_text import AnswerText
from orrery.generation.constraints import Place
from orrery.generation.filters import VocabularyLimit
from orrery.generation.generate import beginnings, check_logits, check_prompts
from orrery.generation.row import Generation, Limits, Row
from orrery.nn.context import Execution
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer


class _Final:
    """What a call has put out before its head, as the taps show it."""

    def __init__(self) -> None:
        self.x_BLD = torch.empty(0, 0, 0)

    def __call__(self, key: str, value: Tensor) -> Tensor:
        if key == "final":
            self.x_BLD = value
        return value


@torch.no_grad()
def contrastive_search(
    model: Any,
    prompt: Sequence[int],
    tokenizer: Tokenizer,
    limits: Limits,
    *,
    top_k: int = 4,
    alpha: float = 0.6,
    show: Callable[[str], None] | None = None,
    device: torch.device | None = None,
) -> Generation:
    """Take ``argmax (1 - alpha) p(v) - alpha max_j cos(h_v, h_j)`` among the ``top_k`` most probable (Su et al. 2022).

    ``h_v`` is the final vector of the model behind ``v``, ``h_j`` that of each earlier token of the row: what says the
    same again is penalised, so that a text does not fall into a loop. It draws nothing. Each candidate is read in one
    step of ``top_k`` rows. The last token that fits a context is chosen by probability, for it is not read.

    Args:
        model: what writes, dropout off.
        prompt: token ids; of an encoder-decoder the source.
        tokenizer: turns the answer into text.
        limits: when it ends.
        top_k: candidates a step.
        alpha: the share of the penalty, in [0, 1]; 0 is greedy.
        show: called with each piece of text as soon as it is certain.
        device: where the model is.

    Raises:
        UsageError: an empty prompt, one longer than the context, or a setting outside its range.
        RunError: the model's logits are not numbers.
    """
    check_prompts([prompt], limits)
    if top_k < 1 or not 0 <= alpha <= 1:
        raise UsageError(f"top_k = {top_k}, alpha = {alpha} is not possible", "top_k is at least 1, alpha from 0 to 1")
    began, final = perf_counter(), _Final()
    looking = Execution(taps=final)
    logits_1V, session = model.start(torch.tensor([list(prompt)], device=device), limits.context, execution=looking)
    room = limits.context - session.lengths[0]
    row = Row(room, AnswerText(StreamDecoder(tokenizer), limits.stop, show), limits, began)
    begun, logits_V, earlier_LD = beginnings(model, [prompt])[0], logits_1V[0], final.x_BLD[0]
    spelled = VocabularyLimit(tokenizer.size)
    while True:
        check_logits(logits_V)
        where = Place(begun, row.ids, limits.max_new_tokens)
        free_V = row.guided(limits.constraints(spelled(logits_V[None]), [where])[0])
        p_k, ids_k = free_V.softmax(-1).topk(min(top_k, len(free_V)))
        if len(row.ids) == room:
            row.take(int(ids_k[0]))
            return row.result()
        session = session.select([0] * len(ids_k))
        logits_kV = model.step(ids_k[:, None], session, execution=looking)[:, -1]
        new_kD = final.x_BLD[:, 0]
        best = int(_scores(p_k, new_kD, earlier_LD, alpha).argmax())
        if not row.take(int(ids_k[best])):
            return row.result()
        session, logits_V = session.select([best]), logits_kV[best]
        earlier_LD = torch.cat([earlier_LD, new_kD[best : best + 1]])


def _scores(
    p_k: Float[Tensor, "k"], new_kD: Float[Tensor, "k D"], earlier_LD: Float[Tensor, "L D"], alpha: float
) -> Float[Tensor, "k"]:
    """Return what each candidate is ranked by; one that is impossible comes last."""
    likeness_k = cosine_similarity(new_kD[:, None], earlier_LD, dim=-1).amax(-1)
    return ((1 - alpha) * p_k - alpha * likeness_k).masked_fill(p_k == 0, float("-inf"))
