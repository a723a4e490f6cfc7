"""``orrery info``: what a bug report needs to know of this machine."""

import json as json_format
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import orrery
from orrery.settings import data_folder, runs_folder

_PACKAGES = ("torch", "numpy", "safetensors", "tokenizers", "transformers", "numba")
# The instructions that decide which matrix kernels a processor can run.
_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "bf16", "i8mm", "sve")
_MEBIBYTE = 2**20

Facts = dict[str, dict[str, Any]]


def info(*, json: bool = False) -> None:
    """Print versions, processor, memory, GPU and folders, as a bug report needs them.

    Args:
        json: Print one JSON object instead of lines.
    """
    facts = collect()
    print(json_format.dumps(facts, indent=2) if json else _lines(facts))


def collect() -> Facts:
    """Gather the facts of this machine by group; memory is in MiB, what is not there is None or empty."""
    return {
        "versions": _versions(),
        "processor": _processor(),
        "memory": _memory(),
        "torch": _torch(),
        "folders": _folders(),
    }


def _versions() -> dict[str, str | None]:
    versions = {"orrery": orrery.__version__, "python": platform.python_version()}
    return {**versions, **{name: _version(name) for name in _PACKAGES}, "system": platform.platform()}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> dict[str, Any]:
    facts = _table(Path("/proc/cpuinfo"))
    flags = set((facts.get("flags") or facts.get("Features") or "").split())
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "vendor": facts.get("vendor_id") or facts.get("CPU implementer") or platform.machine(),
        "name": facts.get("model name") or platform.processor(),
        "features": [feature for feature in _FEATURES if feature in flags],
        "cores": os.cpu_count(),
        "usable_cores": len(affinity(0)) if affinity else os.cpu_count(),
    }


def _memory() -> dict[str, int | None]:
    facts = _table(Path("/proc/meminfo"))
    return {
        "total_mib": _kib_to_mib(facts.get("MemTotal")),
        "available_mib": _kib_to_mib(facts.get("MemAvailable")),
    }


def _table(path: Path) -> dict[str, str]:
    """Read the ``key : value`` lines of a /proc file, first values kept; empty where there is none."""
    if not path.exists():
        return {}
    facts: dict[str, str] = {}
    for line in path.read_text().splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    return facts


def _kib_to_mib(value: str | None) -> int | None:
    return int(value.split()[0]) // 1024 if value else None


def _torch() -> dict[str, Any]:
    import torch

    devices = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return {
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda,
        "gpus": [f"{device.name}, {device.total_memory // _MEBIBYTE} MiB" for device in devices],
        "mps": torch.backends.mps.is_available(),
        "onednn": torch.backends.mkldnn.is_available(),
    }


def _folders() -> dict[str, Any]:
    data = data_folder()
    return {
        "program": sys.executable,
        "data": str(data),
        "data_sets": sorted(entry.name for entry in data.iterdir() if entry.is_dir()) if data.is_dir() else [],
        "runs": str(runs_folder()),
    }


def _lines(facts: Facts) -> str:
    rows = [(f"{group}.{key}", _text(value)) for group, part in facts.items() for key, value in part.items()]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
