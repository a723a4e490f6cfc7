"""The law of the doors: whichever way a text comes in, the model reads the same ids, those of its tokenizer's file."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers
import torch
from tokenizers import models, pre_tokenizers, processors
from torch import Tensor, nn

from orrery.exchange.reading.read import Stored
from orrery.laws.evidence import Evidence, exactly_equal
from orrery.laws.models import require, spec_of
from orrery.laws.place import device
from orrery.nn.inputs import Tokens
from orrery.text.tokenizer import Tokenizer

CONVENTIONS = ("<s> $A </s>", "$A </s>", "$A")
"""What tokenizers put around a text: Llama's with both of its tokens, T5's, GPT-2's."""

CONTROL = ("<s>", "</s>", "<unk>", "<mask>")
WORDS = ("the", "cat", "sat", "on", "a", "mat")
TEXT = "the cat sat on a"
WHOLE = 1 + len(TEXT.split())
"""Tokens of the text, and the one that begins it."""

Door = Callable[[Any], Any]

WRITING: Mapping[str, Door] = {
    "generate": lambda lm: lm.generate(TEXT, max_new_tokens=1),
    "generations": lambda lm: lm.generations([TEXT], max_new_tokens=1),
    "search": lambda lm: lm.search([TEXT], max_new_tokens=1),
    "tree": lambda lm: lm.tree(TEXT, max_new_tokens=1),
}
"""Doors of every model that writes."""

DECODING: Mapping[str, Door] = {
    "speculate": lambda lm: lm.speculate(TEXT, "lookup", max_new_tokens=1),
    "contrastive_search": lambda lm: lm.contrastive_search(TEXT, max_new_tokens=1),
    "pipeline": lambda lm: _pipeline(lm, "text-generation", max_new_tokens=1, do_sample=False),
}
"""Doors of a model that reads and writes one row."""

PREDICTING: Mapping[str, tuple[Door, slice]] = {
    "score": (lambda lm: lm.score(TEXT), slice(None)),
    "cloze": (lambda lm: lm.cloze("the cat __ on a", ["sat"]), slice(WHOLE)),
    "likelihoods": (lambda lm: lm.likelihoods([("", TEXT)]), slice(WHOLE - 1)),
    "text_likelihoods": (lambda lm: lm.text_likelihoods([TEXT]), slice(WHOLE - 1)),
}
"""Doors that ask how probable each word is, and how much of the row they read.

A token that begins a text stands before it in any case. What stands behind it is scored with the text alone; the last
word of a likelihood is predicted, and not read.
"""

BEHIND: Mapping[str, Door] = {"likelihoods behind a context": lambda lm: lm.likelihoods([("the cat", " sat on a")])}
"""A door behind which the context's first word is given, and needs no token before it."""

IN_A_ROW: Mapping[str, Door] = {"perplexity": lambda lm: _perplexity(lm)}
"""A door behind which texts stand one after another, each with an end token where nothing begins the next."""


def check(family: str) -> Iterator[Evidence]:
    """Send one text through every door of the family's tiny model, and count those behind which it reads other ids."""
    from orrery.language_model.model import LanguageModel

    spec = spec_of(family)
    require(isinstance(next(iter(spec.inputs.values())), Tokens), "it reads no text")
    model = spec.build(0).to(device()).eval()
    for around in CONVENTIONS:
        content = tokenizer_json(around)
        lm = LanguageModel(Stored(Path(family), model, family, tokenizer=Tokenizer(content), kernel="eager"))
        framed = tokenizers.Tokenizer.from_str(content).encode(TEXT).ids
        expected = {name: (door, framed) for name, door in doors_of(spec).items()}
        if spec.writes and not spec.reads_source:
            opens = around.startswith("<s>")
            predicted = framed if opens else [CONTROL.index("<s>"), *framed]
            expected |= {name: (door, predicted[part]) for name, (door, part) in PREDICTING.items()}
            expected |= {name: (door, framed[: WHOLE - 2 + opens]) for name, door in BEHIND.items()}
            expected |= {name: (door, predicted[: WHOLE - opens]) for name, door in IN_A_ROW.items()}
        wrong = [name for name, (door, ids) in expected.items() if not _reads(lm, door, ids)]
        named = f": {', '.join(wrong)}" * bool(wrong)
        yield exactly_equal(f"{around}: {len(expected)} doors, read otherwise{named}", "doors", family, len(wrong))


def doors_of(spec: Any) -> dict[str, Door]:
    """Return the doors of a model that read a text as it stands in the file of its tokenizer."""
    if spec.reads_source:
        return {**WRITING, "trace": lambda lm: lm.trace((TEXT, "the"))}
    if spec.writes:
        return {**WRITING, **DECODING, "trace": lambda lm: lm.trace(TEXT)}
    return {"trace": lambda lm: lm.trace(TEXT), "pipeline": lambda lm: _pipeline(lm, "feature-extraction")}


def tokenizer_json(around: str) -> str:
    """Return the file of a tokenizer of words that puts tokens around a text, as another library writes it."""
    made = tokenizers.Tokenizer(models.WordLevel({token: n for n, token in enumerate((*CONTROL, *WORDS))}, "<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(list(CONTROL))
    special = [(token, CONTROL.index(token)) for token in ("<s>", "</s>")]
    made.post_processor = processors.TemplateProcessing(around, f"{around} $B", special)
    return str(made.to_str())


def _reads(lm: Any, door: Door, expected: list[int]) -> bool:
    """Say whether the first row that a model reads behind a door is what was expected."""
    seen: list[list[int]] = []

    def hear(module: nn.Module, given: tuple[Any, ...]) -> None:
        if given and isinstance(given[0], Tensor) and given[0].dim() == 2 and not given[0].is_floating_point():
            seen.append(given[0][0].tolist())

    heard = [part.register_forward_pre_hook(hear) for part in lm.model.modules()]
    try:
        with torch.no_grad():
            door(lm)
    finally:
        for one in heard:
            one.remove()
    return seen[:1] == [expected]


def _pipeline(lm: Any, task: str, **settings: Any) -> Any:
    from orrery.tasks import pipeline

    return pipeline(task, lm)(TEXT, **settings)


def _perplexity(lm: Any) -> Any:
    from orrery.evaluation.perplexity import evaluate_perplexity

    return evaluate_perplexity(lm, [TEXT])
