"""Rules of families that stand in the class of a tokenizer or in its configuration, for vocabularies as published."""

import json

import pytest
import sentencepiece
import transformers
from tests.parity.test_sentencepiece_models import LINES, train
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from orrery.errors import ModelFileError
from orrery.text import load_tokenizer
from orrery.text.sentencepiece.file import read

TEXTS = [
    "", " ", "  two  spaces\n\n  and a line\t", "Hello, World! It's 12345 or 3.14",
    "na\u00efve cafe\u0301 \u00c5ngstr\u00f6m \u0130", "\u4f60\u597d\uff0c\u4e16\u754c \ud55c\uad6d\uc5b4 \u65e5\u672c",
    "def f(x):\n    return x ** 2\n", "\U0001f600 \u200b\x00\x7f a\u2028b", "THE END'S 'll",
]  # fmt: skip
PAIR = ("Hello 12", "world caf\u00e9")
CONTROL = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "<mask>",
    "<|startoftext|>",
    "<|endoftext|>",
    "[CLS]",
    "[SEP]",
    "[PAD]",
    "[UNK]",
    "[MASK]",
]


def merges(folder, ending=None):
    """Write vocab.json and merges.txt into a folder."""
    more = {"end_of_word_suffix": ending} if ending else {}
    engine = Tokenizer(models.BPE(**more))
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=CONTROL, initial_alphabet=alphabet, show_progress=False, **more
    )
    engine.train_from_iterator([" ".join(TEXTS)] * 3 + ["a e i n s t ant eel"] * 9, trainer)
    engine.model.save(str(folder))


def pieces(folder):
    """Write a vocab.txt of letters and a few words into a folder."""
    letters = sorted({letter for text in [*TEXTS, *PAIR] for letter in text.lower() + text if not letter.isspace()})
    letters += ["e", "i", "o", "a", "\u1112", "\u4f60\u597d", "\uc5b4", "\u65e5\u672c"]
    listed = [*CONTROL, *letters, *(f"##{letter}" for letter in letters), "hello", "world", "##ing"]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(listed)) + "\n", encoding="utf-8", newline="\n")


def say(folder, name="tokenizer_config.json", **config):
    """Write a configuration into a folder."""
    (folder / name).write_text(json.dumps(config))


def agree(folder, name):
    """Compare the ids of texts, of two, and the texts of ids, with those of a class of transformers."""
    theirs = getattr(transformers, name).from_pretrained(folder)
    ours = load_tokenizer(folder)
    for text in TEXTS:
        ids = theirs(text)["input_ids"]
        assert ours.frame(text).ids == ids, text
        plain = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.decode(plain) == theirs.decode(plain, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    if name != "DebertaTokenizer":  # of a pair, the class of today is not what the model was trained with
        assert ours.frame(*PAIR).ids == theirs(*PAIR)["input_ids"]


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize(
    "name",
    ["GPT2Tokenizer", "CodeGenTokenizer", "Qwen2Tokenizer", "RobertaTokenizer", "DebertaTokenizer"],
)
def test_a_class_with_merges_cuts_as_it_says(tmp_path, name, prefix):
    merges(tmp_path)
    say(tmp_path, tokenizer_class=name, add_prefix_space=prefix)
    agree(tmp_path, name)


@pytest.mark.parametrize("config", [{}, {"bos_token": "</s>"}, {"add_eos_token": True}], ids=str)
def test_gpt2_begins_a_text_with_the_token_that_is_asked_for(tmp_path, config):
    merges(tmp_path)
    say(tmp_path, tokenizer_class="GPT2Tokenizer", add_bos_token=True, **config)
    theirs = transformers.GPT2Tokenizer.from_pretrained(tmp_path)
    assert load_tokenizer(tmp_path).frame("a b").ids == theirs("a b")["input_ids"]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("config", [{}, {"strip_accents": True}, {"strip_accents": False},
                                    {"tokenize_chinese_chars": False}], ids=str)  # fmt: skip
def test_bert_treats_accents_and_chinese_as_its_configuration_says(tmp_path, config, lower):
    pieces(tmp_path)
    say(tmp_path, tokenizer_class="BertTokenizer", do_lower_case=lower, **config)
    agree(tmp_path, "BertTokenizer")


@pytest.mark.parametrize("name", ["BertTokenizer", "RobertaTokenizer"])
@pytest.mark.parametrize("file", ["tokenizer_config.json", "special_tokens_map.json"])
def test_the_control_tokens_are_those_that_the_files_name(tmp_path, name, file):
    """Some of BERT's vocabularies have RoBERTa's control tokens, and the other way round."""
    bert = name == "BertTokenizer"
    (pieces if bert else merges)(tmp_path)
    names = ("<s>", "</s>", "<unk>") if bert else ("[CLS]", "[SEP]", "[UNK]")
    tokens = dict(zip(("cls_token", "sep_token", "unk_token"), names, strict=True))
    said = {"tokenizer_class": name, "do_lower_case": True}
    say(tmp_path, **said)
    say(tmp_path, file, **said, **tokens)
    if bert:
        lines = (tmp_path / "vocab.txt").read_text(encoding="utf-8").split("\n")
        kept = [line for line in lines if line not in ("[UNK]", "[CLS]", "[SEP]")]
        (tmp_path / "vocab.txt").write_text("\n".join(kept), encoding="utf-8", newline="\n")
    agree(tmp_path, name)


def test_mpnet_has_robertas_frame_around_berts_pieces(tmp_path):
    pieces(tmp_path)
    say(tmp_path, tokenizer_class="MPNetTokenizer", do_lower_case=True)
    agree(tmp_path, "MPNetTokenizer")


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (merges, "WhisperTokenizerFast"),
        (merges, "HerbertTokenizer"),
        (pieces, "BertJapaneseTokenizer"),
        (pieces, "RoFormerTokenizer"),
    ],
)
@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
def test_a_class_whose_rules_are_not_known_is_refused_by_name(tmp_path, write, name, file):
    write(tmp_path)
    say(tmp_path, file, tokenizer_class=name)
    with pytest.raises(ModelFileError, match=name.removesuffix("Fast")) as raised:
        load_tokenizer(tmp_path)
    assert f"take tokenizer_class out of {file}" in str(raised.value.hint)
    say(tmp_path, file)
    assert load_tokenizer(tmp_path).encode("hello")


@pytest.mark.parametrize(
    ("write", "family"),
    [(merges, "luke"), (merges, "layoutlmv3"), (pieces, "roformer"), (pieces, "tapas"), (pieces, "esm")],
)
def test_a_family_whose_rules_are_not_known_is_refused_by_its_type(tmp_path, write, family):
    write(tmp_path)
    say(tmp_path, "config.json", model_type=family)
    with pytest.raises(ModelFileError, match=f"(?i)a vocabulary of {family}Tokenizer"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("config", [{}, {"tokenizer_class": "GPT2Tokenizer"}], ids=str)
def test_merges_with_marked_ends_of_words_are_refused(tmp_path, config):
    merges(tmp_path, "</w>")
    say(tmp_path, **config)
    with pytest.raises(ModelFileError, match="marks the ends of words with </w>"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("config", [{"tokenizer_class": "CLIPTokenizer"}, {"model_type": "clip"}], ids=str)
@pytest.mark.parametrize("published", [False, True])
def test_clip_cuts_words_and_makes_blanks_of_their_ends(tmp_path, config, published):
    merges(tmp_path, "</w>")
    say(tmp_path, "config.json" if "model_type" in config else "tokenizer_config.json", **config)
    if published:  # its tokenizer.json does not say that the ends are blanks
        transformers.CLIPTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path)
    agree(tmp_path, "CLIPTokenizer")


@pytest.mark.parametrize("config", [{"tokenizer_class": "OpenAIGPTTokenizer"}, {"model_type": "openai-gpt"}], ids=str)
def test_the_first_gpt_cuts_as_bert_does(tmp_path, config):
    engine = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    engine.normalizer, engine.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    more = {"special_tokens": ["<unk>"], "end_of_word_suffix": "</w>", "show_progress": False}
    engine.train_from_iterator([*TEXTS, "a e i n s t ant eel"] * 3, trainers.BpeTrainer(vocab_size=300, **more))
    engine.model.save(str(tmp_path))
    say(tmp_path, "config.json" if "model_type" in config else "tokenizer_config.json", **config)
    agree(tmp_path, "OpenAIGPTTokenizer")


@pytest.mark.parametrize("family", ["qwen2_moe", "qwen3", "qwen3_moe", "qwen2_5_vl", "qwen3_next"])
def test_the_families_of_qwen_cut_alike_where_no_class_is_named(tmp_path, family):
    merges(tmp_path)
    say(tmp_path, "config.json", model_type=family)
    agree(tmp_path, "Qwen2Tokenizer")


def test_qwen_3_5_keeps_marks_with_letters(tmp_path):
    merges(tmp_path)
    say(tmp_path, tokenizer_class="Qwen3_5Tokenizer")
    lines = (tmp_path / "merges.txt").read_text(encoding="utf-8").splitlines()
    listed = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    # The reference's class takes a vocabulary, and leaves the files of a folder unread.
    theirs = transformers.Qwen3_5Tokenizer(vocab=listed, merges=[tuple(line.split()) for line in lines[1:]])
    for text in [*TEXTS, "\u0939\u093f\u0928\u094d\u0926\u0940 a\u0335b 12"]:
        assert load_tokenizer(tmp_path).encode(text) == theirs(text)["input_ids"], text


@pytest.fixture(scope="module")
def model():
    """A SentencePiece model."""
    return train("unigram", {"normalization_rule_name": "nmt_nfkc"})[0].serialized_model_proto()


@pytest.mark.parametrize(("family", "name"), [("xlm-roberta", "XLMRobertaTokenizer"), ("mt5", "T5Tokenizer"),
                                             ("mbart", "MBartTokenizer")])  # fmt: skip
def test_a_folder_that_names_no_class_has_that_of_its_model(tmp_path, model, family, name):
    (tmp_path / "spiece.model").write_bytes(model)
    say(tmp_path, "config.json", model_type=family)
    named = load_tokenizer(tmp_path).frame("the bean").ids
    say(tmp_path, tokenizer_class=name)
    assert named == load_tokenizer(tmp_path).frame("the bean").ids
    say(tmp_path, "config.json", model_type="other")
    say(tmp_path)
    assert named != load_tokenizer(tmp_path).frame("the bean").ids


@pytest.mark.parametrize("family", ["xlnet", "rembert"])
def test_a_model_whose_tokenizer_is_not_known_is_refused(tmp_path, model, family):
    (tmp_path / "spiece.model").write_bytes(model)
    say(tmp_path, "config.json", model_type=family)
    with pytest.raises(ModelFileError, match="whose rules for cutting texts stand in no file"):
        load_tokenizer(tmp_path)


def test_a_class_of_the_tokenizer_counts_for_more_than_the_model(tmp_path, model):
    (tmp_path / "spiece.model").write_bytes(model)
    say(tmp_path, "config.json", model_type="xlnet")
    say(tmp_path, tokenizer_class="T5Tokenizer")
    assert load_tokenizer(tmp_path).frame("the bean").ids[-1] == 2


@pytest.mark.parametrize("starts", [True, False])
def test_a_class_of_a_folders_own_code_says_what_stands_before_a_text(tmp_path, model, starts):
    (tmp_path / "tokenizer.model").write_bytes(model)
    own = {"AutoTokenizer": ["tokenization_internlm3.InternLM3Tokenizer", None]}
    said = {"tokenizer_class": "InternLM3Tokenizer", "bos_token": "<s>", "add_eos_token": False}
    say(tmp_path, **said, auto_map=own, add_bos_token=starts)
    library = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "tokenizer.model"))
    ours = load_tokenizer(tmp_path)
    for text in TEXTS:
        assert ours.frame(text).ids == [1] * starts + library.encode(text)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("special", [True, False])
def test_an_added_token_stands_for_the_piece_whose_place_it_has(tmp_path, kind, special):
    reserved = [f"[UNUSED_TOKEN_{number}]" for number in (146, 145)]
    library = train(kind, {"user_defined_symbols": ",".join(reserved), "byte_fallback": True})[0]
    (tmp_path / "tokenizer.model").write_bytes(library.serialized_model_proto())
    start, end = map(library.piece_to_id, reserved)
    marks = {start: "<|im_start|>", end: "<|im_end|>"}
    added = {str(id): {"content": content, "special": special} for id, content in marks.items()}
    say(tmp_path, tokenizer_class="LlamaTokenizer", add_bos_token=True, bos_token="<s>", added_tokens_decoder=added)
    ours = load_tokenizer(tmp_path)
    assert ours.size == library.vocab_size()
    user, plain = library.encode("user\n"), library.encode("the bean")
    assert ours.encode("<|im_start|>user\n<|im_end|>", special=True) == [start, *user, end]
    assert ours.decode([start, *plain, end], special=True).replace(" ", "") == "<|im_start|>thebean<|im_end|>"
    assert ours.frame("the bean").ids == [1, *plain]
    for text in TEXTS:
        assert ours.encode(text) == library.encode(text)


@pytest.mark.parametrize("said", [
    {"auto_map": {"AutoTokenizer": ["own.Tokenizer", None]}}, {"add_bos_token": True},
    {"auto_map": {"AutoTokenizer": ["own.Tokenizer", None]}, "add_bos_token": None},
])  # fmt: skip
def test_one_that_does_not_say_it_is_refused(tmp_path, model, said):
    (tmp_path / "tokenizer.model").write_bytes(model)
    say(tmp_path, tokenizer_class="OwnTokenizer", **said)
    with pytest.raises(ModelFileError, match="OwnTokenizer, whose rules"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("family", ["marian", "m2m_100"])
def test_a_list_of_pieces_without_its_sentencepiece_model_is_not_asked_for_merges(tmp_path, family):
    (tmp_path / "vocab.json").write_text('{"</s>": 0, "<unk>": 1}')
    say(tmp_path, "config.json", model_type=family)
    with pytest.raises(ModelFileError, match=r"a vocabulary of (Marian|M2M100)Tokenizer") as raised:
        load_tokenizer(tmp_path)
    assert "source.spm" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pieces.vocab", b"1 '\\x00' 1\n"),
        ("bpe_simple_vocab.txt.gz", b"\x1f\x8b\x08\x00"),
        ("nfkc.bin", b"\x00\xff"),
    ],
)
def test_a_vocabulary_of_an_unknown_name_is_told_which_names_are_known(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelFileError, match="no vocabulary that is known by its name") as raised:
        load_tokenizer(tmp_path / name)
    assert "vocab.json with merges.txt" in str(raised.value.hint)
    with pytest.raises(ModelFileError, match="no such tokenizer") as raised:
        load_tokenizer(tmp_path)
    assert "vocab.json with merges.txt" in str(raised.value.hint)


@pytest.mark.parametrize(
    ("name", "said", "what"),
    [
        ("rwkv_vocab_v20230424.txt", None, "takes the longest piece"),
        ("vocab.txt", "RwkvTokenizer", "takes the longest piece"),
        ("vocab.txt", "BertJapaneseTokenizer", "lets MeCab"),
    ],
)
def test_a_vocabulary_that_no_tokenizer_json_can_hold_is_refused_by_what_its_program_does(tmp_path, name, said, what):
    (tmp_path / name).write_text("1 'a' 1\n")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "tokenizer_class": said}))
    with pytest.raises(ModelFileError, match=f"{what}.* not done here") as raised:
        load_tokenizer(tmp_path)
    assert ("20B_tokenizer" in raised.value.hint) is ("piece" in what)


@pytest.fixture(scope="module")
def t5():
    """A SentencePiece model with T5's numbers, by the library."""
    return train(
        "unigram", {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "normalization_rule_name": "nmt_nfkc"}
    )[0]


@pytest.mark.parametrize("count", [100, 3])
def test_t5_has_its_sentinels_behind_the_pieces(tmp_path, t5, count):
    (tmp_path / "spiece.model").write_bytes(t5.serialized_model_proto())
    say(tmp_path, tokenizer_class="T5Tokenizer", **({} if count == 100 else {"extra_ids": count}))
    ours = load_tokenizer(tmp_path)
    scored = [(t5.id_to_piece(id), t5.get_score(id)) for id in range(len(t5))]
    scored += [(f"<extra_id_{number}>", 0.0) for number in reversed(range(count))]
    theirs = transformers.T5Tokenizer(scored, extra_ids=count)
    assert ours.size == len(theirs) == len(t5) + count
    for text in ("the <extra_id_0> bean", "<extra_id_2>the<extra_id_1>", LINES[0]):
        assert ours.encode(text, special=True) == theirs(text, add_special_tokens=False)["input_ids"], text
    assert "<extra_id_0>" not in map(ours.token, ours.encode("<extra_id_0>"))


def test_t5_has_no_sentinels_twice(tmp_path):
    (tmp_path / "spiece.model").write_bytes(
        train("unigram", {"user_defined_symbols": ["<extra_id_0>"]})[0].serialized_model_proto()
    )
    size = load_tokenizer(tmp_path).size
    say(tmp_path, tokenizer_class="MT5Tokenizer")
    assert load_tokenizer(tmp_path).size == size


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("special", [False, True])
def test_tokens_added_beside_a_sentencepiece_model_are_known(tmp_path, kind, special):
    library = train(kind, {})[0]
    first = len(library)
    (tmp_path / "tokenizer.model").write_bytes(library.serialized_model_proto())
    say(tmp_path, "added_tokens.json", **{"<|im_start|>": first + 1, "<|im_end|>": first})
    names = {"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]} if special else {}
    say(tmp_path, tokenizer_class="LlamaTokenizer", eos_token="<|im_end|>" if special else "</s>", **names)
    ours = load_tokenizer(tmp_path)
    bean = ours.encode("the bean")
    assert bean == library.encode("the bean")
    assert ours.encode("<|im_start|>the bean<|im_end|>", special=True) == [first + 1, *bean, first]
    assert ours.size == first + 2
    if special:
        assert ours.special("end") == first
        assert first not in ours.encode("<|im_end|>")


def test_an_added_token_with_another_number_than_the_next_is_refused(tmp_path, model):
    (tmp_path / "tokenizer.model").write_bytes(model)
    say(tmp_path, "added_tokens.json", **{"<|im_end|>": 5000})
    with pytest.raises(ModelFileError, match=r"'<\|im_end\|>' has the id 5000, the next is 100"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("config", [{}, {"keep_accents": True}, {"do_lower_case": False}], ids=str)
def test_albert_takes_accents_away_before_its_pieces(tmp_path, config):
    special = {"control_symbols": ["[CLS]", "[SEP]", "[MASK]"], "user_defined_symbols": ["(", "="]}
    numbers = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    library = train("unigram", {"normalization_rule_name": "nmt_nfkc_cf", **numbers, **special})[0]
    content = library.serialized_model_proto()
    (tmp_path / "spiece.model").write_bytes(content)
    say(tmp_path, tokenizer_class="AlbertTokenizer", **config)
    scored = [(library.id_to_piece(id), library.get_score(id)) for id in range(len(library))]
    theirs = transformers.AlbertTokenizer(scored, _spm_precompiled_charsmap=read(content).charsmap, **config)
    ours = load_tokenizer(tmp_path)
    for text in [*TEXTS, "``the'' b\u00e9an", *LINES[:6]]:
        assert ours.frame(text).ids == theirs(text)["input_ids"], text
    assert library.piece_to_id("[MASK]") in ours.encode("the [MASK]", special=True)
