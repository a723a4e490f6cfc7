"""Cut a text at random, so that a model trained on it meets many cuts of one word (subword regularisation).

Papers: Kudo 2018 (Unigram); Provilkov et al. 2020 (BPE-dropout). Seedable, as the engine's own dropout is not.
"""

from collections.abc import Callable, Mapping
from itertools import groupby
from random import Random
from typing import Any

from orrery.errors import UsageError
from orrery.text.algorithms.dropout import drop
from orrery.text.algorithms.lattice import Lattice
from orrery.text.stages import Stages
from orrery.text.tokenizer import Tokenizer

Draw = Callable[[str, Random], list[str]]
"""Cut one word into pieces at random."""


class CutSampler:
    """Texts to ids with a rule that cuts words at random; equal generators give equal ids."""

    def __init__(self, tokenizer: Tokenizer, draw: Draw) -> None:
        """Take `bpe_dropout` or `unigram` for a ready one. Raises `UsageError` for added words, as `Stages` does."""
        self._stages = Stages(tokenizer)
        self._draw = draw
        self._spell = _Spelling(tokenizer.definition["model"])

    def encode(self, text: str, rng: Random) -> list[int]:
        """Return the ids of one random cut of ``text``."""
        return [id for word in self.words(text) for id in self.cut(word, rng)]

    def words(self, text: str) -> list[str]:
        """Return the pieces of a text that no token crosses, as `Stages.words` does."""
        return self._stages.words(text)

    def cut(self, word: str, rng: Random) -> list[int]:
        """Return the ids of one random cut of one of the `words` of a text."""
        return self._spell(self._draw(word, rng))


def bpe_dropout(tokenizer: Tokenizer, probability: float = 0.1) -> CutSampler:
    """Leave each merge out with ``probability``: 0 encodes as the tokenizer does, 1 into characters or bytes.

    Raises:
        UsageError: no BPE, a BPE that marks word ends inside its pieces, or a number outside 0 to 1.
    """
    model = _model(tokenizer, "BPE", "unigram()")
    if not 0 <= probability <= 1:
        raise UsageError(f"a merge cannot be left out with probability {probability}", "choose 0 to 1; the paper: 0.1")
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise UsageError("this BPE tokenizer marks the ends of words in its pieces", "use one that keeps the space")
    pairs = [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in model["merges"]]
    ranks = {(left, right): rank for rank, (left, right) in enumerate(pairs)}
    words_kept = model["vocab"] if model.get("ignore_merges") else {}

    def draw(word: str, rng: Random) -> list[str]:
        # A word that the tokenizer takes whole counts as one more merge.
        if word in words_kept and rng.random() >= probability:
            return [word]
        return drop(word, ranks, probability, rng)

    return CutSampler(tokenizer, draw)


def unigram(tokenizer: Tokenizer, alpha: float = 0.1) -> CutSampler:
    """Draw each cut with its probability to the power ``alpha``, over the sum of all cuts.

    Raises:
        UsageError: no Unigram tokenizer, or a negative ``alpha``.
    """
    lattice = lattice_of(tokenizer)
    if alpha < 0:
        raise UsageError(f"alpha {alpha} would prefer the worst cuts", "choose 0 or more; the paper: 0.1 to 0.5")
    return CutSampler(tokenizer, lambda word, rng: lattice.sample(word, alpha, rng))


def lattice_of(tokenizer: Tokenizer) -> Lattice:
    """Return the pieces of a Unigram tokenizer with their scores. Raises `UsageError` for any other."""
    return Lattice(dict(map(tuple, _model(tokenizer, "Unigram", "bpe_dropout()")["vocab"])))


def _model(tokenizer: Tokenizer, kind: str, other: str) -> Mapping[str, Any]:
    model: Mapping[str, Any] = tokenizer.definition["model"]
    if model["type"] != kind:
        raise UsageError(
            f"this is a {model['type']} tokenizer, not {kind}", f"use {other} for a tokenizer of that kind"
        )
    return model


class _Spelling:
    """The ids of pieces as the engine writes them: byte tokens, or unknown, for what is not in the vocabulary."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        vocabulary = model["vocab"]
        self._ids = (
            dict(vocabulary)
            if isinstance(vocabulary, Mapping)
            else {piece: id for id, (piece, _) in enumerate(vocabulary)}
        )
        unknown = model.get("unk_token")
        self._unknown: int | None = model.get("unk_id") if unknown is None else self._ids.get(unknown)
        self._bytes = bool(model.get("byte_fallback"))
        # The engine always writes neighbouring unknown characters as one in a Unigram model.
        self._fused = bool(model.get("fuse_unk", model["type"] == "Unigram"))

    def __call__(self, pieces: list[str]) -> list[int]:
        ids: list[int] = []
        for known, group in groupby(pieces, self._ids.__contains__):
            run = list(group)
            ids += [self._ids[piece] for piece in run] if known else self._outside(run)
        return ids

    def _outside(self, run: list[str]) -> list[int]:
        spelled = [[self._ids.get(f"<0x{byte:02X}>") for byte in piece.encode()] for piece in run]
        if self._bytes and all(id is not None for ids in spelled for id in ids):
            return [id for ids in spelled for id in ids if id is not None]
        if self._unknown is None:
            return []
        return [self._unknown] * (1 if self._fused else len(run))
