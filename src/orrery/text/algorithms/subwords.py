"""Byte-pair encoding and Unigram on characters, cut almost as for byte-level BPE: known characters decode exactly.

Differs from its cuts, GPT-2's: a mark stays with its letter. They would cut a Hindi word at each vowel.

Papers: Sennrich, Haddow and Birch 2016 (BPE); Kudo 2018 (Unigram). The engine trains BPE.
"""

import json
from collections.abc import Iterator

from tokenizers import Tokenizer, decoders, models, trainers

from orrery.errors import UsageError
from orrery.text.algorithms import bpe
from orrery.text.algorithms.characters import REPLACEMENT, UNKNOWN
from orrery.text.algorithms.unigram.training import learn
from orrery.text.chunks import word_counts

NEVER = -1000.0


def train_bpe(texts: Iterator[str], vocabulary: int, end: str) -> Tokenizer:
    """Learn merges of characters until the vocabulary is full or no pair occurs twice."""
    tokenizer = _prepared(models.BPE(unk_token=UNKNOWN))
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - 1, min_frequency=2, special_tokens=[UNKNOWN], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return _finished(tokenizer, end)


def train_unigram(texts: Iterator[str], vocabulary: int, end: str) -> Tokenizer:
    """Learn pieces and their log probabilities from counted words; the same in every run."""
    words = word_counts(texts, bpe.marked_words())
    characters, limit = len(set().union(*words)), vocabulary - 2
    if characters > limit:
        raise UsageError(
            f"unigram: the characters of this corpus alone fill {characters + 2:,} ids of {vocabulary:,}",
            "give a larger vocabulary, or train byte_bpe, which needs 256 bytes for any script",
        )
    scores = learn(words, limit, never=end) if words else {}
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    # So low that the five characters of the unknown token, written in a text, stay five characters.
    tokenizer = _prepared(models.Unigram([(UNKNOWN, NEVER), *best], unk_id=0))
    return _finished(tokenizer, end)


def _prepared(model: models.Model) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = bpe.marked_words()
    tokenizer.decoder = decoders.Sequence([decoders.Replace(UNKNOWN, REPLACEMENT), decoders.Fuse()])
    return tokenizer


def _finished(tokenizer: Tokenizer, end: str) -> Tokenizer:
    if tokenizer.token_to_id(end) is not None:
        raise UsageError(f"the corpus taught the piece {end!r}, the end token", "choose an end token no text holds")
    definition = json.loads(tokenizer.to_str())
    definition["added_tokens"] = []  # the trainers make <unk> a control token, which decoding would leave out
    tokenizer = Tokenizer.from_str(json.dumps(definition))
    # Outside the model's own pieces, so that no text that spells it gets the control id.
    tokenizer.add_special_tokens([end])
    return tokenizer
