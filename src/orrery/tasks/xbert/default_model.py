"""The model that is made where none is named: a small encoder."""

import re
from collections import Counter
from typing import Any

WIDTH, BLOCKS, HEADS = 128, 2, 4
WORDS = 8_000
ROWS_IN_ALL = 400_000
"""Texts read in all, in 5 to 60 epochs."""
SIZE = 64
SHARE = 0.98
"""Of the texts, which a row holds whole."""
LEAST = 16
OFTEN = 2
"""Uses of a word by which it is sure to become an id of its own, where there is room."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def sections(source: Any, longest: int, steps: int | None = None) -> dict[str, Any]:
    """Return the sections of a recipe for data of kind many_labels: BERT's shape, two blocks, the mean of the tokens.

    Length and steps follow from the texts; a word is taken for a token and a half. Texts of few words fill no
    vocabulary of a given size, so theirs is as large as they make it.
    """
    lengths = sorted(len(row.text.split()) for row in source.train)
    words = lengths[min(len(lengths) - 1, int(SHARE * len(lengths)))]
    length = min(longest, max(LEAST, 8 * -(-(3 * words // 2 + 2) // 8)))
    epochs = min(60, max(5, ROWS_IN_ALL // len(source.train)))
    steps = steps or max(100, epochs * len(source.train) // SIZE)
    every = max(1, steps // 5)
    uses = Counter(word for row in source.train for word in _WORD.findall(row.text.lower()))
    many = sum(count >= OFTEN for count in uses.values()) >= WORDS
    config = {
        "hidden_size": WIDTH, "num_hidden_layers": BLOCKS, "num_attention_heads": HEADS, "intermediate_size": 2 * WIDTH,
        "max_position_embeddings": length, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.0,
    }  # fmt: skip
    return {
        "model": {"family": "bert", "config": config, "heads": {"sequence": {"kind": "sequence", "pool": "mean"}}},
        "tokenizer": {"kind": "wordpiece", "vocabulary": WORDS if many else None, "lowercase": True, "frame": "bert"},
        "batches": {"kind": "padded", "length": length, "size": SIZE},
        "training": {
            "steps": steps,
            "optimizer": {"kind": "adamw", "rate": 1e-3, "betas": [0.9, 0.98], "weight_decay": 0.01},
            "schedule": {"kind": "cosine", "warmup": steps // 20, "final": 0.02},
            "final": "best",
        },
        "evaluation": {"every": every, "best": "accuracy"},
        "checkpoints": {"every": every, "keep": 1},
        "logging": {"every": max(1, every // 5)},
    }
