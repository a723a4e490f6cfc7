"""Where the two texts around a gap stand among the tokens with which published models fill in."""

import pytest

from chat_toy import chat_tokenizer
from orrery.text.infill import infill_of
from served_models import with_tokens

# As their model cards and tokenizers write them: control tokens by name, the two texts as 1 and 2.
PUBLISHED = [
    ["<|fim_prefix|>", 1, "<|fim_suffix|>", 2, "<|fim_middle|>"],
    ["<fim_prefix>", 1, "<fim_suffix>", 2, "<fim_middle>"],
    ["<fim-prefix>", 1, "<fim-suffix>", 2, "<fim-middle>"],
    ["<｜fim▁begin｜>", 1, "<｜fim▁hole｜>", 2, "<｜fim▁end｜>"],  # noqa: RUF001
    ["▁<PRE>", 1, "▁<SUF>", 2, "▁<MID>"],
    ["[SUFFIX]", 2, "[PREFIX]", 1],
]


@pytest.mark.parametrize("form", PUBLISHED, ids=lambda form: form[0])
def test_a_prompt_is_arranged_as_the_model_was_taught(form):
    names = [part for part in form if isinstance(part, str)]
    tokenizer = with_tokens(chat_tokenizer("chatml"), [*names[::-1], "<EOT>"])
    infill = infill_of(tokenizer)
    texts = {1: [5, 6], 2: [7]}
    wanted = [id for part in form for id in (texts[part] if part in texts else [tokenizer.id(part)])]
    assert infill.around([5, 6], [7]) == wanted
    assert {tokenizer.id("<EOT>"), *(tokenizer.id(name) for name in names)} <= infill.ends


def test_a_tokenizer_without_all_of_a_form_has_none():
    assert infill_of(chat_tokenizer("chatml")) is None
    assert infill_of(with_tokens(chat_tokenizer("chatml"), ["<|fim_prefix|>", "<|fim_suffix|>"])) is None
