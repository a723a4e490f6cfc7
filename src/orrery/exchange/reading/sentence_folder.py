"""The files of sentence-transformers beside a model: modules.json, and a folder for each step behind the model."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from orrery.checkpoints.json_file import read_json, read_json_list
from orrery.checkpoints.tensors import TensorFile
from orrery.errors import ModelFileError
from orrery.exchange.reading.files import WEIGHTS, pickles_in
from orrery.models.sentence_vectors import ACTIVATIONS, POOLINGS, Dense, Pooling, Sentences, SentenceVectors, UnitLength

MODULES, SETTINGS = "modules.json", "config_sentence_transformers.json"
OF_TRANSFORMERS = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Where the length of a row stands: in the first of these that is there."""
FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Our name of a pooling by the key of a folder of an earlier version."""
PROGRAM = "sentence_transformers."
"""What the names of all its classes begin with."""
TOKENIZER = "tokenizer_config.json"
VECTOR = "sentence_embedding"
"""What the modules behind a pooling read and write."""
_UNBOUNDED = 1e9
"""From here on a tokenizer means that its rows have no bound."""
HINT = "take the model's vectors with sentence-transformers, or a folder whose modules are known"


def transformer_in(folder: Path) -> Path | None:
    """Return the folder of the model itself in a folder of sentence-transformers; None where it is none.

    Raises:
        ModelFileError: its list of modules is damaged, or begins with something else than a transformer.
    """
    if not (folder / MODULES).is_file():
        return None
    kind, place = modules_of(folder)[0]
    if kind != "Transformer":
        raise ModelFileError(f"{folder / MODULES} begins with a {kind}, and no Transformer", HINT)
    return place


def read_sentences(folder: Path) -> Sentences:
    """Return how a folder of sentence-transformers makes vectors of texts.

    Raises:
        ModelFileError: a file is missing or damaged, or there is a module that is not built; it is named.
    """
    (_, model), *steps = modules_of(folder)
    if not steps or steps[0][0] != "Pooling":
        raise ModelFileError(f"{folder / MODULES} has no Pooling behind the Transformer", HINT)
    pooling = read_json(steps[0][1] / "config.json")
    own, said = rows_of(model), settings_of(folder)
    _refuse_other_outputs(own, model)
    behind = [step_of(kind, place) for kind, place in steps[1:]]
    vectors = SentenceVectors(pooling_of(pooling, steps[0][1]), behind)
    vectors.steps.extend(cut_short(said.get("truncate_dim"), vectors, pooling, folder))
    prompts, chosen = prompts_of(folder, said)
    return Sentences(
        vectors.eval(),
        length_of(model, own),
        prompts,
        chosen,
        pools_prompt=bool(pooling.get("include_prompt", True)),
        lowercase=bool(own.get("do_lower_case", False)),
        similarity=said.get("similarity_fn_name"),
    )


def rows_of(model: Path) -> dict[str, Any]:
    """Return what the folder of the transformer says of its rows."""
    return next((read_json(model / name) for name in OF_TRANSFORMERS if (model / name).is_file()), {})


def settings_of(folder: Path) -> dict[str, Any]:
    """Return what the folder says of the whole: prompts, how vectors are compared."""
    return read_json(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}


def prompts_of(folder: Path, said: Mapping[str, Any]) -> tuple[dict[str, str], str | None]:
    """Return the prompts by name, and the name of that which is taken where none is asked for.

    Raises:
        ModelFileError: they are no texts, or the name is none of them.
    """
    prompts, chosen = said.get("prompts") or {}, said.get("default_prompt_name")
    prompts = {name: "" if text is None else text for name, text in prompts.items()} if isinstance(prompts, dict) else 0
    if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
        raise ModelFileError(f"{folder / SETTINGS}: prompts are no texts by name", HINT)
    if chosen is not None and chosen not in prompts:
        raise ModelFileError(f"{folder / SETTINGS}: default_prompt_name = {str(chosen)[:60]!r} is no prompt", HINT)
    return prompts, chosen


def length_of(model: Path, own: Mapping[str, Any]) -> int | None:
    """Return how long rows may be: the folder's own word, else the tokenizer's; none where that is no bound.

    The folder's words are what texts are cut with, then what the tokenizer is loaded with, then ``max_seq_length``.

    Raises:
        ModelFileError: it is no number of tokens.
    """
    loaded = mapping_in(own, "processor_kwargs" if "processor_kwargs" in own else "tokenizer_args", model)
    asked = (text_settings(own, model).get("max_length"), loaded.get("model_max_length"), own.get("max_seq_length"))
    length = next((one for one in asked if one is not None), None)
    if length is None and (model / TOKENIZER).is_file():
        length = read_json(model / TOKENIZER).get("model_max_length")
        length = int(length) if isinstance(length, int | float) and 0 < length < _UNBOUNDED else None
    if length is not None and (type(length) is not int or length < 1):
        raise ModelFileError(f"{model}: max_seq_length = {str(length)[:60]!r} is no number of tokens", HINT)
    return length


def mapping_in(content: Mapping[str, Any], key: str, model: Path) -> Mapping[str, Any]:
    """Return the object under a key, empty where there is none.

    Raises:
        ModelFileError: it is no object.
    """
    mapping = content.get(key) or {}
    if not isinstance(mapping, Mapping):
        raise ModelFileError(f"{model}: {key} = {str(mapping)[:60]} is no object", HINT)
    return mapping


def text_settings(own: Mapping[str, Any], model: Path) -> dict[str, Any]:
    """Return the settings with which the folder has texts made into rows: ``max_length``, or none.

    Raises:
        ModelFileError: one that is not built; it is named.
    """
    said = mapping_in(own, "processing_kwargs", model)
    settings = {**mapping_in(said, "common", model), **mapping_in(said, "text", model)}
    cut = settings.pop("truncation", "longest_first")
    others = sorted(settings.keys() - {"max_length", "padding", "return_tensors", "logits_to_keep"})
    if others or cut not in ("longest_first", True):
        raise ModelFileError(f"{model}: processing_kwargs: {(others or [f'truncation = {cut}'])[0]} is not built", HINT)
    return settings


def _refuse_other_outputs(own: Mapping[str, Any], model: Path) -> None:
    """Raise `ModelFileError` where the folder pools something else than the final hidden states of texts."""
    how = mapping_in(own, "modality_config", model)
    if how and "text" not in how:
        raise ModelFileError(f"{model}: modality_config has {', '.join(map(str, how))[:60]} and no text", HINT)
    output = mapping_in(how, "text", model).get("method_output_name")
    if output not in (None, "last_hidden_state"):
        raise ModelFileError(f"{model}: method_output_name = {str(output)[:60]!r} is not built", HINT)


def cut_short(size: Any, vectors: SentenceVectors, pooling: Mapping[str, Any], folder: Path) -> Iterator[nn.Module]:
    """Yield the step that leaves the first numbers of a vector, where the folder says how many."""
    own = pooling.get("embedding_dimension", pooling.get("word_embedding_dimension"))
    if size is None:
        return
    if type(size) is not int or size < 1 or type(own) is not int:
        raise ModelFileError(f"{folder / SETTINGS}: truncate_dim = {str(size)[:60]} is no number of numbers", HINT)
    mapped = [step.linear.out_features for step in vectors.steps if isinstance(step, Dense)]
    width = (own * len(vectors.pooling.modes), *mapped)[-1]
    if size < width:
        first = Dense(width, size, bias=False, activation="torch.nn.modules.linear.Identity")
        first.linear.weight = nn.Parameter(torch.eye(size, width), requires_grad=False)
        yield first


def modules_of(folder: Path) -> list[tuple[str, Path]]:
    """Return the modules in their order: the last part of its class's name, and its folder.

    Raises:
        ModelFileError: the list is damaged, or a folder is outside.
    """
    content = read_json_list(folder / MODULES)
    modules = []
    for entry in content:
        kind, path = (entry.get(key) if isinstance(entry, Mapping) else None for key in ("type", "path"))
        if (
            not isinstance(kind, str)
            or not isinstance(path, str)
            or Path(path).is_absolute()
            or ".." in Path(path).parts
        ):
            raise ModelFileError(f"{folder / MODULES} has no type and path of a module", HINT)
        if not kind.startswith(PROGRAM):
            message = (
                f"{folder / MODULES}: {kind[:80]} is no module of sentence-transformers, but code of another program"
            )
            raise ModelFileError(message, HINT)
        modules.append((kind.rpartition(".")[2], folder / path))
    if not modules:
        raise ModelFileError(f"{folder / MODULES} lists no module", HINT)
    return modules


def pooling_of(config: Mapping[str, Any], place: Path) -> Pooling:
    """Return the pooling that a configuration names.

    Raises:
        ModelFileError: it is not known.
    """
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in FLAGS.items() if config.get(key)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes or not all(mode in POOLINGS for mode in modes):
        raise ModelFileError(
            f"{place / 'config.json'}: pooling {str(modes)[:60]}; known are {', '.join(POOLINGS)}", HINT
        )
    return Pooling(modes)


def step_of(kind: str, place: Path, names: Collection[str] = (VECTOR,)) -> nn.Module:
    """Return a module behind the pooling, which reads and writes what has these names.

    Raises:
        ModelFileError: it is not built, or its files are damaged.
    """
    if kind == "Normalize":
        return UnitLength()
    if kind == "Dropout":
        return nn.Identity()
    config = read_json(place / "config.json") if (place / "config.json").is_file() else {}
    if kind == "LayerNorm":
        norm = nn.LayerNorm(int(config["dimension"]))
        _fill(norm, place, {"weight": "norm.weight", "bias": "norm.bias"})
        return norm
    if kind != "Dense":
        raise ModelFileError(f"{place}: a module {kind} is not built", HINT)
    activation = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    where = {config.get(key) for key in ("module_input_name", "module_output_name")} - {None, *names}
    if activation not in ACTIVATIONS or where:
        said = activation if activation not in ACTIVATIONS else sorted(map(str, where))[0]
        raise ModelFileError(f"{place / 'config.json'}: {str(said)[:80]!r} is not built", HINT)
    try:
        dense = Dense(
            config["in_features"],
            config["out_features"],
            bias=config.get("bias", True),
            activation=activation,
            residual=config.get("use_residual", False),
        )
    except (KeyError, TypeError, RuntimeError) as error:
        raise ModelFileError(f"{place / 'config.json'} is no Dense: {error}", HINT) from error
    _fill(dense, place, {})
    return dense


def _fill(module: nn.Module, place: Path, names: Mapping[str, str]) -> None:
    """Give a module the tensors of its file; ``names`` are theirs by ours where they differ."""
    if not (place / WEIGHTS).is_file():
        if pickles := pickles_in(place):
            message = f"{place} has its weights only as {pickles[0].name}, a pickle, which can run any code"
            raise ModelFileError(message, "save the folder again with a sentence-transformers of today")
        raise ModelFileError(f"{place / WEIGHTS} is missing", "is the folder complete?")
    file = TensorFile(place / WEIGHTS)
    wanted = {name: names.get(name, name) for name, _ in module.named_parameters()}
    if file.keys() != set(wanted.values()):
        raise ModelFileError(f"{place / WEIGHTS} holds {', '.join(sorted(file))[:100]}", HINT)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            stored: Tensor = file[wanted[name]]
            if stored.shape != parameter.shape:
                raise ModelFileError(f"{place / WEIGHTS}: {name} has the shape {list(stored.shape)}", HINT)
            parameter.copy_(stored)
    module.requires_grad_(False)
