"""A model as Ollama's clients are told of it: size, kind of numbers, context, and what it can do."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from orrery.errors import OrreryError
from orrery.exchange.reading.generation_settings import Wishes
from orrery.exchange.reading.inventory import ListedModel, inventory
from orrery.exchange.stored import reads_apart
from orrery.serving.abilities import CHAT
from orrery.serving.errors import ApiError
from orrery.serving.ollama_requests import LATEST
from orrery.serving.served import Served
from orrery.serving.thinking import thinking
from orrery.text.chat.reasoning import reasoning_marks
from orrery.text.infill import infill_of
from orrery.tuning import numbers_of

VERSION = "0.33.0"
"""The version of Ollama's interface that is answered: clients refuse to speak to one that they call too old."""
FOREVER = "9999-12-31T23:59:59Z"
"""When a model is unloaded that stays for as long as the server runs."""
_UNITS = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K"))
_PARAMETERS = {"temperature": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p"}


def card(served: Served, name: str) -> dict[str, Any]:
    """Return a model or an adapter as the list of all has it."""
    listed = _listed_model(served)
    return {
        **_called(name),
        "modified_at": _modified(served),
        "size": listed.size,
        "digest": _digest(served, listed, name),
        "details": details(served, listed, name),
        "capabilities": capabilities(served),
    }


def running(served: Served, name: str) -> dict[str, Any]:
    """Return a model as the list of those in memory has it."""
    listed = _listed_model(served)
    return {
        **_called(name),
        "size": listed.size,
        "digest": _digest(served, listed, name),
        "details": details(served, listed, name),
        "expires_at": FOREVER,
        "size_vram": listed.size if served.lm.device.type != "cpu" else 0,
        "context_length": served.lm.context,
    }


def described(served: Served, name: str) -> dict[str, Any]:
    """Return all that is told of one model."""
    listed = _listed_model(served)
    kind = listed.family or "unknown"
    return {
        "modelfile": f"# served by orrery\nFROM {name}\n",
        "parameters": _parameters(Wishes(served.stored.generation)),
        "template": served.template.source if _chats(served) else "",
        "details": details(served, listed, name),
        "model_info": {
            "general.architecture": kind,
            "general.parameter_count": listed.parameters,
            f"{kind}.context_length": served.lm.context,
            f"{kind}.embedding_length": served.lm.model.spec.width,
        },
        "capabilities": capabilities(served),
        "modified_at": _modified(served),
    }


def details(served: Served, listed: ListedModel, name: str) -> dict[str, Any]:
    """Return the kind of a model."""
    return {
        "parent_model": "" if name == served.name else served.name,
        "format": "gguf" if listed.place.is_file() else "safetensors",
        "family": listed.family,
        "families": [listed.family],
        "parameter_size": _counted(listed.parameters),
        "quantization_level": listed.numbers[0] if listed.numbers else "unknown",
        "context_length": served.lm.context,
        "embedding_length": served.lm.model.spec.width,
    }


def capabilities(served: Served) -> list[str]:
    """Return what a model can do, in Ollama's words."""
    if served.worker is None:
        return ["embedding"]
    chats = _chats(served)
    able = {
        "completion": True,
        "tools": chats,
        "insert": not reads_apart(served.stored) and infill_of(served.lm.tokenizer) is not None,
        "thinking": chats and _thinks(served.template.source),
        "vision": served.pictures is not None,
    }
    return [name for name, can in able.items() if can]


def _chats(served: Served) -> bool:
    """Say whether a model has conversations in a template; one that sees takes a picture alone."""
    return CHAT in served.routes and served.pictures is None


def _thinks(source: str) -> bool:
    try:
        return reasoning_marks(source) is not None or bool(thinking(source, "low"))
    except ApiError:
        return False


def _called(name: str) -> dict[str, str]:
    tagged = name if ":" in name.rpartition("/")[2] else f"{name}{LATEST}"
    return {"name": tagged, "model": tagged}


def _listed_model(served: Served) -> ListedModel:
    """Return what the heads of the model's files say; of one that is in memory alone, what its weights are."""
    try:
        listed = next(inventory([served.stored.folder]), None)
    except (OrreryError, OSError):
        listed = None
    if listed is not None and listed.parameters:
        return listed
    weights = list(served.lm.model.parameters())
    kinds = tuple(sorted({str(one.dtype).removeprefix("torch.") for one in weights}))
    size = sum(one.numel() * one.element_size() for one in weights)
    numbers = numbers_of(served.lm.model)
    return ListedModel(served.name, served.stored.folder, size, served.lm.family or "", numbers, kinds)


def _digest(served: Served, listed: ListedModel, name: str) -> str:
    """Return what tells one model from another by its configuration, sizes, tokenizer and name."""
    facts = [
        dict(served.lm.config or {}),
        listed.size,
        listed.parameters,
        listed.numbers,
        served.lm.tokenizer.fingerprint,
    ]
    return hashlib.sha256(json.dumps([*facts, name], sort_keys=True, default=str).encode()).hexdigest()


def _modified(served: Served) -> str:
    try:
        changed = served.stored.folder.stat().st_mtime
    except OSError:
        changed = served.created
    return datetime.fromtimestamp(changed, UTC).isoformat().replace("+00:00", "Z")


def _counted(count: int) -> str:
    return next((f"{count / size:.3g}{unit}" for size, unit in _UNITS if count >= size), str(count))


def _parameters(wishes: Wishes) -> str:
    """Return how the model's files draw, one setting a line."""
    said = wishes.sampling
    if not said["temperature"]:
        return ""
    return "\n".join(f"{theirs} {said[own]}" for own, theirs in _PARAMETERS.items() if said.get(own) is not None)
