"""Which models lie on this machine: runs, what the hub's cache and other programs keep, and what is below a path.

Nothing is loaded: sizes and kinds of numbers stand in the heads of files.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orrery.checkpoints.gguf_file import GgufFile, parts_of
from orrery.checkpoints.store import SPEC
from orrery.checkpoints.stores import is_manifest, lm_studio_models, manifests, ollama_name
from orrery.checkpoints.tensors import NAMES
from orrery.errors import OrreryError
from orrery.exchange.reading.architecture import Described, described
from orrery.exchange.reading.config_keys import read_config
from orrery.exchange.reading.cross_encoder_folder import is_cross_encoder
from orrery.exchange.reading.files import CONFIG, has_safetensors, open_weights, pickles_in, read_json
from orrery.exchange.reading.gguf_model import SUFFIX
from orrery.exchange.reading.hub import PREFIX
from orrery.exchange.reading.native import is_native, open_consolidated
from orrery.exchange.reading.ollama import read_manifest
from orrery.exchange.reading.read import built, locate
from orrery.exchange.reading.rounded.weights import unpacking
from orrery.exchange.reading.sentence_folder import MODULES
from orrery.exchange.reading.static_folder import table_in
from orrery.families._wholes import naming
from orrery.models.model import ModelSpec
from orrery.nn.heads import SequenceHead, TokenHead
from orrery.settings import hub_cache, ollama_stores, other_stores, runs_folder
from orrery.text.chat.folder import read_templates
from orrery.tuning import numbers_of

DEPTH = 8
"""Folders within each other that are looked into."""
CHAT, WRITE, EMBED, CLASSIFY, TAG, TRANSLATE, RANK = "chat", "write", "embed", "classify", "tag", "translate", "rank"


@dataclass(frozen=True)
class ListedModel:
    """A model that is here.

    Attributes:
        name: what every verb takes.
        place: where it lies.
        size: bytes of its files of weights.
        family: the ``model_type``, or llama.cpp's name of the architecture.
        parameters: how many numbers its files hold.
        numbers: the kinds in which they are stored, that of the most bytes first.
        can: what it is able to do.
        fault: why it cannot be loaded; empty where nothing speaks against it.
    """

    name: str
    place: Path
    size: int = 0
    family: str = ""
    parameters: int = 0
    numbers: tuple[str, ...] = ()
    can: tuple[str, ...] = ()
    fault: str = ""


def inventory(paths: Sequence[Path] = ()) -> Iterator[ListedModel]:
    """Yield the models below some paths; without any, the runs, and what the hub's cache and other programs keep."""
    if paths:
        for path in paths:
            yield from (_listed_model(str(place), place) for place in _below(path, set()))
        return
    for run in _folders(runs_folder()):
        if _is_run(run):
            yield _listed_model(run.name, run)
    for name, place in _kept():
        yield _listed_model(name, place)


def _kept() -> Iterator[tuple[str, Path]]:
    """Yield what the hub's cache and other programs keep, by the names that every verb takes."""
    yield from _fetched(hub_cache())
    for store in ollama_stores():
        try:
            yield from [(ollama_name(manifest), manifest) for manifest in manifests(store)]
        except OSError:  # of the service's user, perhaps, which is told of it
            yield str(store), store
    yield from lm_studio_models()
    for store in other_stores():
        yield from ((str(place), place) for place in (_below(store, set()) if store.is_dir() else ()))


def _folders(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if entry.is_dir()) if path.is_dir() else []


def _is_run(path: Path) -> bool:
    return any((path / name).exists() for name in ("run.json", "final", "checkpoints"))


def _is_model(path: Path) -> bool:
    weights = has_safetensors(path) or pickles_in(path)
    configured = bool((path / CONFIG).is_file() and weights) or is_native(path)
    return _is_run(path) or (path / SPEC).is_file() or configured


def _below(path: Path, seen: set[Path], depth: int = 0) -> Iterator[Path]:
    """Yield the models at a path and below it; of a split one the first file, and nothing inside a model's folder.

    A folder that links lead to again is ``seen``.
    """
    if path.is_file():
        if (path.suffix == SUFFIX and _is_first(path)) or is_manifest(path):
            yield path
        return
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    if _is_model(path):
        yield path
        return
    if depth < DEPTH:
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir() or entry.name.endswith(SUFFIX))
        for name in names:
            try:
                yield from _below(path / name, seen, depth + 1)
            except OSError:  # a folder of another user's
                continue


def _is_first(path: Path) -> bool:
    try:
        return parts_of(path)[0] == path
    except OrreryError:
        return True  # parts are missing, which is told of it


def _fetched(cache: Path) -> Iterator[tuple[str, Path]]:
    """Yield the models of the hub's cache, newest commit each, by the name that opens no socket."""
    for folder in sorted(cache.glob("models--*")):
        commits = sorted(_folders(folder / "snapshots"), key=lambda commit: commit.stat().st_mtime)
        if not commits:
            continue
        newest, name = commits[-1], folder.name.removeprefix("models--").replace("--", "/")
        if _is_model(newest):
            yield f"{PREFIX}{name}@{newest.name}", newest
        for file in sorted(newest.glob(f"*{SUFFIX}")):
            if _is_first(file):
                yield str(file), file


def _listed_model(name: str, place: Path) -> ListedModel:
    """Return what the heads of a model's files say."""
    try:
        if is_manifest(place):
            return replace(_gguf(name, read_manifest(place).weights), place=place)
        return _gguf(name, place) if place.is_file() else _folder(name, place)
    except (OrreryError, OSError) as error:
        return ListedModel(name, place, _bytes(place), fault=getattr(error, "message", str(error)))


def _bytes(place: Path) -> int:
    files = [place] if place.is_file() else place.rglob("*")
    return sum(file.stat().st_size for file in files if file.suffix in (SUFFIX, ".safetensors", ".bin"))


def _gguf(name: str, place: Path) -> ListedModel:
    parts = parts_of(place)
    files = [GgufFile(part) for part in parts]
    stored: Counter[str] = Counter()
    numbers = 0
    for file in files:
        for entry in file.entries.values():
            stored[entry.kind.name] += entry.end - entry.start
            numbers += (entry.end - entry.start) // entry.kind.size * entry.kind.block
    facts: Mapping[str, Any] = files[0].facts
    family, size = str(facts.get("general.architecture")), sum(part.stat().st_size for part in parts)
    kinds = tuple(kind for kind, _ in stored.most_common())
    try:
        spec = described(place).spec
    except OrreryError as error:
        return ListedModel(name, place, size, family, numbers, kinds, fault=error.message)
    chats = any(key.startswith("tokenizer.chat_template") for key in facts)
    return ListedModel(name, place, size, family, numbers, kinds, _able(spec, chats))


def _folder(name: str, place: Path) -> ListedModel:
    folder = locate(place)
    described_as = described(folder)
    config, whole = (read_config(folder), read_json(folder / CONFIG)) if (folder / CONFIG).is_file() else ({}, {})
    native, shown = is_native(folder), table_in(folder) or folder
    weights = open_consolidated(folder) if native else open_weights(shown).renamed(naming(whole))
    plain = unpacking(weights, config, folder / CONFIG)
    stored: Counter[str] = Counter()
    for tensor in weights.empty().values():
        stored[NAMES[tensor.dtype]] += tensor.nbytes
    family = described_as.family or config.get("model_type")
    chats = bool(read_templates(folder) or read_templates(place))
    kinds = tuple(kind for kind, _ in stored.most_common()) if plain.method is None else (plain.method,)
    return ListedModel(
        name,
        place,
        sum(stored.values()),
        family or "",
        _numbers(described_as, plain.elements, place),
        kinds,
        _able(described_as.spec, chats, listed=_is_listed(place)),
    )


def _numbers(described_as: Described, elements: int, place: Path) -> int:
    """Return how many numbers a model has: two of four bits lie in one byte of a file."""
    if not described_as.transforms:
        return elements
    return numbers_of(built(described_as.spec, place, described_as.transforms))


def _is_listed(place: Path) -> bool:
    """Say whether a folder's files make a cross-encoder of its model."""
    return (place / MODULES).is_file() and is_cross_encoder(place)


def _able(spec: ModelSpec, chats: bool, *, listed: bool = False) -> tuple[str, ...]:
    """Return what a model of this architecture can do; ``listed`` says that its files make a cross-encoder of it."""
    if spec.vocabulary is None:
        return ()
    heads: Collection[Any] = spec.heads.values()
    able = {
        CHAT: spec.writes and chats,
        WRITE: spec.writes,
        TRANSLATE: spec.reads_source,
        CLASSIFY: any(isinstance(head, SequenceHead.Spec) for head in heads),
        TAG: any(isinstance(head, TokenHead.Spec) and name != "span" for name, head in spec.heads.items()),
        RANK: any(isinstance(head, SequenceHead.Spec) and head.labels == 1 for head in heads) or (listed and not heads),
        EMBED: True,
    }
    return tuple(name for name, can in able.items() if can)
