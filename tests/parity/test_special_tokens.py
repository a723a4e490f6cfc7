"""Which tokens begin, end and fill a text: as transformers reads it from the files that people have."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer

from orrery.errors import ModelFileError, UsageError
from orrery.text.chat.jinja import JinjaTemplate
from orrery.text.chat.spans.encoding import Control
from orrery.text.tokenizer import load_tokenizer

CONTROL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", "<pad>")
WORDS = ("end", "start", "the", "mask")
NAMES = {"end": "eos_token", "start": "bos_token", "pad": "pad_token"}
ADDED = {"added_tokens_decoder": {"3": {"content": "<|im_end|>", "special": True}}}

CONFIGS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "names": {"eos_token": "</s>", "bos_token": "<s>"},
    "null": {"eos_token": None, "bos_token": "<s>"},
    "objects": {"eos_token": {"__type": "AddedToken", "content": "<|im_end|>", "special": True}},
    "all added": {**ADDED, "eos_token": "</s>"},
    "all added, null": {**ADDED, "eos_token": None, "pad_token": "<pad>"},
}
MAPS: dict[str, dict[str, Any] | None] = {
    "no map": None,
    "names": {"eos_token": "<|im_end|>", "bos_token": "<|im_start|>"},
    "objects": {"eos_token": {"content": "<|im_end|>", "lstrip": False}, "pad_token": "<pad>"},
}


def folder_of(folder: Path, config: dict[str, Any] | None, named: dict[str, Any] | None) -> Path:
    made = Tokenizer(models.WordLevel({word: n for n, word in enumerate((*CONTROL, *WORDS))}, "the"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(list(CONTROL))
    made.save(str(folder / "tokenizer.json"))
    if config is not None:
        plain = {"tokenizer_class": "PreTrainedTokenizerFast", **config}
        (folder / "tokenizer_config.json").write_text(json.dumps(plain))
    if named is not None:
        (folder / "special_tokens_map.json").write_text(json.dumps(named))
    return folder


@pytest.mark.parametrize(("config", "named"), list(product(CONFIGS, MAPS)))
def test_the_roles_are_those_of_the_reference(config: str, named: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, CONFIGS[config], MAPS[named])
    ours, theirs = load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    counts = "added_tokens_decoder" not in CONFIGS[config]
    said = {*CONFIGS[config], *((counts and MAPS[named]) or {})}  # what no file names, we know by its usual spelling
    for role, name in NAMES.items():
        if name in said:
            assert ours.roles.get(role) == getattr(theirs, name), role
    ours.save(tmp_path / "again")
    again = load_tokenizer(tmp_path / "again")
    assert again.roles == ours.roles
    saved = AutoTokenizer.from_pretrained(tmp_path / "again")
    assert {role: getattr(saved, name) for role, name in NAMES.items()} == {
        role: ours.roles.get(role) for role in NAMES
    }


def test_a_role_that_the_files_deny_stays_denied_where_they_add_a_token(tmp_path: Path) -> None:
    said = {"bos_token": None, "pad_token": "<fill>", "extra_special_tokens": ["the"]}
    assert load_tokenizer(folder_of(tmp_path, said, None)).roles == {"pad": "<fill>", "end": "</s>"}


@pytest.mark.parametrize("role", ["end", "start", "mask"])
def test_a_word_with_the_name_of_a_role_is_no_control_token(role: str, tmp_path: Path) -> None:
    denied = dict.fromkeys(("eos_token", "bos_token"))
    tokenizer = load_tokenizer(folder_of(tmp_path, denied, None))
    assert tokenizer.id(role) is not None
    with pytest.raises(UsageError, match=f"no special token '{role}'"):
        tokenizer.special(role)
    with pytest.raises(UsageError, match="no special token 'the'"):
        tokenizer.special("the")
    assert tokenizer.special("<pad>") == CONTROL.index("<pad>")


def _object(content: str) -> dict[str, Any]:
    return {"__type": "AddedToken", "content": content, "lstrip": False, "special": True}


SAYINGS: dict[str, dict[str, Any]] = {
    "a list": {"extra_special_tokens": ["the", "<pad>"]},
    "by name": {"extra_special_tokens": {"image_token": "the", "boi_token": "<pad>"}},
    "by name, absent": {"extra_special_tokens": {"image_token": "<image>"}},
    "objects by name": {"extra_special_tokens": {"image_token": _object("the")}},
    "of the model": {"model_specific_special_tokens": {"image_token": "the"}},
    "a key": {"image_token": "the", "boi_token": _object("mask")},
    "an older list": {"additional_special_tokens": ["the"]},
    "both lists": {"additional_special_tokens": ["the"], "extra_special_tokens": ["mask"]},
    "a role": {"eos_token": "the"},
    "a table": {"added_tokens_decoder": {"7": _object("the")}},
}
TEMPLATE = "{{ image_token }}|{{ boi_token }}|{{ messages[0].content }}"


@pytest.mark.parametrize("saying", SAYINGS)
def test_what_the_files_call_special_is_special_and_has_its_name_in_templates(saying: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, SAYINGS[saying], None)
    ours, theirs = load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    ours.save(tmp_path / "again")
    said = [{"role": "user", "content": "end"}]
    written = theirs.apply_chat_template(said, chat_template=TEMPLATE, tokenize=False)
    for tokenizer in (ours, load_tokenizer(tmp_path / "again")):
        ids = range(len(CONTROL + WORDS))
        assert tokenizer.decode(ids) == theirs.decode(ids, skip_special_tokens=True)
        spans = JinjaTemplate(TEMPLATE, tokenizer).spans(said, prompt=False)
        assert "".join(span.token if isinstance(span, Control) else span.text for span in spans) == written


def _plain(content: str) -> dict[str, Any]:
    return {"content": content, "lstrip": False, "rstrip": False, "single_word": False, "normalized": True}


ABSENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a role": ({"pad_token": "<fill>", "eos_token": _object("<stop>"), "bos_token": "<s>"}, {}),
    "a list": ({"extra_special_tokens": ["<tool>", "</s>", "<call>"], "pad_token": "<fill>"}, {}),
    "an older list": ({"additional_special_tokens": ["<tool>", _object("<call>")]}, {}),
    "by name": ({"extra_special_tokens": {"image_token": "<image>"}, "boi_token": "<boi>", "eos_token": "<stop>"}, {}),
    "a table": ({"added_tokens_decoder": {"10": _object("<call>"), "9": _plain("<tool>")}, "pad_token": "<fill>"}, {}),
    "a plain one with a role": ({"added_tokens_decoder": {"9": _plain("<fill>")}, "pad_token": "<fill>"}, {}),
    "a file": ({}, {"added_tokens.json": {"<call>": 10, "<tool>": 9}}),
    "a map": ({}, {"special_tokens_map.json": {"pad_token": _plain("<fill>"), "eos_token": "<call>"}}),
    "both": ({"eos_token": "<call>"}, {"added_tokens.json": {"<call>": 10, "<tool>": 9}}),
}


@pytest.mark.parametrize("absent", ABSENT)
def test_tokens_that_the_files_name_and_the_tokenizer_lacks_stand_behind_its_own(absent: str, tmp_path: Path) -> None:
    config, files = ABSENT[absent]
    folder = folder_of(tmp_path, config, None)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    ours, theirs = load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    ours.save(tmp_path / "again")
    written = "the<tool>end <call>mask<fill><image> <boi><stop></s>"
    for tokenizer in (ours, load_tokenizer(tmp_path / "again")):
        assert tokenizer.size == len(theirs)
        assert tokenizer.encode(written, special=True) == theirs(written).input_ids
        assert tokenizer.encode(written) == theirs(written, split_special_tokens=True).input_ids
        for special in (False, True):
            ids = range(tokenizer.size)
            assert tokenizer.decode(ids, special) == theirs.decode(ids, skip_special_tokens=not special)


def test_an_absent_token_with_an_id_that_is_not_the_next_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"added_tokens_decoder": {"4711": _object("<call>")}}, None)
    with pytest.raises(ModelFileError, match=r"the added token '<call>' has the id 4711, the next is 9"):
        load_tokenizer(folder)


def test_thousands_of_tokens_that_the_files_name_stand_behind_in_their_order(tmp_path: Path) -> None:
    speech = [f"<custom_token_{number}>" for number in range(3000)]  # as models of speech add them
    folder = folder_of(tmp_path, {"additional_special_tokens": speech}, None)
    ours, theirs = load_tokenizer(folder), AutoTokenizer.from_pretrained(folder)
    assert ours.size == len(theirs)
    assert [ours.id(token) for token in speech] == theirs.convert_tokens_to_ids(speech)
