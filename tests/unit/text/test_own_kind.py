"""A kind of tokenizer that a program defines is trained, saved, loaded and named in recipes as the usual ones are."""

from collections import Counter

import pytest
import tokenizers
from tokenizers import Regex, models, pre_tokenizers

import orrery
from orrery.errors import UsageError
from orrery.recipes.read import check_recipe
from orrery.text import load_tokenizer
from orrery.text.comparison import train_all
from orrery.text.kinds import TOKENIZERS, TokenizerKind, register
from orrery.text.train import train_tokenizer

TEXT = "the cat sat on the mat\n" * 30


def thirds() -> type[TokenizerKind]:
    """Define a kind that cuts a text into threes of characters, and make it known."""

    class Thirds(TokenizerKind):
        """Three characters are a token."""

        kind = "thirds"
        vocabulary = 50
        least = 4

        @staticmethod
        def train(texts, vocabulary, end):
            counts = Counter(text[i : i + 3] for text in texts for i in range(0, len(text), 3))
            pieces = ["<unk>", *sorted(piece for piece, _ in counts.most_common(vocabulary - 2))]
            made = tokenizers.Tokenizer(models.WordLevel({p: n for n, p in enumerate(pieces)}, unk_token="<unk>"))
            made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]{1,3}"), "isolated")
            made.add_special_tokens([end])
            return made

    return register(Thirds)


RECIPE = {
    "name": "thirds",
    "model": {
        "family": "llama",
        "config": {
            "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2,
            "max_position_embeddings": 32,
        },
    },
    "data": {"train": "text.txt", "split": {"tail": 0.2}},
    "tokenizer": {"kind": "thirds", "vocabulary": 20},
    "batches": {"size": 2, "length": 8},
    "training": {"steps": 2, "optimizer": {"kind": "adamw", "rate": 1e-3}, "precision": "float32"},
}  # fmt: skip


def test_it_is_trained_saved_and_loaded(tmp_path):
    thirds()
    made = train_tokenizer("thirds", [TEXT])
    assert made.size <= 50
    assert [made.token(id) for id in made.encode("the cat")] == ["the", " ca", "<unk>"]
    made.save(tmp_path / "made")
    assert load_tokenizer(tmp_path / "made").encode(TEXT) == made.encode(TEXT)
    assert "thirds" in train_all([TEXT], 40, lambda kind: None)[0]
    with pytest.raises(UsageError, match="thirds needs a vocabulary of at least 4, got 3"):
        train_tokenizer("thirds", [TEXT], 3)


def test_a_recipe_trains_with_it_and_its_model_needs_it_no_more(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    thirds()
    run = orrery.train(RECIPE, quiet=True)
    TOKENIZERS._parts.pop("thirds")
    assert run.load().tokenizer.size <= 20
    assert isinstance(run.load().generate("the", max_new_tokens=2, temperature=0.0), str)


def test_one_that_nobody_registered_is_refused_with_those_that_are():
    with pytest.raises(UsageError, match="there is no kind of tokenizer called 'thirds'; known: bigram, byte_bpe"):
        train_tokenizer("thirds", [TEXT])
    with pytest.raises(UsageError, match=r"tokenizer\.kind.* must be one of bigram, byte_bpe"):
        check_recipe(RECIPE, "recipe")
