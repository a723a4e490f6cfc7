"""Reading a published ``config.json`` with a closed schema: every key is used, known to be harmless, or refused."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any, TypeVar

from orrery.errors import ModelFileError
from orrery.families._generation_keys import FOLLOWED, REFUSED, WITHOUT_EFFECT
from orrery.families._keys import Key, check_value, key_of, plain

Chosen = TypeVar("Chosen")

_BOOKKEEPING = (
    "model_type", "architectures", "transformers_version", "torch_dtype", "dtype", "use_cache", "_name_or_path",
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "output_attentions",
    "output_hidden_states", "return_dict", "task_specific_params", "id2label", "label2id", "problem_type",
    "is_encoder_decoder", "chunk_size_feed_forward", "initializer_range", "tokenizer_class", "_commit_hash",
    "output_past", "_num_labels", "finetuning_task", "torchscript", "gradient_checkpointing", "use_bfloat16", "prefix",
    "pretraining_tp", "auto_map", "trust_remote_code", "_attn_implementation", "_attn_implementation_internal",
    "attn_implementation", "transformers.js_config",
)  # fmt: skip
"""Keys that no forward pass depends on, whatever the family.

The last ones name code to run elsewhere; here nothing is imported because a file says so.
"""

_GENERATION = frozenset({*FOLLOWED, *REFUSED, *WITHOUT_EFFECT, "force_bos_token_to_be_generated"})
"""Keys that choose how a model writes, not what its numbers are; today they stand in generation_config.json."""

_UNSET: Mapping[str, Any] = {
    "add_cross_attention": False, "cross_attention_hidden_size": None, "is_decoder": False, "output_scores": False,
    "pruned_heads": {}, "return_dict_in_generate": False, "tf_legacy_loss": False, "tie_encoder_decoder": False,
}  # fmt: skip
"""What old files write although nobody set it, with the value that says so."""

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
    "linear": "linear",
    "quick_gelu": "gelu_sigmoid",
    "relu2": "relu_squared",
}
"""Our names of the activations of files."""


def _off(*values: Any) -> bool:
    """Say whether all values mean that something is switched off: files write null or false."""
    return all(value is None or value is False for value in values)


class UnknownKeysError(ModelFileError):
    """Keys of a configuration that a family does not know."""

    def __init__(self, family: str, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)
        several = "keys" if len(keys) > 1 else "key"
        super().__init__(
            f"{family}: config.json has the unknown {several} {', '.join(map(repr, keys))}",
            "they could change the numbers; remove them if you know that they do not",
        )


class Config:
    """A family's view of a configuration: its defaults filled in, unknown keys refused by name.

    Args:
        family: for messages.
        given: the file's content.
        defaults: every key that the family uses, with what it says of it (see ``_keys``).
        fixed: keys that must have this value, because no published model of the family needs another.
        ignored: patterns of keys without an effect on the numbers.
        aliases: other names of keys that published files use, each with the name it stands for.

    Raises:
        ModelFileError: a key is not known, or its value is not supported or makes no sense.
    """

    def __init__(
        self,
        family: str,
        given: Mapping[str, Any],
        defaults: Mapping[str, Any],
        *,
        fixed: Mapping[str, Any] | None = None,
        ignored: Sequence[str] = (),
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.family = family
        fixed, aliases = fixed or {}, aliases or {}
        own: dict[str, Any] = {}
        known = {*defaults, *fixed}
        keys = {name: aliases.get(name, name) for name in given}
        idle = {name for name, key in keys.items() if _idle(key, given[name]) or _among(key, ignored)}
        if unknown := [name for name, key in keys.items() if key not in known and name not in idle]:
            raise UnknownKeysError(family, unknown)
        for name, value in given.items():
            key = keys[name]
            if key in fixed and not _same(value, fixed[key]):
                raise ModelFileError(
                    f"{family}: {name} = {value!r} is not supported, only {fixed[key]!r}",
                    "this setting changes the numbers; Orrery does not guess what it means",
                )
            if key in defaults:
                said = key_of(defaults[key])
                check_value(family, name, value, said)
                value = _plain(value, said)
                if key in own and own[key] != value:
                    raise _contradiction(family, [n for n in given if aliases.get(n, n) == key], given)
                own[key] = value
        self.values = {**plain(defaults), **own}

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def divide(self, dividend: str, parts: str) -> int:
        """Return one setting divided by another.

        Raises:
            ModelFileError: it leaves a remainder, or there are no parts.
        """
        quotient, remainder = divmod(self[dividend], self[parts]) if self[parts] else (0, self[dividend])
        if remainder or not self[parts]:
            raise ModelFileError(
                f"{self.family}: {dividend} = {self[dividend]} is not divisible by {parts} = {self[parts]}",
                f"choose {parts} among the divisors of {self[dividend]}",
            )
        return quotient

    def activation(self, key: str) -> str:
        """Return our name of an activation.

        Raises:
            ModelFileError: there is none.
        """
        return self.choose(key, ACTIVATIONS)

    def choose(self, key: str, choices: Mapping[str, Chosen]) -> Chosen:
        """Return what a setting stands for.

        Raises:
            ModelFileError: it is not among the choices.
        """
        if self[key] not in choices:
            raise ModelFileError(f"{self.family}: {key} = {self[key]!r} is not known", f"known: {', '.join(choices)}")
        return choices[self[key]]


def _idle(key: str, value: Any) -> bool:
    """Say whether no forward pass depends on a key with this value, whatever the family."""
    return key in _GENERATION or (key in _UNSET and _same(value, _UNSET[key])) or _among(key, _BOOKKEEPING)


def _same(value: Any, other: Any) -> bool:
    return value == other or _off(value, other)


def _among(key: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(key, pattern) for pattern in patterns)


def _contradiction(family: str, names: Sequence[str], given: Mapping[str, Any]) -> ModelFileError:
    """Return the error of a setting that a file gives twice, under two names, with two values."""
    said = ", ".join(f"{name} = {given[name]!r}" for name in names)
    return ModelFileError(f"{family}: {said}: two names of one setting", "keep the one that the model was trained with")


def _plain(value: Any, said: Key) -> Any:
    """Return a value as what the default is.

    JSON writers drop the point of 0.0 or add one to 2, and write null for false and for what is not there.
    """
    default = said.default
    if type(value) in (int, float) and (said.whole or type(default) in (int, float)):
        kind = float if type(default) is float else int
        return kind(value) if kind(value) == value else value
    if value is None and isinstance(default, Mapping):
        return default
    return False if value is None and isinstance(default, bool) else value
