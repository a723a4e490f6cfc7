"""Speeds that nobody measured: ours takes half of a peer's seconds."""

from orrery.studies.bench.generating import GenerationSpeed
from orrery.studies.bench.machine import MachineLimits
from orrery.studies.bench.rounds import Case, Series

MACHINE = MachineLimits("a processor", ("avx2",), 2, 0.0, (10.0, 11.0), {"float32": 100.0})
WRITING, READING = Case(2, 10, 5), Case(1, 20, 1)
MEASURED = GenerationSpeed(
    "gpt2-tiny in float32",
    "eager steps",
    MACHINE,
    (4.0, 5.0),
    [
        [Series("orrery", WRITING, [1.0], [3.0], []), Series("transformers", WRITING, [2.0], [6.0], [])],
        [Series("orrery", READING, [0.5], [0.5], []), Series("transformers", READING, [1.0], [1.0], [])],
    ],
    [10**9, 10**9],
    {"transformers": (15, 16)},
)
"""Ours takes half of a peer's seconds; two steps a second read a gigabyte each of five."""
