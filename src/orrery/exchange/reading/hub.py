"""Models from the Hugging Face hub: ``hf:org/name@revision``, the only form of a path that opens a socket."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery.checkpoints.manifest import file_sha256
from orrery.checkpoints.places import HUB as PREFIX
from orrery.checkpoints.places import hub_name
from orrery.errors import MachineError, ModelFileError, OrreryError, UsageError
from orrery.exchange.reading.files import CONFIG, GENERATION, INDEX, PICTURES, PROCESSOR, WEIGHTS, read_index
from orrery.exchange.reading.sentence_folder import MODULES
from orrery.tuning.peft.places import HUB_NAME

TEXTS = (CONFIG, GENERATION, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
         "vocab.json", "merges.txt", "encoder.json", "vocab.bpe", "vocab.txt", "tokenizer.model", "spiece.model",
         "sentencepiece.bpe.model", "source.spm", "target.spm", "tekken.json", "tiktoken.model", "qwen.tiktoken",
         "chat_template.jinja", "chat_template.json", PROCESSOR, "quantize_config.json",
         "quant_config.json", "hf_quant_config.json", PICTURES)  # fmt: skip
"""What is fetched beside safetensors: no Python, no pickle."""
TEXT_LIMIT = 256_000_000
PATIENCE = 10.0
_REFERENCE = re.compile(r"hf:(?P<name>[\w.-]+(/[\w.-]+)?)(@(?P<revision>[\w][\w./-]*))?")
_BESIDE = re.compile(
    r"additional_chat_templates/[\w-]+\.jinja"
    r"|modules\.json|config_sentence_transformers\.json|sentence_[\w-]+_config\.json"
    r"|\d+_\w+/(config\.json|tokenizer\.json|model\.safetensors)"
)
"""What is fetched besides, by how it is called: templates by name, and how sentence-transformers makes vectors."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class HubReference:
    """A model on the hub: its name, and a branch, a tag or a commit."""

    name: str
    revision: str

    @property
    def is_pinned(self) -> bool:
        """Whether it means the same files for ever."""
        return bool(_COMMIT.fullmatch(self.revision))

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}@{self.revision}"


def parse(text: str) -> HubReference:
    """Return what ``hf:org/name@revision`` means; the revision is ``main`` where none is given.

    Raises:
        UsageError: it is not of this form.
    """
    match = _REFERENCE.fullmatch(text)
    if match is None or ".." in text:
        raise UsageError(f"{text!r} is no model on the hub", f"write {hub_name(text) or 'hf:org/name@revision'}")
    return HubReference(match["name"], match["revision"] or "main")


def fetch(text: str, say: Callable[[str], None] = lambda line: None, *, weights: bool = True) -> Path:
    """Return a folder with the model's files, from the cache where a full commit names them.

    A branch or a tag is first turned into its commit, and every file is of that commit. Only JSON, tokenizers and
    safetensors are fetched; of each file of weights the sha256 is told, and compared with the hub's.

    Args:
        text: ``hf:org/name@revision``.
        say: told the commit, the licence and the digests.
        weights: whether the weights are needed.

    Raises:
        UsageError: there is no such model or revision, or it asks for rights.
        ModelFileError: it has no safetensors, or a file is not what the hub lists.
        MachineError: the hub cannot be reached.
    """
    wanted = parse(text)
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    with _errors(wanted):
        if wanted.is_pinned and (folder := _cached(wanted, weights)):
            return folder
        files, pinned, licence = _listing(wanted)
        origin = "" if wanted.is_pinned else f" ({wanted.revision} of this day)"
        say(f"{pinned}{origin}: licence {licence}")
        return _download(pinned, files, say, weights)


def _listing(wanted: HubReference) -> tuple[Mapping[str, Any], HubReference, str]:
    """Ask the hub for the files of a revision, its commit and its licence."""
    from huggingface_hub import HfApi

    api = HfApi(library_name="orrery")
    information = api.model_info(wanted.name, revision=wanted.revision, files_metadata=True, timeout=PATIENCE)
    if not information.sha or not _COMMIT.fullmatch(information.sha):
        raise ModelFileError(f"the hub names no commit for {wanted}", "try again, or give a commit")
    licence = getattr(information.card_data, "license", None) or "not stated"
    return (
        {file.rfilename: file for file in information.siblings or []},
        HubReference(wanted.name, information.sha),
        str(licence),
    )


def _download(pinned: HubReference, files: Mapping[str, Any], say: Callable[[str], None], weights: bool) -> Path:
    """Fetch the texts first and the weights last, so that weights in the cache mean that all is there."""
    if CONFIG not in files and MODULES not in files:
        raise ModelFileError(f"{pinned} has no {CONFIG}", "it is not a model in the layout of transformers")
    beside = sorted((name for name in files if _BESIDE.fullmatch(name)), key=lambda name: "/" not in name)
    for name in (*beside, *TEXTS):
        if name in files:
            if (files[name].size or 0) > TEXT_LIMIT:
                raise ModelFileError(f"{pinned}: {name} has {files[name].size:,} bytes", "this is no text; leave it")
            folder = _get(pinned, name).parent  # the last is one of the folder itself
    if weights and (CONFIG in files or WEIGHTS in files):  # static vectors may lie in a folder of their own
        for name in _weights(pinned, files):
            _verify(pinned, files[name], _get(pinned, name), say)
    return folder


def _weights(pinned: HubReference, files: Mapping[str, Any]) -> list[str]:
    """Return the names of the files that hold the weights."""
    if WEIGHTS in files:
        return [WEIGHTS]
    if INDEX not in files:
        pickles = [name for name in files if name.endswith((".bin", ".pt", ".pth"))]
        hint = "fetch it yourself, then: orrery import FOLDER NEW_FOLDER --allow-pickle"
        raise ModelFileError(
            f"{pinned} has no safetensors" + (f", only the pickle {pickles[0]}" if pickles else ""),
            hint if pickles else "look for another model",
        )
    shards = sorted(set(read_index(_get(pinned, INDEX)).values()))
    if missing := [name for name in shards if name not in files]:
        raise ModelFileError(f"{pinned} lacks {', '.join(missing[:10])}, which its index names", "tell its authors")
    return shards


def _get(pinned: HubReference, name: str) -> Path:
    """Return a file of the cache, after fetching it where it is not there."""
    import huggingface_hub
    from huggingface_hub.utils import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()
    return Path(huggingface_hub.hf_hub_download(pinned.name, name, revision=pinned.revision, library_name="orrery"))


def _verify(pinned: HubReference, listed: Any, path: Path, say: Callable[[str], None]) -> None:
    """Tell the digest of a file and compare it with the hub's list."""
    digest = file_sha256(path)
    expected = listed.lfs.sha256 if listed.lfs else None
    if expected is not None and digest != expected:
        raise ModelFileError(
            f"{path} has the sha256 {digest}, the hub lists {expected}", "delete the file and fetch it again"
        )
    say(f"{pinned}: {path.name}, {path.stat().st_size:,} bytes, sha256 {digest}")


def _cached(pinned: HubReference, weights: bool) -> Path | None:
    """Return the folder of a commit if everything is in the cache."""
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(pinned.name, CONFIG, revision=pinned.revision)
    if not isinstance(file, str):
        return None
    folder = Path(file).parent
    if not weights or (folder / WEIGHTS).is_file():
        return folder
    shards = set(read_index(folder / INDEX).values()) if (folder / INDEX).is_file() else set()
    return folder if shards and all((folder / shard).is_file() for shard in shards) else None


def fetched(name: str, revision: str | None) -> Path | None:
    """Return the folder of a model in the cache, by its name and a revision; no socket is opened."""
    if not HUB_NAME.fullmatch(name) or not (folder := _cache_of(name)).is_dir():
        return None
    if revision is None or revision == "main":
        return folder
    ref, wanted = folder / "refs" / revision, revision
    if ".." not in revision and ref.is_file() and ref.stat().st_size < 100:
        wanted = ref.read_text(encoding="utf-8").strip()
    snapshot = folder / "snapshots" / wanted
    return snapshot if _COMMIT.fullmatch(wanted) and snapshot.is_dir() else None


def _cache_of(name: str) -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"


@contextmanager
def _errors(wanted: HubReference) -> Iterator[None]:
    """Turn the hub's errors into ours: what is wrong with the name, what with the rights, what with the line."""
    from huggingface_hub import errors

    try:
        yield
    except OrreryError:
        raise
    except errors.GatedRepoError as error:
        hint = "accept its licence on its page, and set HF_TOKEN or run: hf auth login"
        raise UsageError(f"{wanted} is given only to those who accept its licence", hint) from error
    except errors.RevisionNotFoundError as error:
        raise UsageError(f"{wanted.name} has no revision {wanted.revision!r}", "give a branch or a commit") from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        hint = "check the spelling; for a private one set HF_TOKEN"
        raise UsageError(f"the hub has no model {wanted.name!r} that you may see", hint) from error
    except Exception as error:  # the library raises those of its network client too, which change with its version
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise MachineError(f"{wanted} cannot be fetched: {type(error).__name__}: {reason}", _offline(wanted)) from error


def _offline(wanted: HubReference) -> str:
    """Return a hint for a machine without the hub: the newest commit in the cache, if there is one."""
    commits = sorted((_cache_of(wanted.name) / "snapshots").glob("*"), key=lambda path: path.stat().st_mtime)
    if commits and not wanted.is_pinned:
        return f"without a network use what is in the cache: {HubReference(wanted.name, commits[-1].name)}"
    return "check the network; a folder on this machine needs none"
