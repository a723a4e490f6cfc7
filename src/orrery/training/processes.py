"""Which process of a run this is, as ``torchrun``, Slurm or MPI says it in the environment; imports no torch."""

import os

from orrery.errors import UsageError

STARTERS = (
    {"WORLD_SIZE": "SLURM_STEP_NUM_TASKS", "RANK": "SLURM_PROCID", "LOCAL_RANK": "SLURM_LOCALID"},
    {
        "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
        "RANK": "OMPI_COMM_WORLD_RANK",
        "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
    },
    {"WORLD_SIZE": "PMI_SIZE", "RANK": "PMI_RANK", "LOCAL_RANK": "MPI_LOCALRANKID"},
)
"""What ``srun``, and ``mpirun`` of Open MPI and of MPICH and Intel, call the numbers of ``torchrun``."""


def processes() -> int:
    """Return how many processes were started for a run: 1 without ``torchrun`` or the like.

    Raises:
        UsageError: the environment says how many, and not which of them this one is.
    """
    count = environment_number("WORLD_SIZE", 1)
    if count != 1 and environment_number("RANK", count) >= count:
        message = f"WORLD_SIZE is {count:,}, and RANK is no number below it"
        raise UsageError(message, "start the processes with torchrun, or unset WORLD_SIZE")
    return count


def leads() -> bool:
    """Say whether this process is the one that writes, scores and speaks for all."""
    return processes() == 1 or environment_number("RANK", 0) == 0


def environment_number(name: str, usual: int) -> int:
    """Return a number that ``torchrun`` sets.

    Where it has not, and ``MASTER_ADDR`` says that processes are to find each other, it is that of `STARTERS`.

    Raises:
        UsageError: it is none.
    """
    if "WORLD_SIZE" not in os.environ and "MASTER_ADDR" in os.environ:
        name = next((one[name] for one in STARTERS if one["WORLD_SIZE"] in os.environ and name in one), name)
    text = os.environ.get(name, str(usual))
    if not text.isascii() or not text.isdecimal():
        raise UsageError(f"{name} is {text[:40]!r}, and no number", "start the processes with torchrun, or unset it")
    return int(text)
