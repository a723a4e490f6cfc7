"""What the processor of this machine is, as the system tells it."""

import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class Processor:
    """What the processor can do: its maker and its instruction sets, as Linux names them."""

    vendor: str
    flags: frozenset[str]

    @property
    def multiplies_bfloat16(self) -> bool:
        """Whether it has an instruction for products of bfloat16 numbers."""
        return bool(self.flags & {"avx512_bf16", "amx_bf16", "bf16"})


@lru_cache(maxsize=1)
def this_processor() -> Processor:
    """Read the maker and the instruction sets of this processor; empty where the system does not tell."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if platform.system() == "Linux" else []
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return Processor(facts.get("vendor_id", ""), frozenset((facts.get("flags") or facts.get("Features", "")).split()))
