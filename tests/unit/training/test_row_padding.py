"""A decoder's classifier names a padding that ends no text, in its configuration and in its tokenizer."""

import json

import pytest
from tokenizers import Tokenizer as Library
from tokenizers.models import WordLevel

from orrery.runs.padding import with_padding
from orrery.text.tokenizer import Tokenizer, load_tokenizer

WORDS = ("</s>", "<unk>", "<pad>", "<s>", "cat")


def tokenizer(**roles: str | None) -> Tokenizer:
    library = Library(WordLevel({word: id for id, word in enumerate(WORDS)}, "<unk>"))
    library.add_special_tokens(list(WORDS[:4]))
    none = dict.fromkeys(("end", "unknown", "pad", "start"))
    return Tokenizer(library.to_str(), {**none, **roles})


END, UNKNOWN, PAD = {"end": "</s>"}, {"unknown": "<unk>"}, {"pad": "<pad>"}


@pytest.mark.parametrize(
    ("config", "roles", "padding_id"),
    [
        ({"pad_token_id": 2}, END | UNKNOWN, 2),  # the configuration's own
        ({"pad_token_id": 4}, END | UNKNOWN | PAD, 4),
        ({"pad_token_id": 0}, END | UNKNOWN | PAD, 2),  # but not one that ends a text
        ({"pad_token_id": None}, END | UNKNOWN | PAD, 2),
        ({}, END | UNKNOWN, 1),
        ({}, END | {"pad": "</s>"} | UNKNOWN, 1),
        ({"eos_token_id": [2, 1]}, END | UNKNOWN | PAD, 0),  # all three end texts
        ({"eos_token_id": 2}, PAD | UNKNOWN, 1),
        ({"pad_token_id": -1}, END | UNKNOWN, 1),  # no token
        ({"pad_token_id": 5}, END | UNKNOWN, 1),
        ({}, END, 0),  # nothing else is left
        ({}, {}, None),
    ],
)
def test_the_padding_ends_no_text_where_another_token_is_left(config, roles, padding_id, tmp_path) -> None:
    named, known = with_padding({"eos_token_id": 0, **config} if roles else config, tokenizer(**roles))
    assert named["pad_token_id"] == padding_id
    known.save(tmp_path)
    written = json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8")).get("pad_token")
    assert written == (None if padding_id is None else WORDS[padding_id])
    assert load_tokenizer(tmp_path).roles.get("pad") == written


def test_the_tokenizer_that_was_given_keeps_its_roles() -> None:
    given = tokenizer(**END)
    assert given.with_role("pad", "</s>").roles == {"end": "</s>", "pad": "</s>"}
    assert given.roles == {"end": "</s>"}
