"""What a tokenizer_config.json calls special tokens beside the roles: by names of its own, or in lists."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from tokenizers import AddedToken, Tokenizer

from orrery.errors import ModelFileError

_LISTS = ("extra_special_tokens", "additional_special_tokens")
"""Where special tokens stand in a list; the first counts where both are there, as in transformers 5."""
_OBJECTS = ("extra_special_tokens", "model_specific_special_tokens")
"""Where they stand by name: ``image_token``, ``boi_token``."""

_TABLE = "added_tokens_decoder"
_FIRST = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The names whose tokens are added before those of other names."""
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized")
_HINT = "take tokenizer.json and the files beside it from one origin again"


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
    table = config.get(_TABLE)
    added = table.values() if isinstance(table, Mapping) else ()
    special = [token for token in added if isinstance(token, Mapping) and token.get("special")]
    for token in [*_list(config), *special]:
        if content := _content(token):
            yield content


def _list(config: Mapping[str, Any]) -> list[Any]:
    lists = (config.get(key) for key in _LISTS)
    return next((given for given in lists if isinstance(given, list)), [])


def with_absent(
    definition: Mapping[str, Any],
    find: Callable[[str], int | None],
    config: Mapping[str, Any],
    numbers: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Return a tokenizer.json with the tokens that the files beside it name and it lacks, as transformers adds them.

    They stand behind its own: those with ids, then the named ones, then those of a list.

    Args:
        definition: the tokenizer.json.
        find: returns the id of a token, if it has it.
        config: the tokenizer_config.json.
        numbers: the added_tokens.json, from tokens to ids.

    Raises:
        ModelFileError: one is no token with an id, or has an id that is not the next.
    """
    special, ids, tokens = special_tokens(config), {}, {}
    for id, token in [*_with_ids(config, numbers), *((None, token) for token in _named(config))]:
        content = _content(token)
        if content and content not in tokens and find(content) is None:
            ids[content], tokens[content] = id, _token(token, special=id is None or content in special)
    if not tokens:
        return definition
    engine = Tokenizer.from_str(json.dumps(definition))
    engine.add_tokens(list(tokens.values()))  # one by one takes time that grows with the square of their number
    for content in tokens:
        if ids[content] not in (None, next_id := engine.token_to_id(content)):
            message = f"the added token {content!r} has the id {ids[content]}, the next is {next_id}"
            raise ModelFileError(message, _HINT)
    # All else stays as it is: the library knows nothing of some keys.
    return {**definition, "added_tokens": json.loads(engine.to_str())["added_tokens"]}


def with_special(
    definition: Mapping[str, Any], find: Callable[[str], int | None], named: Collection[str]
) -> Mapping[str, Any]:
    """Return a tokenizer.json in which the pieces are special tokens that the files beside it call so."""
    listed = definition.get("added_tokens") or []
    special = {token["content"] for token in listed if token.get("special")}
    lacking = {token: id for token in named if token not in special and (id := find(token)) is not None}
    if not lacking:
        return definition
    flags = dict.fromkeys(_FLAGS, False)
    known = [{**token, "special": token["special"] or token["content"] in lacking} for token in listed]
    kept = {token["content"] for token in listed}
    added = [{"id": id, "content": token, **flags, "special": True} for token, id in lacking.items()]
    return {**definition, "added_tokens": [*known, *(one for one in added if one["content"] not in kept)]}


def _with_ids(config: Mapping[str, Any], numbers: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the tokens that have ids, by their ids: of the table, or of added_tokens.json where there is none."""
    special = special_tokens(config)
    flags = [{"special": content in special, "normalized": content not in special} for content in numbers]
    by_file = [(id, {"content": content, **its}) for (content, id), its in zip(numbers.items(), flags, strict=True)]
    table = config.get(_TABLE)
    try:
        pairs = [(int(id), token) for id, token in (table.items() if table is not None else by_file)]
        return sorted((pair for pair in pairs if pair[1]["content"]), key=lambda pair: pair[0])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError("the added tokens beside it are no tokens with their ids", _HINT) from error


def _named(config: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the tokens without ids, in the order in which they are added."""
    yield from (config[name] for name in _FIRST if name in config)
    yield from (value for name, value in config.items() if name.endswith("_token") and name not in _FIRST)
    for key in _OBJECTS:
        yield from config[key].values() if isinstance(config.get(key), Mapping) else ()
    yield from _list(config)


def _token(token: Any, special: bool) -> AddedToken:
    said = token if isinstance(token, Mapping) else {}
    flags = {flag: bool(said[flag]) for flag in _FLAGS if flag in said}
    return AddedToken(_content(token), special=special or bool(said.get("special")), **flags)


def _content(token: Any) -> str | None:
    content = token.get("content") if isinstance(token, Mapping) else token
    return content if isinstance(content, str) else None
