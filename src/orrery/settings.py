"""The few settings that come from the environment, each read here and nowhere else."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

DISTRIBUTION = "orrery-lm"
"""What pip calls this program: ``orrery`` alone is another's on PyPI."""

PREFIX = "ORRERY_"
"""With which the names of our own variables begin."""

OLLAMA_SERVICE = Path("/usr/share/ollama")
"""Home of the user as whom Ollama's service runs on Linux."""

KERNELS = 64
"""How many compiled products oneDNN, and torch for it, keep at hand; each is 0.3 MB in either.

Left to themselves both keep 1,024, one for every size of a matrix that came by. Batches of sentences have new sizes at
almost every step, and what a step leaves between its large tensors keeps the system from having them back: training
RNNsearch grew by gigabytes.
"""


def bound_kernel_caches() -> None:
    """Bound what is kept of compiled products, unless the environment says how many; before the first one is made."""
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(KERNELS))


def step_kernel() -> str:
    """How models write one token after another where nobody says: ``ORRERY_KERNEL``, by default ``auto``."""
    return os.environ.get("ORRERY_KERNEL") or "auto"


def data_folder() -> Path:
    """Folder of the named data sets: ``ORRERY_DATA``, by default ``data/`` in the working directory."""
    return Path(os.environ.get("ORRERY_DATA") or "data")


def runs_folder() -> Path:
    """Folder of the training runs: ``ORRERY_RUNS``, by default ``runs/`` in the working directory."""
    return Path(os.environ.get("ORRERY_RUNS") or "runs")


def hub_cache() -> Path:
    """Folder of what was fetched from the Hugging Face hub: ``HF_HUB_CACHE``, else ``hub/`` in ``HF_HOME``."""
    home = os.environ.get("HF_HOME")
    if home is None:
        home = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface")
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub")


def ollama_stores() -> list[Path]:
    """Folders where Ollama keeps models: ``OLLAMA_MODELS``, else the user's own and that of its service on Linux."""
    if given := os.environ.get("OLLAMA_MODELS"):
        return [Path(given)]
    return [home / ".ollama/models" for home in (Path.home(), OLLAMA_SERVICE)]


def lm_studio_homes() -> list[Path]:
    """Folders that LM Studio may call its own: what its pointer names, and where it was in newer and older versions."""
    homes = [Path.home() / ".lmstudio", Path.home() / ".cache/lm-studio"]
    try:
        named = (Path.home() / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        named = ""
    return [Path(named), *homes] if named and "\0" not in named else homes


def other_stores() -> list[Path]:
    """Folders where llama.cpp (``LLAMA_CACHE``), GPT4All and Jan keep GGUF files and folders of MLX."""
    home, environment = Path.home(), os.environ
    data = {"darwin": home / "Library/Application Support", "win32": Path(environment.get("APPDATA") or home)}
    cache = {"darwin": home / "Library/Caches", "win32": Path(environment.get("LOCALAPPDATA") or home)}
    kept = data.get(sys.platform) or Path(environment.get("XDG_DATA_HOME") or home / ".local/share")
    passing = cache.get(sys.platform) or Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    return [
        Path(environment.get("LLAMA_CACHE") or passing / "llama.cpp"),
        (passing if sys.platform == "win32" else kept) / "nomic.ai/GPT4All",
        *(kept / "Jan/data" / engine / "models" for engine in ("llamacpp", "mlx")),
    ]


def cache_folder() -> Path:
    """Folder of what can be made again, such as machine code: ``orrery/`` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "orrery"


def keep_compiled_blocks() -> str:
    """Have torch keep what it compiles in the user's cache folder, unless the environment says where; return where."""
    return os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder() / "inductor"))


def api_key() -> str | None:
    """The key that clients of a server have to show: ``ORRERY_API_KEY``; there is none where it is empty."""
    return os.environ.get("ORRERY_API_KEY") or None


def overriding(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the variables that change a key of a recipe: those with a double underscore, and the seed."""
    names = [name for name in sorted(environment) if name.startswith(PREFIX)]
    return [(name, environment[name]) for name in names if "__" in name or name == f"{PREFIX}SEED"]


def install(extra: str) -> str:
    """Return the command that adds an extra to this installation; pip reads from what is installed what it brings."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
