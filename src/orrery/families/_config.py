"""Reading a published ``config.json`` with a closed schema: every key is used, known to be harmless, or refused."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import Any, TypeVar

from orrery.errors import ModelFileError
from orrery.families._kinds import check_value

Chosen = TypeVar("Chosen")

_BOOKKEEPING = (
    "model_type", "architectures", "transformers_version", "torch_dtype", "dtype", "use_cache", "_name_or_path",
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "output_attentions",
    "output_hidden_states", "return_dict", "task_specific_params", "id2label", "label2id", "problem_type",
    "is_encoder_decoder", "chunk_size_feed_forward", "initializer_range", "tokenizer_class", "_commit_hash",
    "auto_map", "trust_remote_code", "_attn_implementation", "_attn_implementation_internal", "attn_implementation",
)  # fmt: skip
"""Keys that no forward pass depends on, whatever the family.

The last line's name code to run elsewhere; here nothing is imported because a file says so.
"""

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}


def _off(*values: Any) -> bool:
    """Say whether all values mean that something is switched off: files write null or false."""
    return all(value is None or value is False for value in values)


class Config:
    """A family's view of a configuration: its defaults filled in, unknown keys refused by name.

    Args:
        family: for messages.
        given: the file's content.
        defaults: every key that the family uses, with the value that an absent key means.
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
        given = {aliases.get(key, key): value for key, value in given.items()}
        for key, value in given.items():
            if key in fixed and value != fixed[key] and not _off(value, fixed[key]):
                raise ModelFileError(
                    f"{family}: {key} = {value!r} is not supported, only {fixed[key]!r}",
                    "this setting changes the numbers; Orrery does not guess what it means",
                )
            if key not in defaults and key not in fixed and not any(fnmatch(key, p) for p in (*_BOOKKEEPING, *ignored)):
                raise ModelFileError(
                    f"{family}: config.json has the unknown key {key!r}",
                    "it could change the numbers; remove it if you know that it does not",
                )
            if key in defaults:
                check_value(family, key, value, defaults[key])
        own = {key: _plain(value, defaults[key]) for key, value in given.items() if key in defaults}
        self.values = {**defaults, **own}

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def divide(self, whole: str, parts: str) -> int:
        """Return one setting divided by another.

        Raises:
            ModelFileError: it leaves a remainder, or there are no parts.
        """
        quotient, remainder = divmod(self[whole], self[parts]) if self[parts] else (0, self[whole])
        if remainder or not self[parts]:
            raise ModelFileError(
                f"{self.family}: {whole} = {self[whole]} is not divisible by {parts} = {self[parts]}",
                f"choose {parts} among the divisors of {self[whole]}",
            )
        return quotient

    def activation(self, key: str) -> str:
        """Return our name of an activation.

        Raises:
            ModelFileError: there is none.
        """
        return self.choose(key, _ACTIVATIONS)

    def choose(self, key: str, choices: Mapping[str, Chosen]) -> Chosen:
        """Return what a setting stands for.

        Raises:
            ModelFileError: it is not among the choices.
        """
        if self[key] not in choices:
            raise ModelFileError(f"{self.family}: {key} = {self[key]!r} is not known", f"known: {', '.join(choices)}")
        return choices[self[key]]


def _plain(value: Any, default: Any) -> Any:
    """Return a value as what the default is: JSON writers drop the point of 0.0, and write null for false."""
    if isinstance(default, float) and type(value) is int:
        return float(value)
    return False if value is None and isinstance(default, bool) else value
