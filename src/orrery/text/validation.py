"""What a tokenizer.json must satisfy before it is trusted."""

import json
from typing import Any

import tokenizers

from orrery.errors import ModelFileError
from orrery.text.bounds import check_patterns, check_rules

MOST_CHARACTERS = 256 * 1024 * 1024
LONGEST_ADDED = 1024
HINT = "the file is damaged or was edited by hand: take it from its origin again"


def parse_tokenizer(content: str) -> tuple[dict[str, Any], tokenizers.Tokenizer]:
    """Return the parsed JSON and the engine. Raises `ModelFileError` that says what contradicts what."""
    if len(content) > MOST_CHARACTERS:
        raise ModelFileError(f"tokenizer.json has {len(content):,} characters", HINT)
    try:
        definition = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"tokenizer.json is not JSON: {error}", HINT) from None
    if not isinstance(definition, dict) or not isinstance(definition.get("model"), dict):
        raise ModelFileError("tokenizer.json has no 'model' object", HINT)
    _check_added(definition.get("added_tokens") or [])
    check_rules(definition)
    check_patterns(definition)
    engine = _engine(content)
    _check_ids(engine, definition)
    return definition, engine


def _check_added(added: Any) -> None:
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise ModelFileError("'added_tokens' is not a list of objects", HINT)
    seen: dict[str, int] = {}
    for token in added:
        content, id = token.get("content"), token.get("id")
        if not isinstance(content, str) or not content or not isinstance(id, int):
            raise ModelFileError(f"added token {id!r} needs a text 'content' and a whole 'id'", HINT)
        if len(content) > LONGEST_ADDED:
            raise ModelFileError(f"added token {id} has {len(content):,} characters, more than {LONGEST_ADDED:,}", HINT)
        if content in seen:
            raise ModelFileError(f"added token {content!r} has two ids, {seen[content]} and {id}", HINT)
        seen[content] = id


def _engine(content: str) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_str(content)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the Rust side is no Exception
        raise ModelFileError(f"tokenizer.json is not usable: {error}", HINT) from None


def _check_ids(engine: tokenizers.Tokenizer, definition: dict[str, Any]) -> None:
    vocabulary = engine.get_vocab(with_added_tokens=True)
    if not vocabulary:
        raise ModelFileError("tokenizer.json has an empty vocabulary", HINT)
    for token in definition.get("added_tokens") or []:
        # The engine gives a contradicting token another id without a word.
        if vocabulary.get(token["content"]) != token["id"]:
            raise ModelFileError(
                f"added token {token['content']!r} says id {token['id']}, the vocabulary gives it "
                f"{vocabulary.get(token['content'])}",
                HINT,
            )
    ids = sorted(vocabulary.values())
    holes = ids[-1] + 1 - len(ids)
    if len(set(ids)) < len(ids):
        raise ModelFileError("two tokens share one id", HINT)
    if holes > len(ids):
        raise ModelFileError(f"the largest id is {ids[-1]:,} for {len(ids):,} tokens", HINT)
