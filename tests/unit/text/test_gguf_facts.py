"""What GGUF files in the world say of their tokenizers, and what they leave to llama.cpp."""

from typing import Any

import pytest

from orrery.text.gguf.reading import CONTROL, NORMAL, UNKNOWN, UNUSED, USER, ends_of, tokenizer_of

LETTERS = ("\u2581", "a", "b", "c", "\u2581a", "ab")


def scored(*control: str, last: int = UNUSED, **said: Any) -> dict[str, Any]:
    """Return the facts of a SentencePiece model: three tokens as Llama has them, letters, and control tokens behind."""
    tokens = ["<unk>", "<s>", "</s>", *LETTERS, *control, "[PAD1]", "[PAD2]"]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[NORMAL] * len(LETTERS), *[CONTROL] * len(control), last, last]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": [0.0] * 3 + [-float(number) for number in range(len(tokens) - 3)],
        **{f"tokenizer.ggml.{key}": value for key, value in said.items()},
    }


def by_bytes(*tokens: str, **said: Any) -> dict[str, Any]:
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": ["a", "b", *tokens],
        "tokenizer.ggml.token_type": [NORMAL, NORMAL, *[CONTROL] * len(tokens)],
        "tokenizer.ggml.merges": [],
        **{f"tokenizer.ggml.{key}": value for key, value in said.items()},
    }


def phi3(**said: Any) -> dict[str, Any]:
    """Return facts as Phi-3's first files have them: fillers are unknown, and what is unknown is a control token."""
    facts = scored("<|endoftext|>", "<|user|>", "<|end|>", last=UNKNOWN, eos_token_id=9, unknown_token_id=0, **said)
    facts["tokenizer.ggml.token_type"][0] = CONTROL
    facts["tokenizer.ggml.token_type"][2] = USER
    return facts | {"general.architecture": "phi3"}


def test_fillers_of_phi_3_are_no_unknown_pieces() -> None:
    tokenizer = tokenizer_of(phi3())
    assert tokenizer is not None
    assert tokenizer.roles["unknown"] == "<unk>"
    assert tokenizer.frame("ab").ids[0] == 1
    assert 0 in tokenizer.encode("z")  # what is unknown


def test_control_tokens_of_phi_3_take_the_spaces_behind_them() -> None:
    tokenizer, plain = tokenizer_of(phi3()), tokenizer_of(phi3() | {"general.architecture": "llama"})
    assert tokenizer is not None
    assert plain is not None
    user, end = 10, 11
    spaced = tokenizer.encode("<|user|>\n  ab<|end|>\n", special=True)
    assert spaced == [user, *tokenizer.encode("ab"), end]
    assert plain.encode("<|user|>\n  ab<|end|>\n", special=True) != spaced
    assert tokenizer.encode("<|endoftext|> ab", special=True) == plain.encode("<|endoftext|> ab", special=True)


def test_what_a_file_does_not_name_is_as_llama_cpp_takes_it() -> None:
    tokenizer = tokenizer_of(scored())
    assert tokenizer is not None
    assert (tokenizer.roles["start"], tokenizer.roles["end"], tokenizer.roles["unknown"]) == ("<s>", "</s>", "<unk>")
    assert tokenizer.frame("a").ids[0] == 1
    assert ends_of(scored()) == [2]


@pytest.mark.parametrize(
    ("tokens", "named", "expected"),
    [
        (("<|endoftext|>", "<|im_end|>"), 2, [2, 3]),
        (("<|endoftext|>", "<|im_end|>"), 3, [3, 2]),
        (("<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"), 2, [2, 3, 4]),
        (("<|return|>", "<|call|>", "<|end|>"), 2, [2, 3]),
        (("<|endoftext|>", "<|end|>"), 2, [2, 3]),
        (("<eos>", "<turn|>", "<|tool_response>", "</s>"), 2, [2, 3, 4]),
        (("<own>",), 2, [2]),
        (("<|im_end|>",), 10**9, [2]),
        (("<own>",), None, []),
    ],
    ids=str,
)
def test_an_answer_ends_at_every_token_that_llama_cpp_ends_it_at(
    tokens: tuple[str, ...], named: int | None, expected: list[int]
) -> None:
    assert ends_of(by_bytes(*tokens, **({} if named is None else {"eos_token_id": named}))) == expected


@pytest.mark.parametrize(
    ("said", "text", "pieces"),
    [
        ({}, "Äb", ["ab"]),
        ({"normalizer.lowercase": True}, "Äb", ["ab"]),
        ({"normalizer.lowercase": False}, "Äb", ["Äb"]),
        ({"normalizer.lowercase": True, "normalizer.strip_accents": False}, "Äb", ["äb"]),
    ],
    ids=str,
)
def test_a_bert_with_case_says_so(said: dict[str, Any], text: str, pieces: list[str]) -> None:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581ab", "\u2581Äb", "\u2581äb"]
    facts = {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [CONTROL] * 4 + [NORMAL] * 3,
        "tokenizer.ggml.unknown_token_id": 1,
        **{f"tokenizer.ggml.{key}": value for key, value in said.items()},
    }
    tokenizer = tokenizer_of(facts)
    assert tokenizer is not None
    assert [tokenizer.decode([id]) for id in tokenizer.encode(text)] == pieces


def test_the_hidden_word_of_a_roberta_takes_the_space_before_it() -> None:
    tokenizer = tokenizer_of(by_bytes("<mask>", "\u0120", mask_token_id=2))
    assert tokenizer is not None
    assert tokenizer.encode("a <mask>", special=True) == [0, 2]
