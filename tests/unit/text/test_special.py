"""Special tokens of a family given to a trained tokenizer: the same as transformers puts around texts."""

import pytest

from orrery.errors import UsageError
from orrery.text.kinds import FRAMES, TOKENIZERS
from orrery.text.special import framed_tokenizer, tokens_of
from orrery.text.tokenizer import load_tokenizer
from orrery.text.train import train_tokenizer

TEXT = "the cat sat on the mat, and the dog sat on the log"


def trained(kind, **how):
    return train_tokenizer(kind, [TEXT] * 20, None if kind in ("word", "character") else 290, **how)


@pytest.mark.parametrize("kind", TOKENIZERS.names())
@pytest.mark.parametrize("frame", FRAMES)
def test_texts_stand_between_the_tokens_of_the_family(kind, frame):
    plain = trained(kind)
    framed = framed_tokenizer(plain, frame)
    a, b = plain.encode("the cat"), plain.encode("the dog")
    assert framed.encode("the cat") == a
    assert framed.size == plain.size + len(tokens_of(frame))
    first, end = {"bert": (["[CLS]"], ["[SEP]"]), "roberta": (["<s>"], ["</s>"]), "t5": ([], ["</s>"])}[frame]
    middle = end * 2 if frame == "roberta" else end
    ids = lambda tokens: [framed.id(token) for token in tokens]  # noqa: E731
    assert framed.frame("the cat").ids == [*ids(first), *a, *ids(end)]
    pair = framed.frame("the cat", "the dog")
    assert pair.ids == [*ids(first), *a, *ids(middle), *b, *ids(end)]
    assert sum(pair.token_types) == (len(b) + 1 if frame == "bert" else 0)


@pytest.mark.parametrize("kind", ["byte_bpe", "wordpiece", "unigram", "character"])
@pytest.mark.parametrize("frame", FRAMES)
def test_what_is_written_stays_text_and_the_file_says_all(kind, frame, tmp_path):
    framed = framed_tokenizer(trained(kind), frame)
    written = " ".join(tokens_of(frame)[:4])
    assert not framed.control & set(framed.encode(written))
    framed.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert (again.definition, again.roles) == (framed.definition, framed.roles)


@pytest.mark.parametrize("frame", FRAMES)
def test_transformers_puts_the_same_around(frame, tmp_path):
    transformers = pytest.importorskip("transformers")
    framed = framed_tokenizer(trained("byte_bpe"), frame)
    framed.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs("the cat", "the dog")["input_ids"] == framed.frame("the cat", "the dog").ids
    assert theirs.pad_token_id == framed.special("pad")


def test_a_second_frame_is_refused():
    framed = framed_tokenizer(trained("byte_bpe"), "bert")
    with pytest.raises(UsageError, match="already"):
        framed_tokenizer(framed, "t5")


def test_t5_has_a_hundred_sentinels():
    framed = framed_tokenizer(trained("byte_bpe"), "t5")
    assert len({framed.id(f"<extra_id_{n}>") for n in range(100)}) == 100
    assert "<extra_id_100>" not in tokens_of("t5")
