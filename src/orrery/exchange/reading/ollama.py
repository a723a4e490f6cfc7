"""Models that Ollama keeps: a manifest names the GGUF file, and beside it how to write and what the model is told."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orrery.checkpoints.json_file import read_json, refuse
from orrery.errors import ModelFileError
from orrery.exchange.reading.stored import Stored
from orrery.schema.keys import Known
from orrery.schema.other_names import called_elsewhere
from orrery.schema.writing import at
from orrery.text.chat.folder import DEFAULT, with_default

_KINDS = "application/vnd.ollama.image."
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
_TEXT_LIMIT = 1_000_000
"""Bytes of what a model is told."""
_REFUSED = {
    "adapter": "has a LoRA of llama.cpp's form beside the model, which is not read",
    "tensor": "keeps its tensors one by one, as Ollama's own engine for a Mac does, and not as a GGUF file",
}
USUAL: Mapping[str, Any] = {"temperature": 0.8, "top_k": 40, "top_p": 0.9}
"""What Ollama draws with where neither a request nor a model says anything."""
_OTHERWISE = ("mirostat", "tfs_z")
"""Parameters that would change what is written, and are not built; 0 and 1 ask for nothing."""


@dataclass(frozen=True)
class Manifest:
    """What a manifest of Ollama's names.

    Attributes:
        path: where it lies.
        weights: the GGUF file.
        layers: the other files, by kind.
    """

    path: Path
    weights: Path
    layers: Mapping[str, Path]


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        ModelFileError: it is damaged, names a file that is missing or of another size, or a model of another form.
    """
    layers = read_json(path).get("layers")
    if not isinstance(layers, list) or not all(isinstance(layer, Mapping) for layer in layers):
        refuse(path, "names no layers, as a manifest of Ollama does")
    files: dict[str, Path] = {}
    for layer in layers:
        kind = str(layer.get("mediaType")).split(";")[0].removeprefix(_KINDS)
        if why := _REFUSED.get(kind):
            raise ModelFileError(f"{path} {why}", "take the GGUF file of the model that it was made from")
        if kind == "model" and kind in files:
            refuse(path, "names several models")
        files[kind] = _blob(path, layer)
    if "model" not in files:
        hint = "it runs elsewhere: ollama pull another one, or take a GGUF file"
        raise ModelFileError(f"{path} names no model on this machine", hint)
    return Manifest(path, files.pop("model"), files)


def _blob(path: Path, layer: Mapping[str, Any]) -> Path:
    found = _DIGEST.fullmatch(str(layer.get("digest")))
    if found is None:
        refuse(path, f"names the file {str(layer.get('digest'))[:80]!r}, and a sha256 is expected")
    blob = path.parents[4] / "blobs" / f"sha256-{found[1]}"
    size = blob.stat().st_size if blob.is_file() else None
    if size is None or (isinstance(wanted := layer.get("size"), int) and size != wanted):
        what = "is missing" if size is None else f"has {size:,} bytes of {layer['size']:,}"
        raise ModelFileError(f"{blob}, which {path} names, {what}", "ollama pull fetches it again")
    return blob


def followed(stored: Stored, manifest: Manifest, say: Callable[[str], None]) -> Stored:
    """Return a model that writes as its manifest says, and whose chats begin with what that has it told.

    Raises:
        ModelFileError: parameters or a text that are damaged, or that ask for what is not built.
    """
    path, layers = manifest.path, manifest.layers
    said = _generation(layers["params"], say, path) if "params" in layers else {}
    own = stored.chat.get(DEFAULT)
    if "template" in layers:
        instead = "the template of its GGUF file takes its place" if own else "and its GGUF file has no other"
        say(f"{path}: the template is a program in Go, which is not run; {instead}")
    if "messages" in layers:
        say(f"{path}: turns that chats would begin with are left out")
    if "projector" in layers:
        say(f"{path}: of a model that reads pictures too, the part that reads and writes text alone")
    chat = stored.chat
    if "system" in layers and own:
        chat = with_default(chat, _telling(_text(layers["system"])) + own)
    elif "system" in layers:
        say(f"{path}: what the model is to be told is left out, for want of a template")
    return replace(stored, folder=path, generation={**stored.generation, **said}, chat=chat)


def _generation(file: Path, say: Callable[[str], None], path: Path) -> dict[str, Any]:
    """Return what parameters of Ollama's say of writing, as a generation_config.json."""
    known, said, left = at("file"), {}, []
    for name, value in read_json(file).items():
        ours = "stop_strings" if name == "stop" else called_elsewhere(name, Known(known))
        if name in _OTHERWISE and value not in (0, 1):
            raise ModelFileError(
                f"{path}: {name} = {str(value)[:40]!r} is not built", f"give the path of its GGUF file: {file}"
            )
        if ours is None:
            left.append(name)
        elif not known[ours].is_one(value):
            refuse(file, f"has {name} = {str(value)[:40]!r}, which makes no sense")
        elif not (ours == "max_new_tokens" and value < 0):  # until an end comes
            said[ours] = value
    if left:
        say(f"{path}: parameters of how a model is run are left out: {', '.join(sorted(left))}")
    if not said.keys() & {*USUAL, "min_p", "typical_p"}:
        return said
    drawn = {**USUAL, **said}
    return {**drawn, "do_sample": drawn["temperature"] > 0}


def _text(file: Path) -> str:
    if file.stat().st_size > _TEXT_LIMIT:
        refuse(file, f"has more than {_TEXT_LIMIT:,} bytes")
    try:
        return file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        refuse(file, "is no text in UTF-8")


def _telling(text: str) -> str:
    """Return the beginning of a template that tells a chat a text, unless its first message tells another."""
    message = json.dumps({"role": "system", "content": text}, ensure_ascii=False)
    other = "messages and messages[0].role in ('system', 'developer')"
    return f"{{%- set messages = messages if {other} else [{message}] + messages -%}}\n"
