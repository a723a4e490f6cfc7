"""What ``adapter_config.json`` says, read strictly: what changes the numbers is followed, or refused by name."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

from orrery.checkpoints.json_file import read_json
from orrery.errors import ModelFileError
from orrery.tuning.peft.places import CONFIG

_READ = {
    "r", "lora_alpha", "lora_dropout", "use_rslora", "rank_pattern", "alpha_pattern", "target_modules", "bias",
    "exclude_modules", "modules_to_save", "layers_to_transform", "layers_pattern", "base_model_name_or_path",
    "peft_type", "use_dora", "init_lora_weights", "trainable_token_indices", "ensure_weight_tying",
}  # fmt: skip
_IDLE = {
    "task_type", "auto_mapping", "peft_version", "revision", "inference_mode", "fan_in_fan_out", "megatron_core",
    "loftq_config", "eva_config", "corda_config", "lora_ga_config", "qalora_group_size", "runtime_config",
}  # fmt: skip
"""Keys that change no number of a finished adapter: what they say is in the tensors, or the base."""
_NEVER_MERGED = (
    "PROMPT_TUNING",
    "PREFIX_TUNING",
    "P_TUNING",
    "MULTITASK_PROMPT_TUNING",
    "CPT",
    "ADAPTION_PROMPT",
    "XLORA",
)
"""Kinds that put rows before those of a text or layers into the model, or weigh by the text: no matrix takes them."""
_PLAIN_STARTS = (True, False, None, "gaussian", "orthogonal", "eva")
"""Ways to begin that leave the base as it is; the others (PiSSA, OLoRA, LoftQ) put a part of it into the adapter."""

Number = int | float
_AGAIN = "get the file again from its source"
_NAME = re.compile(r"[\w.-]+")


class PeftConfig:
    """The settings of one LoRA of peft (its ``LoraConfig``)."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CONFIG
        content = read_json(self.path)
        self._refuse_unknown(content)
        self.base = content.get("base_model_name_or_path")
        self.rank, self.alpha = self._number(content, "r", 8), self._number(content, "lora_alpha", 8)
        self.dropout = self._number(content, "lora_dropout", 0.0)
        self.stable = bool(content.get("use_rslora"))
        self.ranks, self.alphas = (self._pattern(content, key) for key in ("rank_pattern", "alpha_pattern"))
        self.targets, self.excluded = content.get("target_modules"), content.get("exclude_modules")
        layers, self.layers_pattern = content.get("layers_to_transform"), content.get("layers_pattern")
        self.layers = [layers] if isinstance(layers, int) else layers
        self.whole = self._names(content, "modules_to_save")
        self.tokens = content.get("trainable_token_indices")

    def scale(self, module: str, rank: int) -> float:
        """Return what the product counts: ``alpha / r``, or ``alpha / sqrt(r)`` (Kalajdzievski 2023)."""
        alpha = self._own(self.alphas, module, self.alpha)
        return float(alpha / (rank**0.5 if self.stable else rank))

    def rank_of(self, module: str) -> Number:
        """Return the rank of one module."""
        return self._own(self.ranks, module, self.rank)

    def rows_of(self, table: str) -> list[int]:
        """Return the rows of a table that were trained; a list alone is of the one that the model reads."""
        own = self.tokens.items() if isinstance(self.tokens, Mapping) else [("", self.tokens)]
        ids = next((ids for key, ids in own if not key or _ends(table, [key])), None)
        if not isinstance(ids, list) or not all(type(id) is int for id in ids) or len(set(ids)) < len(ids):
            self.refuse(f"has rows of {table}, and trainable_token_indices does not say which", _AGAIN)
        return ids

    def missing(self, known: Collection[str], there: Collection[str]) -> list[str]:
        """Return the modules that a list of targets names and the file lacks; of a regex the file alone tells."""
        targets, excluded = self.targets, self.excluded or []
        if not isinstance(targets, list) or not isinstance(excluded, list):
            return []
        wanted = [name for name in known if _ends(name, targets) and not _ends(name, excluded)]
        return [name for name in wanted if name not in there and self._in_layers(name)]

    def _in_layers(self, module: str) -> bool:
        if self.layers is None:
            return True
        patterns = [self.layers_pattern] if isinstance(self.layers_pattern, str) else self.layers_pattern
        owners = "|".join(map(re.escape, patterns)) if patterns else r"[^.]*"
        match = re.match(rf".*\.(?:{owners})\.(\d+)\.", f".{module}")
        return match is not None and int(match[1]) in self.layers

    def _own(self, pattern: Mapping[str, Number], module: str, usual: Number) -> Number:
        """Return the number of the first key that names a module or its end, as peft matches them."""
        return next((number for key, number in pattern.items() if _ends(module, [key])), usual)

    def _refuse_unknown(self, content: Mapping[str, Any]) -> None:
        kind = content.get("peft_type")
        if kind != "LORA":
            alone = kind in _NEVER_MERGED
            hint = "answer with it in peft" if alone else "merge it with peft and load the whole"
            self.refuse(f"holds an adapter of the type {kind!r}", f"LORA is read; {hint}")
        if content.get("use_dora"):
            message = "holds a DoRA adapter (use_dora), whose norms a LoRA has no place for"
            self.refuse(message, "merge it with peft and load the whole")
        if content.get("lora_bias"):
            message = "trained a bias of each B (lora_bias), which few matrices have a place for"
            self.refuse(message, "answer with it in peft, or train without lora_bias")
        start = content.get("init_lora_weights", True)
        if start not in _PLAIN_STARTS:
            message = f"began with {start!r}, which takes a part of the base into the adapter"
            self.refuse(message, "save it as a plain LoRA with peft: path_initial_model_for_weight_conversion")
        for key, value in content.items():
            if key not in _READ | _IDLE and value:
                self.refuse(f"asks for {key}, which is not read here", "merge the adapter with peft and load the whole")

    def _number(self, content: Mapping[str, Any], key: str, usual: Number) -> Number:
        value = content.get(key, usual)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            self.refuse(f"{key} = {str(value)[:60]!r} is no such number", _AGAIN)
        return float(value) if key == "lora_dropout" else value

    def _pattern(self, content: Mapping[str, Any], key: str) -> dict[str, Number]:
        given = content.get(key) or {}
        if not isinstance(given, dict):
            self.refuse(f"{key} is no object", _AGAIN)
        if strange := [name for name in given if not _NAME.fullmatch(name)]:
            self.refuse(f"has the {key} {strange[0]!r}, which is no name of a module", "write the modules' names")
        return {name: self._number(given, name, 0) for name in given}

    def _names(self, content: Mapping[str, Any], key: str) -> list[str]:
        given = content.get(key) or []
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            self.refuse(f"{key} is no list of names", _AGAIN)
        return given

    def refuse(self, what: str, hint: str) -> NoReturn:
        """Raise the error of a file whose adapter is not read."""
        raise ModelFileError(f"{self.path} {what}", hint)


def _ends(name: str, targets: Collection[str]) -> bool:
    return any(name == target or name.endswith(f".{target}") for target in targets)
