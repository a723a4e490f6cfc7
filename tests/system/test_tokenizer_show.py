"""`orrery tokenizer show` for every kind of model."""

import json

import pytest
from tokenizers import Tokenizer as Engine
from tokenizers import models, normalizers, pre_tokenizers

from orrery.cli.tokenizer.app import app
from orrery.errors import UsageError
from orrery.text.algorithms import bigrams
from orrery.text.train import train_tokenizer

TEXTS = ["low lower lowest low low\n"] * 20


@pytest.fixture
def show(tmp_path, capsys):
    def run(tokenizer, *words):
        file = tmp_path / "tokenizer.json"
        file.write_text(tokenizer if isinstance(tokenizer, str) else json.dumps(dict(tokenizer.definition)))
        app(["show", str(file), *words], result_action="return_value")
        return capsys.readouterr().out

    return run


def rows(output):
    return [line.split() for line in output.splitlines()]


def test_byte_level_shows_bytes_pieces_ids_and_merges(show):
    tokenizer = train_tokenizer("byte_bpe", TEXTS, 270)
    output = show(tokenizer, "low é")
    assert output.startswith("5 characters, 6 bytes, ")
    assert ["6c", "6f", "77", "low", str(tokenizer.id("low"))] in rows(output)
    assert ["c3", "Ã", str(tokenizer.id("Ã"))] in rows(output)
    assert "\nlow\n       0  l o w\n       1  " in output


def test_wordpiece_shows_the_matches_and_the_normalised_text(show):
    words = models.WordPiece({"[UNK]": 0, "giv": 1, "##in": 2}, unk_token="[UNK]")
    engine = Engine(words)
    engine.normalizer = normalizers.Lowercase()
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    output = show(engine.to_str(), "  Givin x")
    assert "normalised: ␣␣givin␣x" in output
    assert ["47", "69", "76", "giv", "1"] in rows(output)
    assert "       1  giv   no piece: givin, givi\n       2  ##in\n" in output
    assert "\nx\n       1  [UNK]   no piece: x\n" in output


def test_unigram_shows_the_best_cuts(show):
    engine = Engine(models.Unigram([("<unk>", -100.0), ("a", -1.0), ("b", -1.5), ("ab", -2.0)], 0))
    output = show(engine.to_str(), "ab", "--best", "2")
    assert output.endswith("\nab\n -2.0000  ab\n -2.5000  a b\n")
    with pytest.raises(UsageError, match="--best 0"):
        show(engine.to_str(), "ab", "--best", "0")


def test_words_characters_and_pairs_need_no_steps(show):
    words, characters = (train_tokenizer(kind, TEXTS) for kind in ("word", "character"))
    assert rows(show(words, "low"))[2:] == [["6c", "6f", "77", "low", str(words.id("low"))]]
    assert rows(show(characters, "lo"))[2:] == [
        ["6c", "l", str(characters.id("l"))],
        ["6f", "o", str(characters.id("o"))],
    ]
    pairs = bigrams.of_words([" low"], ["lo", "we", "r"], "<end>").to_str()
    drawn = ["6c 6f lo 2", "77 65 we 4", "72 r 3", "20 6c 6f 77 ␣low 1"]
    assert [" ".join(row) for row in rows(show(pairs, "lower low"))[2:]] == drawn


def test_an_empty_text_has_no_rows(show):
    assert show(train_tokenizer("byte_bpe", TEXTS, 270), "") == "0 characters, 0 bytes, 0 tokens\n"


def test_escapes_in_a_text_are_drawn_and_not_obeyed(show):
    assert "\x1b" not in show(train_tokenizer("character", ["\x1b[2J a\n"]), "\x1b[2J a\n")


def test_where_added_words_come_first_no_steps_are_made_up(show):
    tokenizer = train_tokenizer("char_bpe", TEXTS, 20)
    definition = json.loads(json.dumps(dict(tokenizer.definition)))
    added = dict(definition["added_tokens"][0], id=tokenizer.size, content="lowlow", special=False)
    definition["added_tokens"].append(added)
    output = show(json.dumps(definition), "lower")
    assert "no steps: this tokenizer takes 1 added words out of a text first" in output
