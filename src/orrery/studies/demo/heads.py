"""Where the model looks: the attention patterns of one pass, the heads worth a first look, and the checks."""

import re
from collections.abc import Iterable, Sequence

from jaxtyping import Float
from torch import Tensor

from orrery.data.corpora import Document
from orrery.errors import DataError
from orrery.inspection.trace import Trace
from orrery.language_model.model import LanguageModel
from orrery.studies.demo.findings import DemoHead, Sight
from orrery.text import Tokenizer

FEWEST, MOST = 12, 28
_SENTENCE = re.compile(r"(?<![\w.])[A-Z][a-z]+(?:,? [a-z'-]+)+\.(?!\w)")
_DECIMALS = 4


def look(lm: LanguageModel, sentence: str) -> Sight:
    """Return the inside of one pass over a sentence."""
    trace = lm.trace(sentence)
    patterns = head_patterns(trace)
    heads = [DemoHead(name, describe(pattern), rounded(pattern)) for name, pattern in patterns.items()]
    before = max(patterns, key=lambda name: on_the_one_before(patterns[name]))
    others = [name for name in patterns if name != before] or [before]
    further = max(others, key=lambda name: further_back(patterns[name]))
    chosen = [head for name in dict.fromkeys((before, further)) for head in heads if head.name == name]
    return Sight(list(trace.tokens), heads, chosen, list(trace.checks))


def head_patterns(trace: Trace) -> dict[str, Float[Tensor, "L S"]]:
    """Return the pattern of every head by its name, in order of depth."""
    return {
        f"block {path.split('.')[1]}, head {number}": pattern_LS
        for path in (key for key in trace if key.endswith(".pattern"))
        for number, pattern_LS in enumerate(trace[path][0].double().cpu())
    }


def on_the_one_before(pattern_LS: Float[Tensor, "L S"]) -> float:
    """Return the share of its weight that a head puts on the token just before, from the second token on."""
    return float(pattern_LS.diagonal(-1).mean())


def further_back(pattern_LS: Float[Tensor, "L S"]) -> float:
    """Return the share of its weight at least two tokens back, the first token left out, where idle heads rest."""
    return float(pattern_LS.tril(-2)[2:, 1:].sum(-1).mean())


def describe(pattern_LS: Float[Tensor, "L S"]) -> str:
    """Return the two shares in words."""
    return (
        f"{on_the_one_before(pattern_LS):.0%} of its weight on the token just before, "
        f"{further_back(pattern_LS):.0%} further back"
    )


def rounded(pattern_LS: Float[Tensor, "L S"]) -> list[list[float]]:
    """Return the numbers as they are written down."""
    return [[round(value, _DECIMALS) for value in row] for row in pattern_LS.tolist()]


def sentence_from(documents: Iterable[Document], tokenizer: Tokenizer) -> str:
    """Return the first plain sentence of a length that a picture can show, else the beginning of the text.

    Raises:
        DataError: there is no text.
    """
    text = "\n".join(document.text for document in documents)
    for match in _SENTENCE.finditer(" ".join(text.split())):
        if FEWEST <= len(tokenizer.encode(match.group())) <= MOST:
            return match.group()
    return beginning(tokenizer.encode(text.strip()[:1000]), tokenizer)


def beginning(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    """Return the text of the first tokens."""
    if len(ids) < 3:
        raise DataError("the held-back text is too short to look at", "give the demo more text")
    return tokenizer.decode(list(ids[:MOST]))
