"""Folders of tokenizers whose classes know what no file says: ByT5's bytes, fairseq's numbers, languages."""

import json
import sys

import pytest
import transformers
import transformers.convert_slow_tokenizer  # the package has a function of this name too
from tests.parity.test_sentencepiece_models import LINES, train

from orrery.errors import ModelFileError
from orrery.text import load_tokenizer
from orrery.text.sentencepiece.file import read

TEXTS = ["", "the naïve bean == 111", "Äpfel 🙂 日本", "  two  spaces\tand a line\n", *LINES[:6]]
PAIR = ("the bean", "Bean == 222")
CLASSES = [
    ("XLMRobertaTokenizer", {}),
    ("CamembertTokenizer", {}),
    ("MBartTokenizer", {"src_lang": "de_DE"}),
    ("MBart50Tokenizer", {}),
    ("MBart50Tokenizer", {"src_lang": "fr_XX"}),
]


@pytest.fixture(scope="module")
def library():
    """A small SentencePiece model, by the library."""
    return train("unigram", {"normalization_rule_name": "nmt_nfkc"})[0]


@pytest.fixture(scope="module")
def pieces(library):
    """Its file."""
    return library.serialized_model_proto()


def made_of(name, library, **more):
    """Return the tokenizer that transformers makes of a model: it reads a file by another package."""
    scored = [(library.id_to_piece(n), library.get_score(n)) for n in range(len(library))]
    converter = getattr(sys.modules["transformers.convert_slow_tokenizer"], name.replace("Tokenizer", "Converter"))
    rules = read(library.serialized_model_proto()).charsmap
    return getattr(transformers, name)(
        **converter.convert_from_spm(vocab=scored), _spm_precompiled_charsmap=rules, **more
    )


def size(tokenizer):
    """Return the number of ids."""
    made = tokenizer.definition
    listed = made["model"]["vocab"]
    return len({*(listed if isinstance(listed, dict) else range(len(listed)))}) + sum(
        token["id"] >= len(listed) for token in made["added_tokens"]
    )


@pytest.mark.parametrize(("name", "more"), CLASSES, ids=str)
def test_a_family_numbers_pieces_in_its_own_way(tmp_path, library, pieces, name, more):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(pieces)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **more}))
    theirs = made_of(name, library, **more)
    ours = load_tokenizer(tmp_path)
    for text in TEXTS:
        # SentencePiece takes spaces at the end of a text away; the reference's class of mBART-50 makes a piece of them.
        text = text.rstrip() if name.startswith("MBart50") else text
        assert ours.frame(text).ids == theirs(text)["input_ids"], text
    assert ours.frame(*PAIR).ids == theirs(*PAIR)["input_ids"]
    assert size(ours) == len(theirs)


def test_a_language_that_a_family_has_not_is_refused(tmp_path, pieces):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(pieces)
    config = {"tokenizer_class": "MBart50Tokenizer", "src_lang": "kl_GL"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match="'kl_GL' is no language of this family"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("extra", [None, 3])
def test_byt5_is_its_bytes(tmp_path, extra):
    made = transformers.ByT5Tokenizer() if extra is None else transformers.ByT5Tokenizer(extra_ids=extra)
    made.save_pretrained(tmp_path)
    theirs = transformers.ByT5Tokenizer.from_pretrained(tmp_path)
    ours = load_tokenizer(tmp_path)
    for text in TEXTS:
        ids = ours.frame(text).ids
        assert ids == theirs(text)["input_ids"], text
        assert ours.decode(ids[:-1]) == text
    assert ours.frame(*PAIR).ids == theirs(*PAIR)["input_ids"]
    assert size(ours) == len(theirs)


def test_byt5_needs_no_more_than_its_name(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    assert load_tokenizer(tmp_path).frame("a\u00e9").ids == [100, 198, 172, 1]
    assert size(load_tokenizer(tmp_path)) == 384


@pytest.fixture(scope="module")
def of_pegasus():
    """A SentencePiece model with the first numbers of PEGASUS, by the library."""
    numbers = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    return train("unigram", {"normalization_rule_name": "nmt_nfkc", **numbers})[0]


def test_pegasus_has_the_tokens_of_its_pretraining_in_front(tmp_path, of_pegasus):
    content = of_pegasus.serialized_model_proto()
    (tmp_path / "spiece.model").write_bytes(content)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PegasusTokenizer", "offset": 103}))
    ours = load_tokenizer(tmp_path)
    front = ["<pad>", "</s>", "<mask_1>", "<mask_2>", *(f"<unk_{number}>" for number in range(2, 103))]
    scored = [(of_pegasus.id_to_piece(n), of_pegasus.get_score(n)) for n in range(2, len(of_pegasus))]
    theirs = transformers.PegasusTokenizer(
        [*((token, -100.0) for token in front), *scored], _spm_precompiled_charsmap=read(content).charsmap
    )
    for text in TEXTS:
        ids = [id + 103 for id in of_pegasus.encode(text)]
        assert ours.frame(text).ids == [*ids, 1], text
        assert ours.decode(ids) == of_pegasus.decode([id - 103 for id in ids])
        if text == text.strip():  # what transformers 5 leaves of blanks at the ends is not SentencePiece's
            assert theirs(text)["input_ids"] == [*ids, 1], text
    assert ours.frame(*PAIR).ids == theirs(*PAIR)["input_ids"]
    the, bean = ([id + 103 for id in of_pegasus.encode(word)] for word in ("the", "bean"))
    assert ours.encode("the<mask_1> bean<mask_2>", special=True) == [*the, 2, *bean, 3]
    assert [ours.id(token) for token in front] == list(range(105))
    assert ours.special("end") == 1


def test_pegasus_in_other_places_is_refused(tmp_path, of_pegasus):
    (tmp_path / "spiece.model").write_bytes(of_pegasus.serialized_model_proto())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PegasusTokenizer", "offset": 0}))
    with pytest.raises(ModelFileError, match="puts the pieces 0 places further, not 103"):
        load_tokenizer(tmp_path)
