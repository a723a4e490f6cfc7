"""Alignment: at which words of the source each written word looked (Bahdanau et al. 2015, figure 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.trace import Trace
from orrery.reports.figures import heat_map
from orrery.text import Tokenizer

_OTHERS = "align with RNNsearch, Luong or a Transformer"
_INSIDE_WORDS = "'\u2019-"


@dataclass(frozen=True)
class Alignment:
    """The words of a pair, and how much of its weight each target word gave to each source word.

    Attributes:
        source: the words that were read.
        target: the words that were written.
        weight_TS: rows of one; a target word of several tokens has the mean of their patterns.
    """

    source: Sequence[str]
    target: Sequence[str]
    weight_TS: Float[Tensor, "T S"]

    @property
    def places(self) -> list[int]:
        """For each target word the place of the source word that has most of its weight."""
        places: list[int] = self.weight_TS.argmax(-1).tolist()
        return places

    def figure(self) -> str:
        """Draw the weights, target words down and source words across, as an SVG element."""
        labels = {"rows": list(self.target), "columns": list(self.source)}
        return heat_map(self.weight_TS.tolist(), title="What each written word looked at", highest=1.0, **labels)


def align(trace: Trace, tokenizer: Tokenizer, source: Sequence[int], target: Sequence[int]) -> Alignment:
    """Return the alignment of a pair: the mean pattern of every head that looks at the source, summed over words.

    The row of a token is that of the step which predicts it, as Bahdanau et al. draw it.

    Args:
        trace: of a pass over both; the target begins with a token of its own.
        tokenizer: which spells the tokens.
        source: the tokens that were read.
        target: the tokens that were written.

    Raises:
        UsageError: there is nothing to align, or the model looks at no source or has made one vector of it.
    """
    patterns = [trace[key][0] for key in trace if key.endswith(".cross.pattern")]
    if not patterns:
        raise no_source()
    source_words, source_word_S = words_of(tokenizer, source)
    target_words, target_word_T = words_of(tokenizer, target)
    if not source_words or not target_words:
        raise UsageError("a blank text has no words to align", "give a sentence and its translation")
    # [heads, L, S] each; what stands before the words in the encoder states is the reader's last states.
    pattern_LS = torch.cat([pattern.flatten(0, -3).double().cpu() for pattern in patterns]).mean(0)
    if pattern_LS.shape[-1] < len(source):
        raise UsageError("this model has made one vector of the source", _OTHERS)
    pattern_TS = pattern_LS[: len(target), -len(source) :]
    to_source = torch.nn.functional.one_hot(torch.tensor(source_word_S)).double()
    to_target = torch.nn.functional.one_hot(torch.tensor(target_word_T)).double()
    weight_TS = (to_target / to_target.sum(0)).T @ pattern_TS @ to_source
    return Alignment(source_words, target_words, weight_TS / weight_TS.sum(-1, keepdim=True))


def no_source() -> UsageError:
    """Return the refusal of a model that reads and writes one row, or looks at no token of its source."""
    return UsageError("this model looks at no source while it writes", _OTHERS)


def words_of(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[list[str], list[int]]:
    """Return the words that tokens spell, and the word that each token belongs to; marks are words of their own."""
    words, word_of, before = [""], [], ""
    for end in range(1, len(ids) + 1):
        # Half a character decodes as U+FFFD until its other half has come.
        text = tokenizer.untidied(ids[:end]).rstrip("\ufffd")
        piece, before = text[len(before) :], text
        if words[-1] and piece and (piece[0].isspace() or _letter(piece[0]) != _letter(words[-1][-1])):
            words.append("")
        words[-1] += piece.strip()
        word_of.append(len(words) - 1)
    return (words, word_of) if word_of and words[-1] else (words[:-1], [min(word, len(words) - 2) for word in word_of])


def _letter(character: str) -> bool:
    return character.isalnum() or character in _INSIDE_WORDS
