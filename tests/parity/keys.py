"""Every key of a configuration, perturbed one at a time: what the reference makes of it, and what Orrery does."""

import json
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orrery.errors import OrreryError
from orrery.exchange.reading.architecture import published
from orrery.exchange.reading.weights import from_theirs
from orrery.families import current_names, load_family, rules_of
from tests.parity import oracle
from tests.parity.helper import answer_of, error, load, random_ids
from tests.parity.stand_ins import class_of

BOUND = 1e-9
FOLLOWED, REFUSED, UNMOVED, ILLEGAL = "followed", "refused by name", "unmoved", "illegal to the reference"

Key = tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """What the reference computes from a configuration: its file, its answer and its configuration in full."""

    file: Mapping[str, Tensor]
    answer: Tensor
    settings: Mapping[str, Any]


@dataclass
class Findings:
    """What became of every key, and every value that Orrery reads otherwise than the reference."""

    outcomes: dict[Key, set[str]] = field(default_factory=lambda: defaultdict(set))
    wrong: list[str] = field(default_factory=list)


def written(family: str, **more: Any) -> dict[str, Any]:
    """Return the ``config.json`` that the reference writes for a family's tiny configuration and ``more`` keys."""
    rules = load_family(family)
    architecture = more.pop("architectures", [rules.ARCHITECTURE])
    made = class_of(rules.ARCHITECTURE).config_class
    special = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    full = made(**deepcopy({**special, **rules.TINY, **more})).to_dict()
    return json.loads(json.dumps({**full, "architectures": architecture, "model_type": made.model_type}))


def sparse(family: str, **more: Any) -> dict[str, Any]:
    """Return a ``config.json`` that leaves every key but the sizes to the defaults."""
    rules = load_family(family)
    kind = class_of(rules.ARCHITECTURE).config_class.model_type
    base = {"architectures": [rules.ARCHITECTURE], "model_type": kind, "pad_token_id": 0, **rules.TINY, **more}
    return json.loads(json.dumps(base))


_FILES: dict[Any, Mapping[str, Tensor]] = {}


def read_reference(config: Mapping[str, Any], before: Reading | None = None) -> Reading:
    """Return what the reference makes of a configuration, with random weights.

    ``before`` is returned where the reference sees no difference.
    """
    given = deepcopy(dict(config))
    make = class_of(given["architectures"][0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = make.config_class.from_dict(given)
        seen = settings.to_dict()
        if before is not None and seen == before.settings:
            return before
        # Falcon's eager kernel adds ALiBi twice, the one that it uses by default once.
        kernel = "sdpa" if settings.model_type == "falcon" else "eager"
        with torch.no_grad(), oracle.widened(*modules_of(settings)):
            model = make._from_config(
                settings, attn_implementation=kernel, experts_implementation="eager", dtype=torch.float64
            )
            oracle.randomise(model, 0)
            model = model.double().eval()
            file = _file(model)  # before the pass, in which RWKV's reference halves its own weights
            answer = answer_of(model(**inputs(settings)))
        if not torch.isfinite(answer).all():
            raise ValueError("the reference's answer is not finite")
        return Reading(file, answer, seen)


def modules_of(settings: Any) -> list[Any]:
    """Return the modules that define a reference, those of its parts first."""
    parts = (settings.encoder, settings.decoder) if settings.model_type == "vision-encoder-decoder" else ()
    return [oracle.modelling(part.model_type) for part in (*parts, settings)]


def _file(model: Any) -> Mapping[str, Tensor]:
    """Return the tensors of the reference's file, remembered by the names and shapes in memory: saving is slow."""
    shapes = tuple((name, tensor.shape, tensor.data_ptr()) for name, tensor in model.state_dict().items())
    first = {pointer: name for name, _, pointer in reversed(shapes)}
    key = (type(model), tuple((name, shape, first[pointer]) for name, shape, pointer in shapes))
    if key not in _FILES:
        _FILES[key] = oracle.file_of(model)
    return _FILES[key]


def inputs(settings: Any) -> dict[str, Tensor]:
    """Return what a reference model is called with."""
    # No id of a token that pads in any configuration: RoBERTa's reference takes it for padding without a mask.
    ids, targets = (random_ids(2, length, vocabulary=30, seed=length) + 17 for length in (11, 7))
    if settings.model_type in ("clip", "clip_text_model"):
        ids = ended(ids, getattr(settings, "text_config", settings))
    eyes = getattr(settings, "encoder", settings)
    eyes = getattr(eyes, "vision_config", eyes)
    channels = getattr(eyes, "num_channels", 3 if hasattr(eyes, "image_size") else None)
    if channels is not None:
        shape = (2, channels, *sides(eyes))
        pixels = torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        if hasattr(settings, "text_config"):
            return {"pixel_values": pixels, "input_ids": ids}
        more = {"decoder_input_ids": targets} if settings is not eyes else noise(eyes)
        return {"pixel_values": pixels, **more}
    pairs = type(settings)().is_encoder_decoder
    return {"input_ids": ids, **({"decoder_input_ids": targets} if pairs else {})}


def ended(ids: Tensor, settings: Any) -> Tensor:
    """Return ids with the end token, where the vector of a text stands, at another place of each row."""
    end = getattr(settings, "eos_token_id", None)
    if type(end) is int and 0 <= end < settings.vocab_size:
        ids[0, -2] = ids[1, -4] = end
    return ids


def sides(eyes: Any) -> tuple[int, int]:
    """Return the rows and columns of the pictures that a model is called with."""
    size = getattr(eyes, "image_size", 32)
    return tuple(size) if isinstance(size, list | tuple) else (size, size)


def noise(eyes: Any) -> dict[str, Tensor]:
    """Return the noise that says which patches a masked autoencoder hides."""
    if not hasattr(eyes, "mask_ratio"):
        return {}
    rows, columns = (side // eyes.patch_size for side in sides(eyes))
    rng = torch.Generator().manual_seed(4)
    return {"noise": torch.rand(2, rows * columns, generator=rng, dtype=torch.float64)}


def answered(model: Any, settings: Any) -> Tensor:
    """Return what a model of ours says to what the reference is called with."""
    given = inputs(settings)
    how = {name: given.pop(name) for name in ("noise",) if name in given}
    answer: Tensor = model.logits(*given.values(), **how) if model.spec.head_names else model.hidden(*given.values())
    return answer


def read_ours(config: Mapping[str, Any], reading: Reading) -> Tensor:
    """Return what Orrery computes from the same configuration and file."""
    spec = published(deepcopy(dict(config)), Path("config.json"))
    model = spec.build(0).double().eval()
    family = load_family(config["model_type"])
    theirs = current_names(family, config, reading.file)
    load(model, from_theirs(model, theirs, rules_of(family, config)))
    settings = class_of(config["architectures"][0]).config_class.from_dict(deepcopy(dict(config)))
    with torch.no_grad():
        return answered(model, settings)


def judge(config: Mapping[str, Any], key: Key, value: Any, base: Reading, plain: Any, findings: Findings) -> None:
    """Perturb one key of a configuration and note what becomes of it; ``plain`` is the unperturbed architecture."""
    changed = with_value(config, key, value)
    name = f"{'.'.join(key)} = {value!r}"
    try:
        reading = read_reference(changed, base)
    except Exception:  # whatever the reference raises, no number of its own is there to follow
        findings.outcomes[key].add(ILLEGAL)
        reading = None
    moved = reading is not None and (_shapes(reading) != _shapes(base) or not same(reading.answer, base.answer))
    try:
        spec = published(deepcopy(changed), Path("config.json"))
        if reading is None:
            return
        if spec == plain and not moved:
            findings.outcomes[key].add(UNMOVED)
            return
        answer = read_ours(changed, reading)
    except OrreryError as refusal:
        if reading is None:
            return
        if any(part in str(refusal) for part in key):
            findings.outcomes[key].add(REFUSED)
        else:
            findings.wrong.append(f"{name}: the refusal does not name the key: {refusal}")
        return
    except Exception as fault:
        findings.wrong.append(f"{name}: {type(fault).__name__}: {fault}")
        return
    if answer.shape != reading.answer.shape:
        findings.wrong.append(f"{name}: shape {list(answer.shape)}, the reference {list(reading.answer.shape)}")
    elif error(answer, reading.answer) > BOUND:
        verb = "moves" if moved else "does not move"
        findings.wrong.append(f"{name}: differs by {error(answer, reading.answer):.1e}; the reference {verb}")
    else:
        findings.outcomes[key].add(FOLLOWED if moved else UNMOVED)


def same(a: Tensor, b: Tensor) -> bool:
    """Say whether two answers are the same numbers."""
    return a.shape == b.shape and error(a, b) < 1e-12


def _shapes(reading: Reading) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in reading.file.items()}


def with_value(config: Mapping[str, Any], key: Key, value: Any) -> dict[str, Any]:
    """Return a configuration with another value under a key, which may lie inside objects."""
    first, *rest = key
    changed = dict(config)
    if value is ABSENT and not rest:
        changed.pop(first, None)
    else:
        changed[first] = with_value(changed.get(first) or {}, tuple(rest), value) if rest else value
    return changed


class _Absent:
    def __repr__(self) -> str:
        return "absent"


ABSENT = _Absent()
"""Stands for a key that is taken away."""

WORDS: Mapping[str, tuple[str, ...]] = {
    "position_embedding_type": ("absolute", "relative_key", "relative_key_query"),
    "feed_forward_proj": ("relu", "gelu", "gated-gelu", "gated-silu", "gated-relu", "silu", "gated-gelu_new"),
    "topk_method": ("greedy", "group_limited_greedy", "noaux_tc"),
    "scoring_func": ("softmax", "sigmoid"),
    "classifier_pooling": ("cls", "mean"),
    "summary_type": ("last", "first", "mean", "cls_index"),
    "problem_type": ("regression", "single_label_classification", "multi_label_classification"),
    "attn_type": ("multihead_attention", "multiquery_attention"),
    "dtype": ("float32", "bfloat16"),
    "norm_rel_ebd": ("none", "layer_norm"),
    "rope_type": ("default", "linear", "dynamic", "yarn", "llama3", "longrope", "proportional"),
    "model_type": (),
}
"""Keys whose values are words of their own."""

ACTIVATIONS = (
    "relu", "gelu_new", "silu", "gelu_fast", "quick_gelu", "gelu_pytorch_tanh", "gelu", "gelu_python", "gelu_10",
    "gelu_accurate", "swish", "tanh", "linear", "sigmoid", "relu2", "relu6", "leaky_relu", "mish", "laplace",
)  # fmt: skip
"""The functions that the reference knows by name."""

LENGTHS = ("*window*", "original_max_position_embeddings", "attention_chunk_size", "max_window_layers", "*_distance")

POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len")
"""The most tokens of a row, which Orrery holds a model to: no value is below the rows of the test."""


def values_of(key: Key, value: Any, wide: bool) -> list[Any]:
    """Return other values for a key, by its name and the value that it has; the reference says which are legal."""
    name = key[-1]
    if name in WORDS:
        tried: list[Any] = list(WORDS[name])
    elif "drop" in name:
        tried = [(value or 0.0) + 0.25, 0.0]
    elif isinstance(value, str) and (value in ACTIVATIONS or "act" in name):
        tried = list(ACTIVATIONS if wide else ACTIVATIONS[:4])
    elif isinstance(value, bool):
        tried = [not value]
    elif isinstance(value, int):
        tried = [2 * value, value + 1, value // 2, 1] + ([0, -1, 3 * value + 5] if wide else [])
        tried = [4, 1, *tried] if any(fnmatch(name, pattern) for pattern in LENGTHS) else tried
        tried = [2 * value, value + 1, value // 2] if name in POSITIONS else tried
    elif isinstance(value, float):
        tried = [2 * value + 0.25, value / 2] + ([0.0, 3] if wide else [])
    elif isinstance(value, list):
        tried = lists_of(value)
    elif isinstance(value, dict) and "model_type" in value:  # a model's part: its keys are perturbed themselves
        return []
    elif isinstance(value, dict):
        tried = [{}] if not wide else [{}, None, {"0": "a", "1": "b", "2": "c"}]
    elif value is None:
        tried = [3, 0.5, True, False, "gelu_new", [1], {"0": "a", "1": "b", "2": "c"}]
    else:
        tried = []
    tried += [None] if value is not None else []
    if key[0].startswith("rope") or not isinstance(value, int) or isinstance(value, bool):
        tried.append(ABSENT)  # an absent size would be a published one's
    tried = [other for other in tried if type(other) is not type(value) or other != value]
    return tried if wide else tried[:2]


def lists_of(value: list[Any]) -> list[Any]:
    """Return other lists."""
    turned = {"full_attention": "sliding_attention", "sliding_attention": "full_attention"}
    turned |= {"dense": "sparse", "sparse": "dense", "global": "local", "local": "global"}
    if not value:
        return [[0], [1]]
    if all(isinstance(entry, bool) for entry in value):
        others: list[Any] = [[not entry for entry in value]]
    elif all(isinstance(entry, int) for entry in value):
        others = [[1 - entry for entry in value], [1], [0]]
    else:
        others = [[turned.get(entry, entry) if isinstance(entry, str) else entry for entry in value]]
    return [*others, value[::-1], value[:1], []]


def keys_of(family: str, config: Mapping[str, Any]) -> Iterator[Key]:
    """Yield the keys of a configuration, of the objects in it, and those that either side knows besides."""
    rules = load_family(family)
    made = class_of(rules.ARCHITECTURE).config_class
    names = dict.fromkeys([*config, *made.attribute_map, *rules.DEFAULTS])
    for name in names:
        if name in ("model_type", "architectures"):
            continue
        yield (name,)
        if isinstance(config.get(name), dict) and name not in ("id2label", "label2id"):
            yield from nested((name,), config[name])


def nested(prefix: Key, values: Mapping[str, Any]) -> Iterator[Key]:
    """Yield the keys inside an object."""
    for name, value in values.items():
        if name == "model_type":
            continue
        yield (*prefix, name)
        if isinstance(value, dict) and name not in ("id2label", "label2id"):
            yield from nested((*prefix, name), value)


def canonical(family: str, key: Key) -> Key:
    """Return the name that the reference itself uses for a key."""
    made = class_of(load_family(family).ARCHITECTURE).config_class
    return (made.attribute_map.get(key[0], key[0]), *key[1:])


def value_at(config: Mapping[str, Any], key: Key) -> Any:
    """Return the value under a key, or nothing."""
    value: Any = config
    for name in key:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def try_keys(
    family: str, config: Mapping[str, Any], findings: Findings, *, wide: bool, only: Sequence[str] = ("*",)
) -> None:
    """Perturb every key of a configuration of a family whose joined name fits one of the patterns in ``only``."""
    base = read_reference(config)
    plain = published(deepcopy(dict(config)), Path("config.json"))
    assert error(read_ours(config, base), base.answer) <= BOUND, f"{family} differs before any key is perturbed"
    for key in keys_of(family, config):
        if any(fnmatch(".".join(key), pattern) for pattern in only):
            for value in values_of(key, value_at(config, canonical(family, key)), wide):
                judge(config, key, value, base, plain, findings)
