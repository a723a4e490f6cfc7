"""The model that is made where none is named: a small decoder over items, as SASRec is."""

from typing import Any

WIDTH, BLOCKS, HEADS = 64, 2, 2
SHARE = 0.98
"""Of the histories, which a row holds whole."""
LEAST = 8
ROWS_IN_ALL = 200_000
"""Histories read in all, in 10 to 100 epochs."""
SIZE = 128


def sections(source: Any, longest: int, steps: int | None = None) -> dict[str, Any]:
    """Return the sections of a recipe for data of kind interactions.

    The shape is that of Kang and McAuley 2018 with GPT-2's blocks: learned positions, a norm in front of each sublayer,
    the head is the table of the items. Length and steps follow from the histories.
    """
    lengths = sorted(len(each.learned) for each in source.train)
    length = min(longest, max(LEAST, lengths[min(len(lengths) - 1, int(SHARE * len(lengths)))]))
    epochs = min(100, max(10, ROWS_IN_ALL // len(lengths)))
    steps = steps or max(100, epochs * len(lengths) // SIZE)
    every = max(1, steps // 10)
    config = {
        "n_embd": WIDTH, "n_layer": BLOCKS, "n_head": HEADS, "n_positions": length,
        "resid_pdrop": 0.1, "embd_pdrop": 0.1, "attn_pdrop": 0.0,
    }  # fmt: skip
    return {
        "model": {"family": "gpt2", "config": config},
        "tokenizer": {"kind": "word"},
        "batches": {"kind": "shifted", "length": length, "size": SIZE},
        "training": {
            "steps": steps,
            "optimizer": {"kind": "adamw", "rate": 3e-3, "betas": [0.9, 0.98], "weight_decay": 0.01},
            "schedule": {"kind": "cosine", "warmup": steps // 20, "final": 0.02},
            "final": "best",
        },
        "evaluation": {"every": every, "metrics": [{"kind": "ndcg", "seen": source.settings.seen}], "best": "ndcg"},
        "checkpoints": {"every": every, "keep": 1},
        "logging": {"every": max(1, every // 5)},
    }
