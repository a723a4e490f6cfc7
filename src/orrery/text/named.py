"""What a tokenizer_config.json calls special tokens beside the roles: by names of its own, or in lists."""

from collections.abc import Iterator, Mapping
from typing import Any

_LISTS = ("extra_special_tokens", "additional_special_tokens")
"""Where special tokens stand in a list; the first counts where both are there, as in transformers 5."""
_OBJECTS = ("extra_special_tokens", "model_specific_special_tokens")
"""Where they stand by name: ``image_token``, ``boi_token``."""


def named_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens that have names, which chat templates read: ``eos_token``, ``boi_token``."""
    objects = (config.get(key) for key in _OBJECTS)
    pairs = [pair for given in objects if isinstance(given, Mapping) for pair in given.items()]
    pairs += [(key, value) for key, value in config.items() if key.endswith("_token")]
    found = {name: _content(value) for name, value in pairs if isinstance(name, str) and name.isidentifier()}
    return {name: content for name, content in found.items() if content}


def special_tokens(config: Mapping[str, Any]) -> set[str]:
    """Return all that a tokenizer_config.json calls special tokens: by name, in a list, in its table of added ones.

    What stands for the unknown is no control token: it is decoded, as SentencePiece does.
    """
    return {*named_tokens({**config, "unk_token": None}).values(), *_listed(config)}


def _listed(config: Mapping[str, Any]) -> Iterator[str]:
    lists = (config.get(key) for key in _LISTS)
    table = config.get("added_tokens_decoder")
    added = table.values() if isinstance(table, Mapping) else ()
    special = [token for token in added if isinstance(token, Mapping) and token.get("special")]
    for token in [*next((given for given in lists if isinstance(given, list)), ()), *special]:
        if content := _content(token):
            yield content


def _content(token: Any) -> str | None:
    content = token.get("content") if isinstance(token, Mapping) else token
    return content if isinstance(content, str) else None
