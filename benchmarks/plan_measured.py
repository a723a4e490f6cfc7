"""What `orrery plan --measure` predicts of a step of training beside what it measures: eight shapes on this processor.

    python benchmarks/plan_measured.py                              (all shapes, one thread: about three minutes)
    python benchmarks/plan_measured.py --shapes lstm t5 --steps 9 --threads 2

Two models of GPT-2's kind, a Llama, a BERT, two encoder-decoders (the original Transformer and a T5) and two that carry
states instead of attending (an LSTM, gated linear attention). One calibration of the machine serves all. Memory should
be within 10 %, time within 20 %. With one thread seconds are the
processor's own, which other work on the machine disturbs least.
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch

from orrery.accounting.measure import compare
from orrery.accounting.speed import calibrate
from orrery.accounting.whole_step import WholeStep
from orrery.families import load_family
from orrery.kernels.processor import this_processor
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


def main() -> None:
    options = parse()
    torch.set_num_threads(options.threads)
    precision = choose_precision(options.dtype, "cpu", this_processor(), options.threads)
    speed = calibrate(precision)
    rows = []
    for name in options.shapes:
        family, count, length, config = SHAPES[name]
        spec = load_family(family).spec(config)
        row = {"shape": name, "family": family, "rows": count, "length": length}
        found = compare(WholeStep(spec, count, length, "adamw", precision), speed, options.steps)
        row |= {
            part: getattr(found, part)
            for part in ("peak", "seconds", "measured_peak", "measured_resident", "measured_seconds")
        }
        row |= {"memory_miss": found.memory_miss, "time_miss": found.time_miss}
        rows.append(row)
        print(
            f"{name:12} {found.peak / 1e6:8.1f} {found.measured_peak / 1e6:8.1f} MB {found.memory_miss:+7.1%}"
            f" {found.seconds:8.3f} {found.measured_seconds:8.3f} s {found.time_miss:+7.1%}",
            flush=True,
        )
    machine = {"processor": this_processor().vendor, "system": platform.system(), "cores": os.cpu_count()}
    made = {
        "dtype": options.dtype,
        "threads": options.threads,
        "steps": options.steps,
        "machine": machine,
        "rows": rows,
    }
    if options.json:
        Path(options.json).write_text(json.dumps(made, indent=1) + "\n")
    sys.exit(int(any(abs(row["memory_miss"]) > MEMORY or abs(row["time_miss"]) > TIME for row in rows)))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="*", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--json", help="a file for the record")
    return parser.parse_args()


if __name__ == "__main__":
    main()
