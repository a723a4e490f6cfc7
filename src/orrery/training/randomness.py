"""The states of the global generators as text."""

import random
import struct
from typing import Any

import numpy as np
import torch


def rng_state() -> dict[str, Any]:
    """Return the states of torch's, Python's and numpy's global generators, the long ones in hexadecimal."""
    version, words, gauss = random.getstate()
    name, keys, *rest = np.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state().numpy().tobytes().hex(),
        "python": [version, struct.pack(f"<{len(words)}I", *words).hex(), gauss],
        "numpy": [str(name), np.asarray(keys, "<u4").tobytes().hex(), *rest],
    }


def restore_rng(state: dict[str, Any]) -> None:
    """Set the global generators to what ``rng_state`` returned."""
    torch.set_rng_state(torch.frombuffer(bytearray.fromhex(state["torch"]), dtype=torch.uint8))
    version, words, gauss = state["python"]
    raw = bytes.fromhex(words)
    random.setstate((version, struct.unpack(f"<{len(raw) // 4}I", raw), gauss))
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, np.frombuffer(bytes.fromhex(keys), "<u4"), *rest))
