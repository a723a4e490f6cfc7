"""Tagged sentences: each word's label stands on its first token, however the tokenizer cuts."""

import json
import random

import pytest

from orrery.data.batches.token_windows import IGNORE
from orrery.data.batches.words import NONE, pieces_of, tokenise_words
from orrery.data.records import Sentence
from orrery.data.rows.tagged import read_tagged
from orrery.data.sources import BatchRequest
from orrery.data.sources.tagged import TaggedSettings, TaggedSource, rows_of
from orrery.errors import DataError
from orrery.text.kinds import TOKENIZERS
from orrery.text.special import framed_tokenizer
from orrery.text.train import train_tokenizer

TEXT = "The quick brown foxes don't jump over lazy dogs in Berlin , they said : yes !"
WORDS = TEXT.split()


def tokenizer_of(kind, **how):
    size = None if kind in ("word", "character") else 320
    return framed_tokenizer(train_tokenizer(kind, [" ".join(WORDS)] * 20, size, **how), "bert")


def file(tmp_path, text, name):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("kind", TOKENIZERS.names())
def test_the_first_token_of_each_word_is_found(kind):
    tokenizer, rng = tokenizer_of(kind), random.Random(3)
    for _ in range(20):
        words = rng.choices([*WORDS, "Unseen", "naïve", "🙂", "a b"], k=rng.randint(1, 12))
        tokenised = tokenise_words(tokenizer, words)
        assert tokenised.ids == tokenizer.encode(" ".join(words))
        ends = [end for _, _, end in tokenizer.spans(" ".join(words))]
        place = 0
        for word, first in zip(words, tokenised.firsts, strict=True):
            inside = [n for n, end in enumerate(ends) if place < end <= place + len(word)]
            assert first == (inside[0] if inside else NONE)
            place += len(word) + 1
        assert NONE not in tokenised.firsts or kind in ("wordpiece", "bigram", "word")


def test_transformers_aligns_the_same_first_tokens(tmp_path):
    transformers = pytest.importorskip("transformers")
    tokenizer = tokenizer_of("wordpiece")
    tokenizer.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)(WORDS, is_split_into_words=True)
    firsts = [theirs.word_ids().index(number) - 1 for number in range(len(WORDS))]
    assert tokenise_words(tokenizer, WORDS).firsts == firsts


def test_a_word_without_a_token_is_said_so():
    tokenizer = tokenizer_of("byte_bpe")
    assert tokenise_words(tokenizer, ["The", "quick"]).firsts == [0, 1]
    assert tokenise_words(tokenizer, []).ids == []


@pytest.mark.parametrize("room", [1, 2, 3, 5, 8, 100])
def test_pieces_hold_every_token_once_and_begin_at_words(room):
    rng = random.Random(room)
    for _ in range(50):
        sizes = [rng.randint(1, 4) for _ in range(rng.randint(1, 12))]
        firsts = [sum(sizes[:n]) for n in range(len(sizes))]
        pieces = pieces_of(firsts, sum(sizes), room)
        assert [place for _, tokens in pieces for place in tokens] == list(range(sum(sizes)))
        assert [word for words, _ in pieces for word in words] == list(range(len(sizes)))
        assert all(len(tokens) <= room for _, tokens in pieces)
        for words, tokens in pieces:
            assert all(firsts[word] in tokens for word in words)
            if max(sizes) <= room:
                assert tokens.start in firsts


def test_rows_carry_each_label_once(tmp_path):
    tokenizer = tokenizer_of("byte_bpe")
    tokenised = tokenise_words(tokenizer, WORDS)
    tags = list(range(len(WORDS)))
    whole = rows_of(tokenizer, tokenised.ids, tokenised.firsts, tags, 100)
    assert [row["ids"] for row in whole] == [tokenizer.frame(" ".join(WORDS)).ids]
    for length in (5, 8, 12):
        rows = rows_of(tokenizer, tokenised.ids, tokenised.firsts, tags, length)
        assert len(rows) > 1
        assert [tag for row in rows for tag in row["targets"] if tag != IGNORE] == tags
        assert all(len(row["ids"]) == len(row["targets"]) <= length for row in rows)
        assert all(row["ids"][0] == tokenizer.special("class") for row in rows)


CONLL = "1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize(
    ("text", "name", "layer", "tags"),
    [
        (CONLL, "x.conllu", None, ("DET", "NOUN")),
        (CONLL, "x.conllu", "xpos", ("DT", "NN")),
        (CONLL, "x.conllu", "deprels", ("det", "root")),
        ("A\tO\ncat\tB-animal\n\n", "x.conll", None, ("O", "B-animal")),
        (json.dumps({"tokens": ["A", "cat"], "ner_tags": [0, 1]}) + "\n", "x.jsonl", None, ("0", "1")),
        (json.dumps({"words": "A cat", "tags": "O B"}) + "\n", "x.jsonl", None, ("O", "B")),
    ],
)
def test_every_format_gives_words_and_labels(tmp_path, text, name, layer, tags):
    (sentence,) = read_tagged(file(tmp_path, text, name), layer)
    assert (sentence.words, sentence.tags) == (("A", "cat"), tags)


def test_a_damaged_file_of_brats_is_left_out_where_one_may_be(tmp_path):
    for name, end in (("a", "4"), ("b", "x"), ("c", "4")):
        (tmp_path / f"{name}.txt").write_text("Bern is big.")
        (tmp_path / f"{name}.ann").write_text(f"T1\tCity 0 {end}\tBern\n")
    with pytest.raises(DataError, match=r"b\.ann:1: no span of characters"):
        list(read_tagged(tmp_path))
    assert len(list(read_tagged(tmp_path, skip_bad=1))) == 2


def test_words_with_tags_in_a_text_file_are_named_and_so_is_its_suffix(tmp_path):
    with pytest.raises(DataError, match=r"train\.txt: the suffix does not say that it holds words with tags") as told:
        list(read_tagged(file(tmp_path, "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\n", "train.txt")))
    assert "FILE.conll," in told.value.hint


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"words": ["A", "cat"], "tags": ["O"]}, "2 words in 'words', 1 labels in 'tags'"),
        ({"words": [], "tags": []}, "no list of words"),
        ({"words": ["A", ""], "tags": ["O", "O"]}, "'' is no word"),
        ({"words": ["A", "b"], "tags": ["O", None]}, "None is no label"),
    ],
)
def test_a_bad_sentence_is_named_by_its_line(tmp_path, row, told):
    source = file(tmp_path, json.dumps({"words": ["x"], "tags": ["O"]}) + "\n" + json.dumps(row) + "\n", "x.jsonl")
    with pytest.raises(DataError, match=told) as error:
        list(read_tagged(source))
    assert f"{source}:2" in error.value.message


def test_a_layer_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match="have no xpos; annotated are: tags"):
        list(read_tagged(file(tmp_path, "A\tO\n\n", "x.conll"), "xpos"))
    with pytest.raises(DataError, match="no column of words"):
        list(read_tagged(file(tmp_path, '{"a": 1}\n', "x.jsonl")))
    kaggle = file(tmp_path, "Sentence #,Word,Tag\n1,Thousands,O\n,of,O\n", "x.csv")
    with pytest.raises(DataError) as error:
        list(read_tagged(kaggle))
    assert "a word and its tag a line" in error.value.hint


def test_a_label_never_seen_and_a_single_one_are_refused(tmp_path):
    train = file(tmp_path, "A\tO\ncat\tB\n\n", "train.conll")
    val = file(tmp_path, "A\tO\n\ndog\tI\n\n", "val.conll")
    with pytest.raises(DataError, match=rf"{val}:3: the label 'I' occurs in no training row"):
        TaggedSource.read(TaggedSettings(train=train, val=val))
    with pytest.raises(DataError, match="every word is labelled 'O'"):
        TaggedSource.read(TaggedSettings(train=file(tmp_path, "A\tO\n\n", "one.conll")))


def test_batches_have_targets_at_first_tokens_alone(tmp_path):
    source = TaggedSource.read(TaggedSettings(train=file(tmp_path, "The\tO\nfoxes\tB\n\ndogs\tB\n\n", "x.conll")))
    tokenizer = tokenizer_of("byte_bpe")
    examples = source.examples(BatchRequest("padded", 32, 2, 1, tokenizer, labels=("B", "O")))
    batch = examples.train.batch(0)
    assert set(batch) == {"ids", "real", "targets"}
    kept = sorted(row[row != IGNORE].tolist() for row in batch["targets"])
    assert kept in ([[0], [1, 0]], [[0], [0]], [[1, 0], [1, 0]])
    assert not (batch["targets"] != IGNORE)[~batch["real"]].any()


def test_a_sentence_begins_no_document_unless_its_file_says_so():
    assert not Sentence(1, "a", "a", ("a",)).starts_document


CONLL = {
    "comments with tabs, words with blanks": (
        "# id 5239\tdomain=en\nthe _ _ O\nRome _ _ B-LOC\n",
        [(("the", "Rome"), ("O", "B-LOC"))],
    ),
    "a hash for a word": ("#\tO\nx\tO\n\n#tag\tB-X\n", [(("#", "x"), ("O", "O")), (("#tag",), ("B-X",))]),
    "marks of OntoNotes": ("#begin document (x);\na O\nb B-X\n\n#end document\n", [(("a", "b"), ("O", "B-X"))]),
    "blanks behind a tag": ("EU  NNP B-ORG \nis VBZ O \n", [(("EU", "is"), ("B-ORG", "O"))]),
    "a document mark above a word": ("-DOCSTART- -X- O\nEU NNP B-ORG\n", [(("EU",), ("B-ORG",))]),
}


@pytest.mark.parametrize("name", CONLL)
def test_lines_that_are_no_words_are_none(name, tmp_path):
    text, meant = CONLL[name]
    assert [(one.words, one.tags) for one in read_tagged(file(tmp_path, text, "a.conll"))] == meant


def test_a_later_sentence_may_count(tmp_path):
    text = "the D O\ncat N O\nsat V O\n\n1 C O\n2 C O\n3 C O\n"
    found = read_tagged(file(tmp_path, text, "a.conll"))
    assert [one.words for one in found] == [("the", "cat", "sat"), ("1", "2", "3")]


def test_words_with_blanks_and_numbers_of_words_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.conll:1: 3 columns, and 2 at .*a\.conll:2"):
        list(read_tagged(file(tmp_path, "New York B-LOC\nis O\n", "a.conll")))
    numbered = "#\thttp://de\t[2009]\n1\tA\tB-PER\tO\n2\tb\tO\tO\n3\tc\tO\tO\n"
    with pytest.raises(DataError, match=r"b\.conll:2: the first column counts the words") as caught:
        list(read_tagged(file(tmp_path, numbered, "b.conll")))
    assert "cut -f 2-" in str(caught.value)
    named = "".join(f"bc/cctv/00/x_1 0 {n} word{n} NN -\n" for n in range(3))
    with pytest.raises(DataError, match=r"c\.conll:1: the first column names the document"):
        list(read_tagged(file(tmp_path, named, "c.conll")))


@pytest.mark.parametrize(
    ("words", "tags"),
    [
        ('["EU", "is"]', "[3, 0]"),
        ("['EU', 'is']", "['3', '0']"),
        ("['EU'\n 'is']", "[3 0]"),
        ("EU is", "3 0"),
    ],
    ids=str,
)
def test_lists_in_the_cells_of_a_table(words, tags, tmp_path):
    cells = ",".join('"' + cell.replace('"', '""') + '"' for cell in (words, tags))
    (one,) = read_tagged(file(tmp_path, f"tokens,ner_tags\n{cells}\n", "a.csv"))
    assert (one.words, one.tags) == (("EU", "is"), ("3", "0"))


@pytest.mark.parametrize("words", ["['EU' ... 'is']", "EU, is, not"])
def test_lists_that_cannot_be_read_are_refused(words, tmp_path):
    with pytest.raises(DataError, match=r"a\.csv:2: column 'tokens' looks like a list"):
        list(read_tagged(file(tmp_path, f'tokens,ner_tags\n"{words}","O O"\n', "a.csv")))


@pytest.mark.parametrize("words", ["Yes, sir", "[CLS] a [SEP]", "[UNK] [UNK]"])
def test_words_with_commas_and_brackets_of_their_own_are_words(words, tmp_path):
    tags = " ".join("O" for _ in words.split())
    (one,) = read_tagged(file(tmp_path, f'tokens,ner_tags\n"{words}",{tags}\n', "a.csv"))
    assert one.words == tuple(words.split())


def test_a_word_a_row_is_told(tmp_path):
    source = TaggedSource.read(TaggedSettings(train=file(tmp_path, "words\ttags\nEU\tB-X\nis\tO\n", "a.tsv")))
    assert any("every sentence has one word alone" in note for note in source.remarks())
