"""What `orrery plan --measure` predicts of a step of training beside what it measures, for fourteen shapes.

    python benchmarks/plan_measured.py --output benchmarks/plan_measured.json     (all shapes, one thread: six minutes)
    python benchmarks/plan_measured.py --shapes lstm t5 --steps 9 --threads 2

Two models of GPT-2's kind, a Llama, a BERT, two encoder-decoders (the original Transformer and a T5) and two that carry
states instead of attending (an LSTM, gated linear attention) were looked at while the samples of the calibration were
chosen; `HELD_BACK`, among them GPT-2 in its published size, were measured once all was settled. One calibration of the
machine serves all. Memory should be within 10 %, time within 20 %. With one thread seconds are the processor's own,
which other work on the machine disturbs least.
"""

import argparse
import sys
from dataclasses import asdict
from typing import Any

import torch
from _record import Record, parsed, parser

from orrery.families import load_family
from orrery.kernels.processor import this_processor
from orrery.planning.measure import ComparedPrediction, calibration, compare
from orrery.planning.whole_step import WholeStep
from orrery.training.precision import choose_precision

MEMORY, TIME = 0.10, 0.20
"""The most by which a prediction may miss."""

SHAPES: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "gpt2-small": ("gpt2", 4, 128, {"vocab_size": 4000, "n_positions": 128, "n_embd": 256, "n_layer": 6, "n_head": 4}),
    "gpt2-wide": ("gpt2", 2, 256, {"vocab_size": 8000, "n_positions": 256, "n_embd": 512, "n_layer": 6, "n_head": 8}),
    "llama": (
        "llama", 2, 256,
        {"vocab_size": 8000, "hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 6,
         "num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 256},
    ),
    "bert": (
        "bert", 8, 128,
        {"vocab_size": 8000, "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 6,
         "num_attention_heads": 4, "max_position_embeddings": 128},
    ),
    "transformer": (
        "transformer", 8, 64,
        {"vocab_size": 8000, "d_model": 256, "d_ff": 1024, "num_layers": 4, "num_heads": 4,
         "max_position_embeddings": 128},
    ),
    "t5": (
        "t5", 4, 128,
        {"vocab_size": 8000, "d_model": 384, "d_kv": 64, "d_ff": 1024, "num_layers": 4, "num_decoder_layers": 4,
         "num_heads": 6},
    ),
    "lstm": ("lstm", 16, 64, {"vocab_size": 8000, "hidden_size": 512, "num_layers": 2}),
    "gla": (
        "gla", 4, 256,
        {"vocab_size": 4000, "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 4, "num_heads": 4,
         "key_head_dim": 32, "value_head_dim": 64},
    ),
}  # fmt: skip
"""Family, rows, tokens of a row, and the sizes."""
HELD_BACK: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "gpt2-124m": ("gpt2", 1, 512, {}),
    "bart": (
        "bart", 4, 96,
        {"vocab_size": 6000, "d_model": 320, "encoder_layers": 3, "decoder_layers": 5, "encoder_attention_heads": 5,
         "decoder_attention_heads": 5, "encoder_ffn_dim": 1280, "decoder_ffn_dim": 1280,
         "max_position_embeddings": 128},
    ),
    "mamba": ("mamba", 2, 128, {"vocab_size": 5000, "hidden_size": 320, "state_size": 16, "num_hidden_layers": 4}),
    "gru": ("gru", 24, 48, {"vocab_size": 6000, "hidden_size": 384, "num_layers": 3}),
    "mixtral": (
        "mixtral", 4, 96,
        {"vocab_size": 6000, "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
         "max_position_embeddings": 128},
    ),
    "gpt2-deep": ("gpt2", 16, 64, {"vocab_size": 1000, "n_positions": 64, "n_embd": 160, "n_layer": 14, "n_head": 4}),
}  # fmt: skip
"""Measured once the calibration was settled."""


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    record = Record(options)
    precision = choose_precision(options.dtype, "cpu", this_processor(), options.threads)
    here = calibration(precision)
    rows = []
    for name in options.shapes:
        family, count, length, config = (SHAPES | HELD_BACK)[name]
        spec = load_family(family).spec(config)
        compared = compare(WholeStep(spec, count, length, "adamw", precision), here, options.steps)
        rows.append({"shape": name, "family": family, "rows": count, "length": length} | asdict(compared))
        print(f"{name:12} {cells(compared)}", flush=True)
    record.write({"dtype": options.dtype, "threads": options.threads, "steps": options.steps, "rows": rows})
    sys.exit(int(any(missed(row) for row in rows)))


def cells(compared: ComparedPrediction) -> str:
    """Return a line: bytes of tensors, of the process, seconds; each predicted, measured, and by how much it missed."""
    parts = ((compared.tensors, 1e6, "MB"), (compared.process, 1e6, "MB"), (compared.seconds, 1, "s"))
    return "   ".join(
        f"{one.predicted / unit:8.3f} {one.measured / unit:8.3f} {name} {one.miss:+6.1%}" for one, unit, name in parts
    )


def missed(row: dict[str, Any]) -> bool:
    """Say whether a prediction is further off than its bound."""
    bounds = {"tensors": MEMORY, "process": MEMORY, "seconds": TIME}
    return any(abs(row[key]["predicted"] / row[key]["measured"] - 1) > bound for key, bound in bounds.items())


def parse() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--shapes", nargs="*", choices=[*SHAPES, *HELD_BACK], default=[*SHAPES, *HELD_BACK])
    made.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    made.add_argument("--threads", type=int, default=1)
    made.add_argument("--steps", type=int, default=5)
    return parsed(made, {"shapes": ["gpt2-small"], "steps": 1})


if __name__ == "__main__":
    main()
