"""Folders with a vocabulary from before tokenizer.json: they load, and cut texts as transformers cuts them there."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoTokenizer

import orrery
from orrery.cli.program import run
from orrery.errors import ModelFileError
from orrery.text.tokenizer import load_tokenizer
from tiny_models import saved

TEXT = "the cat sat on the mat and drank coffee in the morning, while birds sang! naïve café Größe 日本 12,345.67"
TEXTS = (TEXT, "", " the", "the  cat\n\n", "<|im_end|> <s> </s>", "the<|tool|>cat", "\t🙂")
ADDED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "named roles": {"tokenizer_config.json": {"eos_token": "</s>", "bos_token": "<s>", "unk_token": "<s>"}},
    "a map": {"special_tokens_map.json": {"eos_token": "</s>", "bos_token": "<s>", "unk_token": "</s>"}},
    "added tokens": {
        "tokenizer_config.json": {"eos_token": "<|im_end|>", "unk_token": "<|im_end|>", "bos_token": "<|im_end|>"},
        "added_tokens.json": {"<|im_end|>": 290, "<|tool|>": 291},
    },
    "named tokens that the vocabulary lacks": {
        "tokenizer_config.json": {
            "eos_token": "<|im_end|>",
            "bos_token": "<s>",
            "unk_token": "<s>",
            "additional_special_tokens": ["<|tool|>"],
        }
    },
    "a decoder of added tokens": {
        "tokenizer_config.json": {
            "added_tokens_decoder": {
                "290": {"content": "<|im_end|>", "special": True},
                "291": {"content": "<|tool|>", "special": False},
            },
            "eos_token": "<|im_end|>",
            "bos_token": "<|im_end|>",
            "unk_token": "<|im_end|>",
        }
    },
}


def byte_level(folder: Path, files: dict[str, Any]) -> None:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = ["<s>", "</s>"]
    made.train_from_iterator(
        [TEXT] * 20,
        trainers.BpeTrainer(vocab_size=290, special_tokens=specials, initial_alphabet=alphabet, show_progress=False),
    )
    model = json.loads(made.to_str())["model"]
    assert len(model["vocab"]) == 290
    (folder / "vocab.json").write_text(json.dumps(model["vocab"]))
    lines = [" ".join(pair) for pair in model["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *lines]) + "\n")
    beside = {"tokenizer_config.json": {}, **files}
    for name, content in beside.items():
        extra = {"tokenizer_class": "GPT2Tokenizer"} if name == "tokenizer_config.json" else {}
        (folder / name).write_text(json.dumps({**extra, **content}))


def word_pieces(folder: Path, files: dict[str, Any]) -> None:
    letters = sorted({*TEXT.lower()} - {" "})
    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *letters,
        *(f"##{c}" for c in letters),
        "the",
        "cat",
        "##at",
    ]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    for name, content in {"tokenizer_config.json": {"tokenizer_class": "BertTokenizer"}, **files}.items():
        (folder / name).write_text(json.dumps(content))


@pytest.mark.parametrize("kind", ADDED)
def test_a_folder_with_vocab_json_and_merges_loads_everywhere(kind: str, tmp_path: Path) -> None:
    folder = saved(tmp_path / "model", "llama", vocab_size=292)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    byte_level(folder, ADDED[kind])
    lm = orrery.load(folder, "cpu", say=lambda line: None)
    theirs = AutoTokenizer.from_pretrained(folder)
    for text in TEXTS:
        expected = theirs(text, split_special_tokens=True, add_special_tokens=False).input_ids
        assert lm.tokenizer.encode(text) == expected, text
        written = theirs(text, add_special_tokens=False).input_ids
        assert lm.tokenizer.encode(text, special=True) == written, text
        assert lm.tokenizer.decode(written, special=True) == theirs.decode(written, clean_up_tokenization_spaces=False)
    assert lm.generate("the cat", max_new_tokens=2)
    assert run(["import", str(folder), str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / "tokenizer.json").is_file()
    again = orrery.load(tmp_path / "new", "cpu", say=lambda line: None)
    assert [again.tokenizer.encode(text) for text in TEXTS] == [lm.tokenizer.encode(text) for text in TEXTS]
    assert again.tokenizer.roles == lm.tokenizer.roles
    saved_again = AutoTokenizer.from_pretrained(tmp_path / "new")
    assert [saved_again(text).input_ids for text in TEXTS] == [theirs(text).input_ids for text in TEXTS]


def test_a_folder_with_a_vocab_txt_loads_everywhere(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model", "bert", vocab_size=120)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    word_pieces(folder, {})
    theirs = AutoTokenizer.from_pretrained(folder)
    lm = orrery.load(folder, "cpu", say=lambda line: None)
    for text in TEXTS:
        assert lm.tokenizer.frame(text).ids == theirs(text, split_special_tokens=True).input_ids, text
    assert lm.trace("the cat").tokens[0] == "[CLS]"
    assert run(["import", str(folder), str(tmp_path / "new")]) == 0
    assert (tmp_path / "new" / "tokenizer.json").is_file()


def test_what_lies_beside_is_named_where_there_is_no_tokenizer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(tmp_path / "model", "gpt2")
    (folder / "tokenizer.json").unlink()
    assert run(["generate", str(folder), "the"]) == 4
    said = capsys.readouterr().err
    assert "has no tokenizer" in said
    assert "a vocab.json with merges.txt, a vocab.txt or a SentencePiece model" in said


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", {"added_tokens_decoder": 3}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"x": {"content": "a"}}}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"1": "a"}}),
        ("tokenizer_config.json", {"added_tokens_decoder": {"1": {}}}),
        ("added_tokens.json", {"a": "many"}),
        ("added_tokens.json", {"a": None}),
        ("added_tokens.json", {"a": 9999}),
    ],
)
def test_added_tokens_that_are_none_are_refused(name: str, content: Any, tmp_path: Path) -> None:
    byte_level(tmp_path, {name: content})
    with pytest.raises(ModelFileError, match="added token"):
        load_tokenizer(tmp_path)
