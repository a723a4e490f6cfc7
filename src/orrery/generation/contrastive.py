"""Contrastive search: the probable token whose meaning is least like what stands already."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from orrery.errors import UsageError
from orrery.generation.answer_text import AnswerText
from orrery.generation.filters import VocabularyLimit
from orrery.generation.generate import beginnings, check_prompts
from orrery.generation.next_token import Choice, write
from orrery.generation.row import Generation, GenerationRow, Limits
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
    began, seen = perf_counter(), _Final()
    logits_1V, session = model.start(
        torch.tensor([list(prompt)], device=device), limits.context, execution=Execution(taps=seen)
    )
    begun, room = beginnings(model, [prompt])[0], limits.context - session.lengths[0]
    row = GenerationRow(begun, room, AnswerText(StreamDecoder(tokenizer), limits.stop, show), limits, began)
    choice = _Contrast(model, session, seen, room, top_k, alpha)
    spelled = VocabularyLimit(tokenizer.size)
    while write([row], spelled(logits_1V), choice):
        logits_1V = choice.logits_1V
    return row.result()


@final
class _Contrast(Choice):
    """The candidate that is probable and unlike what stands already; it is read before it is chosen."""

    def __init__(self, model: Any, session: Any, seen: _Final, room: int, top_k: int, alpha: float) -> None:
        self._model, self._session, self._seen = model, session, seen
        self._room, self._top_k, self._alpha = room, top_k, alpha
        self._earlier_LD = seen.x_BLD[0]
        self.logits_1V = torch.empty(0, 0)

    def pick(self, places: Sequence[int], allowed_NV: Float[Tensor, "N V"]) -> list[int]:
        """Return the candidate; ``logits_1V`` are what the model says behind it."""
        p_k, ids_k = allowed_NV[0].softmax(-1).topk(min(self._top_k, allowed_NV.shape[1]))
        if self._room == 0:
            return [int(ids_k[0])]
        self._room -= 1
        session = self._session.select([0] * len(ids_k))
        logits_kV = self._model.step(ids_k[:, None], session, execution=Execution(taps=self._seen))[:, -1]
        new_kD = self._seen.x_BLD[:, 0]
        best = int(_scores(p_k, new_kD, self._earlier_LD, self._alpha).argmax())
        self._session, self.logits_1V = session.select([best]), logits_kV[best : best + 1]
        self._earlier_LD = torch.cat([self._earlier_LD, new_kD[best : best + 1]])
        return [int(ids_k[best])]


def _scores(
    p_k: Float[Tensor, "k"], new_kD: Float[Tensor, "k D"], earlier_LD: Float[Tensor, "L D"], alpha: float
) -> Float[Tensor, "k"]:
    """Return what each candidate is ranked by; one that is impossible comes last."""
    likeness_k = cosine_similarity(new_kD[:, None], earlier_LD, dim=-1).amax(-1)
    return ((1 - alpha) * p_k - alpha * likeness_k).masked_fill(p_k == 0, float("-inf"))
