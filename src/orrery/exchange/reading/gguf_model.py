"""A model from a GGUF file: facts to a configuration, tensors to ours, what was rounded stays as it is stored."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from orrery.checkpoints.gguf_blocks import unpacked
from orrery.checkpoints.gguf_file import MAGIC, OLDER, PLAIN, GgufEntry, GgufFile, parts_of
from orrery.checkpoints.layouts import Grouped, Layout, RotaryInterleaved, Rows, Stacked
from orrery.checkpoints.rules import Rule
from orrery.errors import ModelFileError
from orrery.exchange.reading.gguf_architectures import ARCHITECTURES
from orrery.exchange.reading.gguf_factors import FACTORS, read_scaling
from orrery.exchange.reading.gguf_learned import as_tensors
from orrery.exchange.reading.gguf_parts import EPSILON, PATTERN, POOLING, RMS_EPSILON, GgufArchitecture
from orrery.exchange.reading.gguf_ranking import with_pairs
from orrery.exchange.reading.gguf_refusals import refuse_others
from orrery.exchange.reading.gguf_seq2seq import UNREAD
from orrery.exchange.reading.gguf_vectors import ENCODERS, sentences_of
from orrery.exchange.reading.weights import check_fit, fill, from_theirs
from orrery.families import load_family, spec_of
from orrery.families._heads import without_pooler
from orrery.models.limits import check_numbers, check_size
from orrery.models.meta_device import build_on_meta
from orrery.models.model import Model, ModelSpec
from orrery.models.sentence_vectors import Sentences
from orrery.models.soundness import describes_a_model
from orrery.text.gguf.reading import ends_of, never_of, tokenizer_of
from orrery.text.tokenizer import Tokenizer
from orrery.tuning.blocks import KINDS, StoredBlocks, can_stay

ELSEWHERE = "take the Hugging Face folder of the same model"
SUFFIX = ".gguf"
_LAYER = re.compile(r"blk\.(\d{1,5})\.")
_COUNTED = {"token_types": "token_types.weight", "labels": "cls.output.weight"}
"""What is counted in rows of a tensor."""
_HARMLESS = frozenset(
    {RMS_EPSILON, EPSILON, POOLING, "rope.scaling.finetuned", "tensor_data_layout", "classifier.output_labels"}
    | {"padding", *_COUNTED}
)
"""Facts that change no number of a model; that of pooling is read beside it."""
_WORDS = frozenset({"rope.scaling.type", "tensor_data_layout", "hidden_activation", "classifier.activation"})
"""Facts that are words; all others are numbers, or true or false."""
_NEUTRAL = (0, None, False, "none")
CAUSAL = "attention.causal"
_USUAL = {"rope.scaling.attn_factor": 1.0, "rope.scaling.yarn_attn_factor": 1.0}
"""What changes nothing of facts that are factors."""
_SAMPLING = {
    "temp": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p", "penalty_repeat": "repetition_penalty",
}  # fmt: skip
"""Our setting by that of ``general.sampling``."""


@dataclass(frozen=True)
class GgufModel:
    """What a file holds; see ``reading.read.Stored`` for the words."""

    model: Model
    family: str
    config: dict[str, Any]
    generation: dict[str, Any]
    tokenizer: Tokenizer | None
    chat: dict[str, str]
    unpacked: tuple[str, ...] = ()
    sentences: Sentences | None = None


class Facts(Mapping[str, Any]):
    """The facts of an architecture without its name in front; it remembers which were asked for."""

    def __init__(self, known: Mapping[str, Any], architecture: GgufArchitecture, path: Path) -> None:
        start = f"{architecture.name}."
        self._known = {key.removeprefix(start): value for key, value in known.items() if key.startswith(start)}
        self._name, self._path, self._asked = architecture.name, path, set[str]()
        self._listed, self._causal = architecture.listed, architecture.name not in ENCODERS

    def __getitem__(self, key: str) -> Any:
        self._asked.add(key)
        if key not in self._known:
            raise ModelFileError(f"{self._path} does not say {self._name}.{key}", ELSEWHERE)
        value = self._known[key]
        if isinstance(value, list) and key != "block_count" and len(value) == self["block_count"]:
            if key in self._listed or key == PATTERN:
                return value
            value = value[0] if value and value.count(value[0]) == len(value) else value
        if not isinstance(value, int | float) and key not in _WORDS:
            said = f"{self._name}.{key} = {str(value)[:40]}"
            raise ModelFileError(f"{self._path}: {said} is no number; one for each layer is not built", ELSEWHERE)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return a fact, or the default where the file does not say it."""
        if key not in self:
            return default
        return self[key]

    def __contains__(self, key: object) -> bool:
        self._asked.add(str(key))
        return key in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def settle(self, defaults: Mapping[str, Any]) -> None:
        """Say what the file leaves to its reader."""
        for key, value in defaults.items():
            if self._known.get(key) is None:
                self._known[key] = value

    def refuse_others(self) -> None:
        """Refuse facts that nothing has asked for: they may change numbers.

        Raises:
            ModelFileError: there are such; all are named.
        """
        left = {key: value for key, value in self._known.items() if key not in self._asked | _HARMLESS}
        neutral = {**_USUAL, CAUSAL: self._causal}
        unread = [
            f"{self._name}.{key} = {str(value)[:40]}"
            for key, value in left.items()
            if (value != neutral[key] if key in neutral else value not in _NEUTRAL)
        ]
        if unread:
            raise ModelFileError(f"{self._path}: {', '.join(unread)} may change numbers, and is not built", ELSEWHERE)


def is_gguf(path: str | Path) -> bool:
    """Say whether a path is a file in llama.cpp's format, by its name or by how it begins."""
    path = Path(path)
    if not path.is_file():
        return False
    if path.suffix == SUFFIX:
        return True
    with path.open("rb") as file:
        return file.read(len(MAGIC)) in (MAGIC, *OLDER)


def read_gguf(path: Path) -> GgufModel:
    """Read the model in a file, or in the files of a split one.

    Raises:
        ModelFileError: the file is damaged, or of an architecture, a tokenizer or a kind of numbers that is not read.
    """
    files = _Files(path)
    family, config, spec, rules = _described(files, path)
    with describes_a_model(path):
        model = build_on_meta(spec)
    try:
        tokenizer, sentences = tokenizer_of(files.facts), sentences_of(files.facts, files)
        generation = _generation(files.facts, tokenizer)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error.message}", error.hint) from None
    staying = _staying(model, files, rules)
    if staying:
        StoredBlocks(parameters=tuple(f"{ours} {kind}" for names, kind in staying.values() for ours in names)).apply(
            model
        )
    read = [name for name in files if name not in {*FACTORS, *UNREAD} and not _predicts_further(name, files.facts)]
    theirs = {name: files[name] if name in staying else files.numbers(name) for name in read}
    try:
        tensors = from_theirs(model, {**theirs, **_learned(files, config, path)}, rules)
    except ModelFileError as error:
        message = error.message if str(path) in error.message else f"{path}: {error.message}"
        raise ModelFileError(message, ELSEWHERE) from None
    check_fit(model, tensors)
    fill(model, tensors)
    unpacked_kinds = sorted(
        {kind.name for name in theirs if name not in staying and (kind := files.entry(name).kind).block > 1}
    )
    return GgufModel(
        model,
        family,
        config,
        generation,
        tokenizer,
        with_pairs(_chat(files.facts)),
        tuple(unpacked_kinds),
        sentences,
    )


def _learned(files: "_Files", config: Mapping[str, Any], path: Path) -> dict[str, Tensor]:
    """Return the tensors that the file says among its facts."""
    try:
        return as_tensors(files.facts, config.get("num_hidden_layers", 0))
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error.message}", error.hint) from None


def spec_of_gguf(path: Path) -> ModelSpec:
    """Return the architecture of the model in a file, without reading a weight.

    Raises:
        ModelFileError: the file is damaged, or of an architecture that is not read.
    """
    return _described(_Files(path), path)[2]


def _described(files: "_Files", path: Path) -> tuple[str, dict[str, Any], Any, tuple[Rule, ...]]:
    """Return the family, the configuration, the architecture, and the rules of the tensors' names."""
    refuse_others(files.facts, files, path)
    family, architecture = _family(files, path)
    facts = Facts(files.facts, architecture, path)
    config = _config(architecture, facts, files, path)
    check_numbers(config, path)
    with describes_a_model(path):
        spec: Any = without_pooler(spec_of(load_family(family), config))
        check_size(spec, files.elements, path)
    return family, config, spec, architecture.rules_of(spec, files)


def _staying(model: Model, files: "_Files", rules: Sequence[Rule]) -> dict[str, tuple[tuple[str, ...], str]]:
    """Return the tensors that stay in blocks, each with the parameters that it is and their kind.

    They are linears' matrices or a table of tokens: one whose rows may be in another order, or all experts' in one.
    """
    own = {name: parameter for name, parameter in model.named_parameters() if can_stay(model, name)}
    staying: dict[str, tuple[tuple[str, ...], str]] = {}
    for rule in rules:
        for theirs, ours in rule.places(own):
            blocks = theirs in files and files.entry(theirs).kind.name in KINDS
            if blocks and keeps_rows(rule.layout, len(ours)) and own.keys() >= set(ours):
                staying[theirs] = ours, files.entry(theirs).kind.name
    return staying


def keeps_rows(layout: Layout, parts: int) -> bool:
    """Say whether each row of these parts of ours is one row of theirs: a block lies in one row."""
    match layout:
        case Rows():
            return True
        case Stacked():
            return not layout.turned
    return parts == 1 and isinstance(layout, RotaryInterleaved | Grouped)


def _predicts_further(name: str, facts: Mapping[str, Any]) -> bool:
    """Say whether a tensor is of the last layers, which predict further tokens and are no part of the logits."""
    architecture = facts["general.architecture"]
    layers, further = (facts.get(f"{architecture}.{key}", 0) for key in ("block_count", "nextn_predict_layers"))
    number = _LAYER.match(name)
    return bool(further and number and int(number[1]) >= layers - further)


class _Files(Mapping[str, Tensor]):
    """The tensors of a model in one file or several; the facts are those of the first."""

    def __init__(self, path: Path) -> None:
        files = [GgufFile(part) for part in parts_of(path)]
        self.facts = files[0].facts
        if self.facts.get("split.count", 0) not in (0, len(files)):
            many = self.facts["split.count"]
            name = f"NAME-00001-of-{many:05}.gguf"
            raise ModelFileError(f"{path} is one of {many} files of a model", f"give them their names back: {name}")
        self._places = {name: file for file in files for name in file}
        if len(self._places) < sum(map(len, files)):
            raise ModelFileError(
                f"{path}: two files of the model hold the same tensor", "get them again from one source"
            )

    def __getitem__(self, name: str) -> Tensor:
        return self._places[name][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def entry(self, name: str) -> GgufEntry:
        return self._places[name].entries[name]

    def numbers(self, name: str) -> Tensor:
        """Return a tensor's numbers, in float32 where it was stored in blocks."""
        kind = self.entry(name).kind
        return self[name] if kind.name in PLAIN else unpacked(self[name], kind)

    @property
    def elements(self) -> int:
        """How many numbers there are."""
        return sum(math.prod(self.entry(name).shape) for name in self)


def _family(files: _Files, path: Path) -> tuple[str, GgufArchitecture]:
    """Return the first family of this architecture; one that a fact tells from the others goes before them."""
    name = files.facts.get("general.architecture")
    named = [(family, row) for family, row in ARCHITECTURES.items() if row.name == name]
    told = [(family, row) for family, row in named if row.is_told(files.facts, files)]
    for family, row in told or [(family, row) for family, row in named if not row.told_by]:
        return family, row
    known = dict.fromkeys(architecture.name for architecture in ARCHITECTURES.values())
    raise ModelFileError(f"{path} is of the architecture {str(name)[:60]!r}; read are {', '.join(known)}", ELSEWHERE)


def _config(architecture: GgufArchitecture, facts: Facts, files: _Files, path: Path) -> dict[str, Any]:
    """Return the configuration that the facts stand for."""
    table = files.entry("token_embd.weight") if "token_embd.weight" in files else None
    if table is None or len(table.shape) != 2:
        raise ModelFileError(f"{path} has no table of tokens, token_embd.weight", ELSEWHERE)
    facts.settle({"vocab_size": table.shape[0]})
    for key, name in _COUNTED.items():
        if name in files:
            facts.settle({key: files.entry(name).shape[0]})
    padding = files.facts.get("tokenizer.ggml.padding_token_id")
    if type(padding) is int and 0 <= padding < table.shape[0]:
        facts.settle({"padding": padding})
    if architecture.rotary:
        _settle_rotary(facts, path, partial=architecture.partial)
    try:
        config = architecture.config(facts, files)
        if scaling := read_scaling(facts, files.numbers, set(files)):
            config["rope_scaling"] = scaling
    except ZeroDivisionError as error:
        raise ModelFileError(f"{path}: one of its facts is 0 that divides another", ELSEWHERE) from error
    except ModelFileError as error:
        message = error.message if str(path) in error.message else f"{path}: {error.message}"
        raise ModelFileError(message, error.hint) from error
    facts.refuse_others()
    return config


def _settle_rotary(facts: Facts, path: Path, partial: bool) -> None:
    """Say what llama.cpp takes where a file does not say it."""
    heads, width = facts["attention.head_count"], facts["embedding_length"]
    if heads < 1:
        raise ModelFileError(f"{path}: attention.head_count = {heads}", ELSEWHERE)
    facts.settle({"attention.head_count_kv": heads, "rope.freq_base": 10_000.0})
    facts.settle({"attention.key_length": int(width // heads)})
    key = facts["attention.key_length"]
    facts.settle({"attention.value_length": key, "rope.dimension_count": key})
    for other in ("attention.value_length", *(() if partial else ("rope.dimension_count",))):
        if facts[other] != key:
            message = f"{path}: {other} = {facts[other]} beside attention.key_length = {key} is not built"
            raise ModelFileError(message, ELSEWHERE)


def _generation(facts: Mapping[str, Any], tokenizer: Tokenizer | None) -> dict[str, Any]:
    """Return what the file says of writing, as a generation_config.json."""
    start = "general.sampling."
    said = {_SAMPLING[key]: facts[start + key] for key in _SAMPLING if start + key in facts}
    said |= {"do_sample": True} if "temperature" in said else {}
    ends = [] if tokenizer is None else ends_of(facts)
    said |= {} if tokenizer is None or not (never := never_of(facts)) else {"suppress_tokens": never}
    return said | ({"eos_token_id": ends if len(ends) > 1 else ends[0]} if ends else {})


def _chat(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the chat templates by name."""
    start = "tokenizer.chat_template"
    templates = {
        key.removeprefix(start).removeprefix(".") or "default": value
        for key, value in facts.items()
        if key.startswith(f"{start}.") or key == start
    }
    return {name: value for name, value in templates.items() if isinstance(value, str)}
