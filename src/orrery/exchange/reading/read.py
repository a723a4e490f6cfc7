"""Reading a model from a folder: a Hugging Face folder, a checkpoint, or a run, which holds both."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from torch import Tensor

from orrery.checkpoints import manifest, succession
from orrery.checkpoints.names import FOLDER as CHECKPOINT
from orrery.checkpoints.places import WANTED, place_of
from orrery.checkpoints.rules import Rule
from orrery.checkpoints.store import MODEL, SPEC, CheckpointStore
from orrery.checkpoints.stores import is_manifest
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading import hub
from orrery.exchange.reading.adapted import with_adapter
from orrery.exchange.reading.architecture import own, published
from orrery.exchange.reading.config_keys import read_config, settled
from orrery.exchange.reading.cross_encoder_folder import CONFIG_KEYS, is_cross_encoder, read_pair_scores
from orrery.exchange.reading.files import (
    CONFIG,
    GENERATION,
    PICKLES,
    PICTURES,
    PROCESSOR,
    Weights,
    open_weights,
    pickles_in,
    read_json,
)
from orrery.exchange.reading.foreign import PIPELINE, refuse_broken_links, refuse_foreign
from orrery.exchange.reading.gguf_model import is_gguf, read_gguf
from orrery.exchange.reading.inside import chosen_inside
from orrery.exchange.reading.native import NativeModel, is_native, native_of, open_consolidated
from orrery.exchange.reading.ollama import followed, read_manifest
from orrery.exchange.reading.rounded.weights import unpacking
from orrery.exchange.reading.sentence_folder import MODULES, read_sentences, transformer_in
from orrery.exchange.reading.static_folder import read_static, table_in
from orrery.exchange.reading.stored import CHECKPOINTS, FINAL, Stored
from orrery.exchange.reading.weights import check_fit, fill, from_theirs
from orrery.families import current_names, load_family, rules_of
from orrery.families._heads import without_pooler
from orrery.families._wholes import naming, whole_of
from orrery.families._wrappers import is_value_head
from orrery.models.limits import check_numbers, check_size
from orrery.models.meta_device import build_on_meta
from orrery.models.model import Model, ModelSpec
from orrery.models.sentence_vectors import Sentences
from orrery.models.soundness import describes_a_model
from orrery.text import Tokenizer, load_tokenizer
from orrery.text.chat.folder import read_templates
from orrery.text.published.vocabularies import file_in
from orrery.tuning import Transform
from orrery.tuning.peft import base_of, is_adapter

RECIPE = "config.yaml"
RECIPE_LIMIT = 100_000
"""Bytes: a recipe has a few thousand, and YAML takes seconds for a million."""


def read(path: str | Path, say: Callable[[str], None] = lambda line: None) -> Stored:
    """Read the model at a path.

    Args:
        path: a run (its final model, else its best checkpoint, else its newest), by its path or its name, a checkpoint,
            a Hugging Face folder, a GGUF file, ``hf:org/name@revision``, ``ollama:name``, ``lmstudio:publisher/name``,
            or an adapter of peft's, whose base is read first.
        say: told which of a run's models was taken, or the commit of a model on the hub.

    Raises:
        UsageError: the hub has no such model.
        MachineError: the hub cannot be reached.
        ModelFileError: there is no model, or its files are damaged or do not fit each other.
    """
    path = place_of(path)
    if not str(path).startswith(hub.PREFIX):
        path = chosen_inside(Path(path), say)
    if is_adapter(path):
        stored = with_adapter(read(base_of(path, hub.fetched), say), path, say)
        _check_tokenizer(replace(stored, folder=Path(path)), say)
        return stored
    if is_manifest(Path(path)):
        manifest = read_manifest(Path(path))
        return followed(read(manifest.weights, say), manifest, say)
    folder = locate(path, say)
    stored = _read_gguf(folder, say) if folder.is_file() else _read_folder(folder)
    if stored.rounded is not None:
        say(f"{folder}: matrices rounded by {stored.rounded} are unpacked")
    if stored.whole is not None:
        say(f"{folder}: {stored.part_alone}")
    _check_tokenizer(stored, say)
    stored.model.eval()
    return stored


def _read_gguf(path: Path, say: Callable[[str], None]) -> Stored:
    """Read a model in llama.cpp's format."""
    content = read_gguf(path)
    if content.unpacked:
        say(f"{path}: matrices in {' and '.join(content.unpacked)} are unpacked to float32")
    content.model.eval()
    stored = Stored(
        path, content.model, content.family, content.config, content.generation, content.tokenizer, content.chat
    )
    return replace(stored, sentences=content.sentences, pairs=read_pair_scores(path, stored))


def _read_folder(folder: Path) -> Stored:
    """Read a checkpoint or a Hugging Face folder, with what stands behind the model in one of sentence-transformers."""
    if (folder / SPEC).is_file():
        stored = _read_checkpoint(folder)
    elif is_native(folder):
        weights = open_consolidated(folder)
        stored = read_native(folder, native_of(folder, empty := weights.empty()), weights, empty)
    elif (table := table_in(folder)) is not None:
        return read_static(folder, table)
    else:
        stored = replace(read_published(transformer_in(folder) or folder), folder=folder)
    return replace(stored, sentences=makes_vectors(folder), pairs=read_pair_scores(folder, stored))


def makes_vectors(folder: Path) -> Sentences | None:
    """Return how a folder of sentence-transformers makes vectors of texts; None for others and for cross-encoders.

    Raises:
        ModelFileError: a file of its is damaged, or a module is not built.
    """
    return read_sentences(folder) if (folder / MODULES).is_file() and not is_cross_encoder(folder) else None


def _check_tokenizer(stored: Stored, say: Callable[[str], None]) -> None:
    """Refuse a tokenizer of another model: its ids have no row in this one's table.

    Added tokens beyond the table are told of only: published models have them, for padding, and a text that holds
    one is refused when it comes.
    """
    spec, tokenizer = stored.model.spec, stored.tokenizer
    size = spec.target_vocabulary if spec.vocabulary is None else spec.vocabulary
    if size is None or tokenizer is None or tokenizer.size <= size:
        return
    added = {token["id"] for token in tokenizer.definition.get("added_tokens") or ()}
    beyond = set(range(size, tokenizer.size))
    if not beyond <= added:
        raise ModelFileError(
            f"{stored.folder}: the tokenizer has {tokenizer.size:,} ids, the model {size:,}",
            "put the tokenizer there that the model was trained with",
        )
    say(f"{stored.folder}: {len(beyond)} added tokens of the tokenizer have no row in the model")


def locate(path: str | Path, say: Callable[[str], None] = lambda line: None) -> Path:
    """Return the folder with the weights that a path means, or the GGUF file."""
    if str(path).startswith(hub.PREFIX):
        return hub.fetch(str(path), say)
    folder = Path(place_of(path))
    if is_manifest(folder):
        return read_manifest(folder).weights
    if is_gguf(folder):
        return folder
    if not folder.is_dir():
        raise _no_model(folder)
    succession.finish(folder)
    folder = chosen_inside(folder, say)
    if _has_model(folder):
        return folder
    if _has_model(folder / FINAL):
        say(f"{folder}: the final model")
        return folder / FINAL
    store = CheckpointStore(folder / CHECKPOINTS if (folder / CHECKPOINTS).is_dir() else folder)
    best, steps = store.best(), store.steps()
    if not steps:
        raise ModelFileError(f"{folder} has neither config.json nor checkpoints", _instead(folder))
    step, kind = (best, "best") if best in steps else (steps[0], "newest")
    say(f"{folder}: the {kind} checkpoint, step {step}")
    return store.path(step)


def _no_model(file: Path) -> ModelFileError:
    """Return the error of a file that is no model of its own: it may lie in the folder of one."""
    refuse_foreign(file)
    if _has_model(file.parent):
        return ModelFileError(f"{file} is one file of a model", f"name the folder that it is in: {file.parent}")
    if file.suffix in (".safetensors", *(Path(pattern).suffix for pattern in PICKLES)):
        return ModelFileError(
            f"{file} is weights alone: nothing beside it says of which model they are",
            f"put config.json and the tokenizer of the model into {file.parent}, and name that folder",
        )
    return ModelFileError(f"{file} is a file, not a folder", WANTED)


def _instead(folder: Path) -> str:
    """Return a hint for a folder without a model: which of its folders has one, or what lies in it."""
    runs = [run for run in sorted(folder.glob("*/")) if _has_model(run) or _has_model(run / FINAL)]
    if runs and not (folder / PIPELINE).is_file():
        return f"it holds runs, such as {runs[0]}: name one of them"
    refuse_broken_links(folder)
    refuse_foreign(folder)
    if weights := [*pickles_in(folder), *folder.glob("*.safetensors")]:
        own = f"; a checkpoint of nanoGPT needs none: orrery import {weights[0]} NEW --allow-pickle"
        file = weights[0].name
        return f"beside {file} put config.json and the tokenizer of the model{own if file.endswith('.pt') else ''}"
    if file_in(folder) is not None:
        return "it holds a tokenizer alone: fetch the model's config.json and weights too"
    return WANTED


def _has_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (CONFIG, SPEC, MODULES)) or is_native(folder)


def read_published(folder: Path, weights: Weights | None = None, ignored: Collection[str] = ()) -> Stored:
    """Read a Hugging Face folder, with other weights than its own where they are given.

    Keys of its config.json that change no number are left out of the configuration, and those in ``ignored`` too.

    Raises:
        ModelFileError: files are missing or damaged or do not fit each other.
    """
    said = _checked_ends(read_config(folder), folder / CONFIG)
    check_numbers(said, folder / CONFIG)
    config, passed_over = settled(said, folder / CONFIG, ignored)
    family = config.get("model_type")
    spec = published(config, folder / CONFIG)
    kept = {key: value for key, value in said.items() if key not in ignored}
    content = read_json(folder / CONFIG)
    own = (open_weights(folder) if weights is None else weights).renamed(naming(content))
    files = unpacking(own, kept, folder / CONFIG)
    with _said_by(folder / CONFIG):
        check_size(spec, files.elements, folder / CONFIG)
    rules = load_family(family)
    own_rules, empty = rules_of(rules, config), current_names(rules, config, files.empty())
    model = built(spec, folder / CONFIG)
    if lacks_pooler(model, own_rules, empty):
        model = built(without_pooler(spec), folder / CONFIG)
    check_fit(model, from_theirs(model, empty, own_rules))
    fill(model, from_theirs(model, current_names(rules, config, files), own_rules))
    loaded = Stored(folder, model, family, config, _generation(folder), _tokenizer(folder), read_templates(folder))
    passed_over = [key for key in passed_over if key not in CONFIG_KEYS]
    left, whole = tuple(filter(is_value_head, files)), whole_of(content)
    pictures = None if whole else _pictures(folder)
    return replace(
        loaded, passed_over=tuple(passed_over), left=left, rounded=files.method, pictures=pictures, whole=whole
    )


def read_native(
    folder: Path, native: NativeModel, tensors: Mapping[str, Tensor], empty: Mapping[str, Tensor]
) -> Stored:
    """Read a model in the layout of its makers' own program.

    Args:
        folder: where it lies, perhaps with a tokenizer.
        native: what it is.
        tensors: by their names in the files.
        empty: the same on the meta device.

    Raises:
        ModelFileError: the tensors do not fit.
    """
    spec = published(native.config, native.path)
    with _said_by(native.path):
        check_size(spec, sum(tensor.numel() for tensor in empty.values()), native.path)
    model = built(spec, native.path)
    check_fit(model, from_theirs(model, empty, native.rules))
    fill(model, from_theirs(model, tensors, native.rules))
    config, family = dict(native.config), native.config["model_type"]
    return Stored(folder, model, family, config, {}, _tokenizer(folder), read_templates(folder))


def lacks_pooler(model: Model, rules: Sequence[Rule], theirs: Collection[str]) -> bool:
    """Say whether a model has a pooler with weights, of which the files hold none.

    A bare model may be saved without one (``add_pooling_layer=False``, as the encoders of DINO and of many vectors of
    texts are), and its configuration does not say so.
    """
    own = [name for name, _ in model.named_parameters() if name.startswith("heads.pooled.")]
    places = {name for rule in rules for name, _ in rule.places(own)}
    named = bool(places) and all("pooler" in name for name in places)  # SigLIP's are parts that must be there
    return named and not places & set(theirs)


@contextmanager
def _said_by(path: Path) -> Iterator[None]:
    """Name the file that describes what cannot be built: nobody asked for its settings here."""
    try:
        with describes_a_model(path):
            yield
    except UsageError as error:
        raise ModelFileError(f"{path}: {error.message}", error.hint) from error


def built(spec: ModelSpec, path: Path, transforms: Sequence[Transform] = ()) -> Model:
    """Return the model without memory, with what was done to it done again."""
    with _said_by(path):
        model = build_on_meta(spec)
    try:
        for transform in transforms:
            model = transform.apply(model)
    except UsageError as error:
        message = f"{path}: the transforms do not fit the architecture: {error.message}"
        raise ModelFileError(message, "get the file again from its source") from error
    return model


def _read_checkpoint(folder: Path) -> Stored:
    """Read weights under our own names, and what the run around them says of the family.

    Every byte is compared with the manifest, without which a checkpoint's folder is not accepted; the final model of
    an architecture outside the families had none in earlier versions.
    """
    if CHECKPOINT.fullmatch(folder.name) or (folder / manifest.NAME).is_file():
        manifest.check_folder(folder, needed=(MODEL, SPEC))
    described = own(folder / SPEC)
    model = built(described.spec, folder / SPEC, described.transforms)
    weights = open_weights(folder, model.current_name)
    check_fit(model, weights.empty())
    fill(model, weights)
    run = folder.parent if folder.name == FINAL else folder.parent.parent
    recipe = recipe_of(run).get("model") or {}
    # A recipe may leave the vocabulary and the start of targets to the tokenizer; the model knows what they were.
    known = {"vocab_size": size} if (size := model.spec.vocabulary) else {}
    known |= {} if model.first_token is None else {"decoder_start_token_id": model.first_token}
    config = {**known, **described.config, **(recipe.get("config") or {})}
    places = (folder, run, run / FINAL)
    chat = next(filter(None, map(read_templates, places)), {})
    family = recipe.get("family") or described.family
    found = Stored(folder, model, family, config, _generation(folder), _tokenizer(*places), chat)
    return replace(found, pictures=_pictures(*places))


def _generation(folder: Path) -> dict[str, Any]:
    """Return the content of ``generation_config.json``, where there is one."""
    path = folder / GENERATION
    return _checked_ends(read_json(path) if path.is_file() else {}, path)


def _checked_ends(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return a file's content, whose end tokens must be numbers: no token would equal a word, and no text end."""
    ends = content.get("eos_token_id")
    if ends is not None and not all(type(id) is int for id in (ends if isinstance(ends, list) else [ends])):
        message = f"{path}: eos_token_id = {str(ends)[:60]!r} is no token number"
        raise ModelFileError(message, "give a number or a list of them")
    return content


def _tokenizer(*folders: Path) -> Tokenizer | None:
    """Return the first tokenizer in these folders."""
    for folder in folders:
        if file_in(folder) is not None:
            return load_tokenizer(folder)
    return None


def _pictures(*folders: Path) -> dict[str, Any] | None:
    """Return how pictures are prepared, by the first of these folders that says it; the nested part goes before."""
    for folder in folders:
        nested, path = folder / PROCESSOR, folder / PICTURES
        found = read_json(nested).get("image_processor") if nested.is_file() else None
        if found is None and path.is_file():
            found = read_json(path)
        if found is not None and not isinstance(found, dict):
            raise ModelFileError(f"{nested}: image_processor is no mapping", "get the file again from its source")
        if found is not None:
            return found
    return None


def recipe_of(run: Path) -> dict[str, Any]:
    """Return the resolved recipe of a run; a checkpoint may have left its run."""
    path = run / RECIPE
    if not path.is_file():
        return {}
    if path.stat().st_size > RECIPE_LIMIT:
        raise ModelFileError(
            f"{path} has more than {RECIPE_LIMIT:,} bytes", "a run writes this file itself; restore it"
        )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        raise ModelFileError(f"{path} is not YAML: {error}", "a run writes this file itself; restore it") from error
    return content if isinstance(content, dict) else {}
