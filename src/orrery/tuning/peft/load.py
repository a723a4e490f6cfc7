"""A LoRA that peft wrote onto a model: its tensors under our names, its settings as transforms."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orrery.checkpoints.json_file import read_json
from orrery.checkpoints.store import SPEC
from orrery.checkpoints.tensors import TensorFile
from orrery.errors import ModelFileError, UsageError
from orrery.families._wholes import name_in_text
from orrery.models.model import Model
from orrery.tuning._linear import TransformedLinear
from orrery.tuning.lora import LoRA
from orrery.tuning.peft.config import PeftConfig
from orrery.tuning.peft.places import (
    BASE_CONFIG,
    CONFIG,
    HUB_NAME,
    PREFIX,
    SIDES,
    WEIGHTS,
    Adaptable,
    PeftTensor,
    matrices_of,
    places_of,
)

_PICKLE, _OF_MLX = "adapter_model.bin", "adapters.safetensors"
_AGAIN = "get the folder again from its source"
_TABLES = ("embed.token.weight", "head.vocabulary.weight", "head.vocabulary.bias")
"""Our tensors with a row for each token."""
_TRAINED, _ROWS, _INSIDE = ".modules_to_save", ".token_adapter.trainable_tokens_delta", ".base_layer"
"""What peft puts into the names of modules that it saves whole, of rows of a table, and of what an adapter is on."""
_UNTRAINED = (".original_module.", ".token_adapter.base_layer.")
"""The base's own tensors, which peft writes once more where it writes tables of tokens."""
_BASES = ("*.safetensors", "pytorch_model*.bin")


def is_adapter(folder: str | Path) -> bool:
    """Say whether a folder holds an adapter of peft and no whole model; a config.json alone is not one.

    Raises:
        ModelFileError: it holds both, and nothing says which is meant.
    """
    folder = Path(folder)
    if not (folder / CONFIG).is_file() or (folder / SPEC).is_file():
        return False
    if not (folder / BASE_CONFIG).is_file():
        return True
    beside = (path.name for pattern in _BASES for path in folder.glob(pattern))
    whole = next((name for name in beside if not name.startswith("adapter")), None)
    if whole is not None and (folder / WEIGHTS).is_file():
        message = f"{folder} holds a whole model ({whole}) and an adapter ({WEIGHTS}), and only one can be meant"
        raise ModelFileError(message, f"move {CONFIG} and {WEIGHTS} into a folder of their own, and name that or this")
    return whole is None and (folder / WEIGHTS).is_file()


def base_of(
    folder: str | Path, fetched: Callable[[str, str | None], Path | None] = lambda name, revision: None
) -> Path:
    """Return the folder of the model that an adapter is for, where it is on this machine.

    Args:
        folder: of the adapter.
        fetched: finds the folder of a model that was fetched from the hub, by its name and revision.

    Raises:
        ModelFileError: the adapter names none, or it is not here.
    """
    path = Path(folder) / CONFIG
    _refuse_others(path.parent)
    said = read_json(path)
    named, revision = said.get("base_model_name_or_path"), said.get("revision")
    if isinstance(named, str) and named:
        if Path(named).is_dir() and not is_adapter(named):
            return Path(named)
        if (found := fetched(named, revision if isinstance(revision, str) else None)) is not None:
            return found
    what = f"is for the base {named!r}, which is no folder of a model here" if named else "names no base model"
    hint = "load the base and name the adapter: orrery.load(BASE, adapter=FOLDER)"
    fetch = f"; or fetch it into the hub's cache: hf download {named}" if named and HUB_NAME.fullmatch(named) else ""
    raise ModelFileError(f"{path} {what}", hint + fetch)


def tables_in(lm: Adaptable, folder: str | Path) -> dict[str, Tensor]:
    """Return the tables of tokens that an adapter saves whole, under our names; they may have more rows than ours.

    Raises:
        ModelFileError: as ``load_adapter``.
        UsageError: the model belongs to no family.
    """
    _refuse_others(Path(folder))
    PeftConfig(Path(folder))  # refuses other kinds by name before their tensors are looked for
    tensors, places = _plain(_open(Path(folder))), places_of(lm)
    return {
        places[name].ours[0]: tensors[name]
        for name in tensors
        if name in places and places[name].ours[0].endswith(_TABLES)
    }


def load_adapter(lm: Adaptable, folder: str | Path) -> tuple[LoRA, ...]:
    """Put a LoRA that peft wrote onto a model, in place, and return what was applied.

    An adapter on a matrix that the reference stores as one becomes one on each part of ours: all with its A, each with
    its rows of B. Modules that were saved whole (``modules_to_save``) take the place of the model's own.

    Args:
        lm: a ``LanguageModel``, or what ``read`` returns: the base of the adapter.
        folder: with ``adapter_config.json`` and ``adapter_model.safetensors``.

    Raises:
        ModelFileError: files are missing or damaged, do not fit the model, or ask for what no LoRA of ours does.
        UsageError: the model belongs to no family, or a matrix cannot be adapted; it is named.
    """
    config, groups, whole = _read(lm, Path(folder))
    model = lm.model
    transforms = _transforms(model, config, groups, sorted(whole))
    for transform in transforms:
        transform.apply(model)
    with torch.no_grad():
        for name, (a, b) in ((n, pair) for parts in groups.values() for n, pair in parts.items()):
            model.get_parameter(f"{name}.lora_a").copy_(a)
            model.get_parameter(f"{name}.lora_b").copy_(b)
        for name, tensor in whole.items():
            model.get_parameter(name).copy_(tensor)
    return transforms


def adapter_pairs(lm: Adaptable, folder: str | Path) -> dict[str, tuple[Tensor, Tensor]]:
    """Return A and B of a LoRA that peft wrote by the name of our linear, B times its scale; the model stays as it is.

    Raises:
        ModelFileError: as ``load_adapter``, and where the adapter has modules that were saved whole.
        UsageError: the model belongs to no family.
    """
    config, groups, whole = _read(lm, Path(folder))
    if whole:
        message = f"saves {next(iter(whole))} whole, which rows of other adapters do not share"
        config.refuse(message, "merge the adapter, and serve it as a model of its own")
    return {name: (a, alpha / rank * b) for (rank, alpha), parts in groups.items() for name, (a, b) in parts.items()}


_Groups = dict[tuple[int, float], dict[str, tuple[Tensor, Tensor]]]


def _read(lm: Adaptable, folder: Path) -> tuple[PeftConfig, _Groups, dict[str, Tensor]]:
    """Return the settings, A and B by rank and alpha and our linears, and the tensors that were saved whole."""
    _refuse_others(folder)
    model = lm.model
    config, tensors = PeftConfig(folder), _open(folder)
    places = places_of(lm)
    matrices = matrices_of(model, places)
    pairs, rest = _pairs(tensors, config, matrices)
    if lacking := config.missing(matrices, pairs):
        config.refuse(f"targets {lacking[0]} and {len(lacking) - 1} more that the file lacks", _AGAIN)
    _refuse_tied(model, config, {name: matrices[name] for name in pairs})
    parts_by_name = {name: _parts(model, matrices[name], config, name, *pair) for name, pair in pairs.items()}
    whole = _whole(model, places, config, rest)
    groups: _Groups = {}
    for name, parts in parts_by_name.items():
        rank = len(pairs[name][0])
        groups.setdefault((rank, config.scale(name, rank) * rank), {}).update(parts)
    return config, groups, whole


def _refuse_others(folder: Path) -> None:
    if folder.is_file():
        hint = "take the folder with adapter_config.json that it was made from"
        raise ModelFileError(f"{folder} is a file, and adapters are read from folders that peft writes", hint)
    if (folder / _OF_MLX).is_file() and not (folder / WEIGHTS).is_file():
        hint = "join it with its base, mlx_lm.fuse --model BASE --adapter-path FOLDER --save-path OUT, and load OUT"
        raise ModelFileError(f"{folder} is an adapter of mlx-lm, and those of peft are read", hint)


def _open(folder: Path) -> Mapping[str, Tensor]:
    if not (folder / WEIGHTS).is_file():
        if (folder / _PICKLE).is_file():
            message = f"{folder} has its adapter only as {_PICKLE}, a pickle, which can run any code"
            raise ModelFileError(message, "write it again with peft: save_pretrained(folder, safe_serialization=True)")
        raise ModelFileError(f"{folder / WEIGHTS} is missing", "is the folder complete?")
    return TensorFile(folder / WEIGHTS)


def _pairs(
    tensors: Mapping[str, Tensor], config: PeftConfig, matrices: Mapping[str, PeftTensor]
) -> tuple[dict[str, tuple[Tensor, Tensor]], dict[str, Tensor]]:
    """Return A and B by the reference's module, and the tensors that are neither."""
    halves: dict[str, dict[str, Tensor]] = {}
    rest: dict[str, Tensor] = {}
    for name, tensor in _plain(tensors).items():
        side = next((side for side in SIDES if name.endswith(side)), None)
        if side is None:
            rest[name] = tensor
        else:
            halves.setdefault(_known(name.removesuffix(side), matrices, config), {})[side] = tensor
    for name, half in halves.items():
        if len(half) < len(SIDES):
            config.refuse(f"belongs to tensors that lack one of A and B of {name}", _AGAIN)
    if not halves:
        config.refuse("belongs to a file without an adapter", _AGAIN)
    return {name: (half[SIDES[0]], half[SIDES[1]]) for name, half in halves.items()}, rest


def _plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors by the names of the reference's, without copies that peft makes beside tables of tokens."""
    named = {name.removeprefix(PREFIX): name for name in tensors if not any(part in name for part in _UNTRAINED)}
    usual = {name.replace(_TRAINED, ""): place for name, place in named.items() if _TRAINED in name}
    usual |= {name: place for name, place in named.items() if _TRAINED not in name}
    return {name.replace(f"{_INSIDE}.bias", ".bias"): tensors[place] for name, place in usual.items()}


def _known(name: str, matrices: Mapping[str, PeftTensor], config: PeftConfig) -> str:
    """Return the module that an adapter is for; a bare model's names begin later than those of one with a head.

    An adapter of a model that reads pictures too names the modules of its text part as they are called in the whole.
    """
    inner = (name_in_text(f"{name}.weight") or "").removesuffix(".weight")
    if name not in matrices and inner in matrices:
        if strange := [key for key in (*config.ranks, *config.alphas) if name_in_text(f"{key}.") != f"{key}."]:
            message = f"has a rank or an alpha for {strange[0]}, a module of a model that reads pictures too"
            config.refuse(message, "write the last part of the module's name there, or merge the adapter with peft")
        return inner
    if name in matrices:
        return name
    near = [known for known in matrices if known.endswith(f".{name}") or name.endswith(f".{known}")]
    if len(near) != 1:
        message = f"has an adapter for {name}, which is no matrix of this model that can have one"
        config.refuse(message, f"load the base it was trained on; its modules look like {next(iter(matrices), 'none')}")
    return near[0]


def _parts(
    model: nn.Module, place: PeftTensor, config: PeftConfig, name: str, a: Tensor, b: Tensor
) -> dict[str, tuple[Tensor, Tensor]]:
    """Return A and B for each of our linears that one of their matrices is made of."""
    linears = [model.get_submodule(linear) for linear in place.linears]
    sizes = [linear.out_features for linear in linears if isinstance(linear, nn.Linear | TransformedLinear)]
    rank, rows = config.rank_of(name), place.rows
    expected = ([rank, linears[0].in_features], [sum(sizes), rank])
    if [list(a.shape), list(b.shape)] != list(expected):
        shapes = f"{list(a.shape)} and {list(b.shape)}, not {expected[0]} and {expected[1]}"
        config.refuse(f"and the model do not fit: A and B of {name} have the shapes {shapes}", "take the right base")
    assert rows is not None
    cut = rows.split(b, [torch.Size((size, len(a))) for size in sizes])
    return {linear: (a, part) for linear, part in zip(place.linears, cut, strict=True)}


def _whole(
    model: Model, places: Mapping[str, PeftTensor], config: PeftConfig, rest: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the tensors that were saved whole, under our names."""
    tensors: dict[str, Tensor] = {}
    for theirs, tensor in _with_rows(model, places, config, rest).items():
        if _is_base(model, places, theirs, tensor):
            continue
        if ".lora_embedding_" in theirs:
            message = (
                f"adapts the table {theirs.partition('.lora_')[0]}, and only matrices of products are adapted here"
            )
            config.refuse(message, "merge the adapter with peft and load the whole")
        if theirs not in places:
            hint = "a head is read where the base has it: load the class with this head, AutoModelFor... says which"
            config.refuse(f"comes with {theirs}, of which this model has no part", hint)
        place = places[theirs]
        try:
            parts = place.rule.split(tensor, [model.get_parameter(name).shape for name in place.ours])
        except ValueError as error:
            config.refuse(f"comes with {theirs}, which {error}", "load the base with as many labels")
        tensors |= zip(place.ours, parts, strict=True)
    _refuse_shared(model, config, tensors)
    for module in config.whole:
        held = [t for t in places if t.rpartition(".")[0].endswith(module) and t not in rest]
        if held:
            config.refuse(f"says that {module} is saved whole, and the file lacks {held[0]}", _AGAIN)
    return tensors


def _with_rows(
    model: Model, places: Mapping[str, PeftTensor], config: PeftConfig, rest: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the tensors that were saved whole, with the whole of a table of which only rows were trained.

    A table that the model's head shares takes the rows for both, as peft's adapters of such tables do.
    """
    whole = {theirs: tensor for theirs, tensor in rest.items() if not theirs.endswith(_ROWS)}
    for theirs in rest.keys() - whole:
        module = theirs.removesuffix(_ROWS)
        ids = config.rows_of(module)
        place = places.get(f"{module}.weight")
        table = None if place is None or len(place.ours) > 1 else model.get_parameter(place.ours[0])
        rows = rest[theirs]
        if table is None or rows.shape != (len(ids), *table.shape[1:]) or not set(ids) <= set(range(len(table))):
            config.refuse(f"trained {len(ids)} rows of {module}, and {theirs} has the shape {list(rows.shape)}", _AGAIN)
        assert place is not None
        changed = whole.get(place.theirs, table.detach()).clone()
        changed[ids] = rows.to(changed)
        whole |= {other.theirs: changed for other in places.values() if model.get_parameter(other.ours[0]) is table}
    return whole


def _refuse_tied(model: Model, config: PeftConfig, adapted: Mapping[str, PeftTensor]) -> None:
    """Refuse an adapter on a matrix that is a table of tokens too, which the product alone would not change."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for name, place in adapted.items():
        for other, parameter in parameters.items():
            if other.endswith(_TABLES) and other not in place.ours and parameter is parameters[place.ours[0]]:
                hint = "train it without this module among target_modules, or on a base whose head is not tied"
                config.refuse(f"has an adapter for {name}, whose matrix is {other} too in this model", hint)


def _refuse_shared(model: Model, config: PeftConfig, tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors of which the model has one under several names, unless all have the same numbers."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    for shared in names.values():
        given = [name for name in shared if name in tensors]
        if given and not all(n in tensors and torch.equal(tensors[n], tensors[given[0]]) for n in shared):
            message = f"saves {given[0]} whole, which the model shares with {', '.join(shared)}"
            config.refuse(message, "merge the adapter with peft and load the whole")


def _is_base(model: Model, places: Mapping[str, PeftTensor], name: str, tensor: Tensor) -> bool:
    """Say whether a tensor repeats one of the base: peft writes an adapted head and its table once more."""
    place = places.get(name.replace(".base_layer.", "."))
    if place is None or place.theirs == name or len(place.ours) > 1:
        return False
    own = model.get_parameter(place.ours[0])
    return own.shape == tensor.shape and torch.equal(own.cpu(), tensor.to(own.dtype))


def _transforms(
    model: nn.Module, config: PeftConfig, groups: Mapping[tuple[int, float], Mapping[str, Any]], learn: Iterable[str]
) -> tuple[LoRA, ...]:
    """Return one transform for each rank and scale; the first lets learn what was saved whole."""
    kept, made = tuple(learn), []
    for (rank, alpha), parts in groups.items():
        targets = _patterns(model, set(parts))
        try:
            made.append(LoRA(rank=rank, alpha=alpha, dropout=config.dropout, targets=targets, learn=kept))
        except UsageError as error:
            config.refuse(f"cannot be meant: {error.message}", _AGAIN)
        kept = ()
    return tuple(made)


def _patterns(model: nn.Module, names: set[str]) -> tuple[str, ...]:
    """Return patterns that name exactly these linears: ``*.q`` where that is enough, else their names."""
    leaves = {name.rpartition(".")[2] for name in names}
    linears = model.named_modules(remove_duplicate=False)
    meant = {n for n, m in linears if isinstance(m, nn.Linear | TransformedLinear) and n.rpartition(".")[2] in leaves}
    return tuple(f"*.{leaf}" for leaf in sorted(leaves)) if meant == names else tuple(sorted(names))
