"""The slides on tokenizers, string by string (read in place; the decks' numbers D1-D6, G11, G18)."""

import json

import pytest
import torch
from tokenizers import Tokenizer as Engine
from tokenizers import models, normalizers, pre_tokenizers

from orrery.data.batches.padding import PAD, pad, truncate, word_vocabulary
from orrery.nn.embeddings import TokenEmbedding
from orrery.text.algorithms import bigrams
from orrery.text.algorithms.characters import train as train_characters
from orrery.text.algorithms.merges import merge_steps
from orrery.text.algorithms.words import of_words
from orrery.text.tokenizer import Tokenizer
from orrery_course.tables.dictionary import align, hide, restore


@pytest.fixture(scope="module")
def slides(data_set):
    return json.loads(data_set("course-slides/slides.json").read_text(encoding="utf-8"))


def tokens(engine, text):
    tokenizer = Tokenizer(engine.to_str())
    return [tokenizer.token(id) for id in tokenizer.encode(text)]


def lower(engine):
    engine.normalizer = normalizers.Lowercase()
    return engine


def test_d1_words_and_oov(slides):
    known, misspelt = slides["D_tokenizers"]["word"], slides["D_tokenizers"]["word_oov"]
    tokenizer = lower(of_words(["<OOV>", *known["out"]]))
    assert tokens(tokenizer, known["in"]) == known["out"]
    assert tokens(tokenizer, misspelt["in"]) == misspelt["out"]


def test_d2_characters(slides):
    slide = slides["D_tokenizers"]["character"]
    engine = lower(train_characters(iter([slide["in"].lower()]), None, "<|endoftext|>"))
    shown = [token for token in tokens(engine, slide["in"]) if not token.isspace()]
    assert len(slide["first"]) >= 12
    assert shown[: len(slide["first"])] == slide["first"]
    logographic = Tokenizer(train_characters(iter(["変換器は文を読む"]), None, "<|endoftext|>").to_str())
    assert [logographic.token(id) for id in logographic.encode("文を読む")] == list("文を読む")
    assert logographic.decode(logographic.encode("変換器は文を読む")) == "変換器は文を読む"


def test_d3_subwords_without_oov(slides):
    slide = slides["D_tokenizers"]["subword"]
    letters = sorted({character for character in slide["in"].lower() if character.isalpha()})
    # The slide's own pieces, what must not win over them, and every letter, so that nothing is unknown.
    pieces = ["[UNK]", *slide["out"], "give", "##ing", "lecture", "transforms", *letters, *(f"##{c}" for c in letters)]
    engine = Engine(models.WordPiece({piece: id for id, piece in enumerate(dict.fromkeys(pieces))}, unk_token="[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    lower(engine)
    assert tokens(engine, slide["in"]) == slide["out"]
    assert "[UNK]" not in tokens(engine, "".join(letters))


def bpe(*cuts):
    """Write by hand the merges that build each piece of ``cuts``, left to right, on top of those before it."""
    merges = []
    for piece in dict.fromkeys(" ".join(cuts).split()):
        built, *rest = merge_steps({"model": {"type": "BPE", "merges": merges}}, piece)[-1]
        for part in rest:
            merges.append((built, part))
            built += part
    symbols = sorted({character for cut in cuts for character in cut} - {" "})
    vocabulary = dict.fromkeys([*symbols, *("".join(pair) for pair in merges)])
    engine = Engine(models.BPE({piece: id for id, piece in enumerate(vocabulary)}, merges))
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return engine


def rows(slides, name):
    """Return the slide's cells of one line, source before the arrow and target after it."""
    cells = [cell for label, cell in slides["S1_bpe_table"] if label.lower().startswith(name.lower())]
    assert len(cells) == 2
    return cells[0], *cells[1].split(" -> ")


def test_d5_bpe_separate_one_table_a_language(slides):
    institutes, source, target = rows(slides, "BPE-60k")
    assert cut_again(bpe(source), source) == source
    german = bpe(institutes, target)
    assert cut_again(german, institutes) == institutes
    assert cut_again(german, target) == target


def test_d5_bpe_joint_one_table_for_both(slides):
    cuts = rows(slides, "BPE-J90k")
    joint = bpe(*cuts)
    assert [cut_again(joint, cut) for cut in cuts] == list(cuts)


def cut_again(engine, cut):
    """Put the pieces of the slide together to words, and cut these."""
    words = cut.replace(" ", "").replace("situation", " situation").replace("-Situation", "- Situation")
    return " ".join(tokens(engine, words))


def test_d5_character_bigrams(slides):
    institutes, source, target = rows(slides, "C2-50k")
    engine = bigrams.of_words(
        [" situation"],
        {pair for cut in (institutes, source, target) for pair in (cut.split()[0], *cut.split())},
        "<|endoftext|>",
    )
    for cut, written in (
        (institutes, institutes.replace(" ", "")),
        (source, "asinine situation"),
        (target, target.replace(" ", "")),
    ):
        assert " ".join(token.strip() for token in tokens(engine, written)) == cut


def test_d5_dictionary_back_off(slides):
    restored = rows(slides, "WDict")
    assert restored == ("Forschungsinstitute", "asinine situation", "UNK", "asinine")
    sources, references = rows(slides, "source"), rows(slides, "reference")
    # A word it can translate, where the target's vocabulary lacks the word.
    source, output = sources[0].split(), hide([references[0]], {"Situation"})
    assert output == ["UNK"]
    table = {("research", references[0]): 0.9}
    places = align(source, [references[0]], table)
    assert source[places[0]] == "research"
    assert restore(output, source, places, {"research": restored[0]}) == [restored[0]]
    # A word that it has never seen is copied.
    source, target = sources[1].split(), references[1].split()
    output = hide(target, {"Situation"})
    assert output == ["UNK", "Situation"]
    places = align(source, target, {("situation", "Situation"): 1.0})
    assert restore(output, source, places, {"situation": "Situation"}) == [restored[3], "Situation"]


def test_d6_g11_truncate_number_pad_embed(slides):
    slide = slides["G11_padding"]
    cut = truncate(slide["sentences"], slide["block"])
    vocabulary = word_vocabulary(cut)
    ids = torch.tensor(pad(cut, vocabulary, slide["block"]))
    assert ids.tolist() == slide["ids"]
    # The same ids from the engine: word tokenizer first, padding last.
    words = Tokenizer(of_words([*vocabulary, "<OOV>"]).to_str())
    encoded = [words.encode(" ".join(row)) for row in cut]
    assert [row + [vocabulary[PAD]] * (slide["block"] - len(row)) for row in encoded] == slide["ids"]
    embedding = TokenEmbedding.Spec(vocabulary=len(vocabulary)).build(16)
    vectors = embedding(ids)
    assert vectors.shape == (8, slide["block"], 16)
    assert torch.equal(vectors, torch.nn.functional.one_hot(ids, len(vocabulary)).float() @ embedding.token.weight)
    assert torch.equal(vectors[3, 6:], embedding.token.weight[0].expand(4, 16))


def test_g18_ids_select_rows_of_the_table(slides):
    slide = slides["G18_bpe_rows"]
    pieces = bpe("Thanks for all the").get_vocab()
    size = 1 + max(slide["ids"])
    # A fixture vocabulary: the slide's four words at the slide's ids, their letters and merges wherever there is room.
    placed = dict(zip(slide["text"].split(), slide["ids"], strict=True))
    free = (id for id in range(size) if id not in slide["ids"])
    vocabulary = placed | {piece: next(free) for piece in sorted(pieces) if piece not in placed}
    vocabulary |= {f"<unused{id}>": id for id in free}
    definition = json.loads(bpe("Thanks for all the").to_str())
    definition["model"]["vocab"] = vocabulary
    tokenizer = Tokenizer(json.dumps(definition))
    ids = tokenizer.encode(slide["text"])
    assert ids == slide["ids"] == [5, 4000, 10532, 2224]
    embedding = TokenEmbedding.Spec(vocabulary=tokenizer.size).build(8)
    table = embedding.token.weight
    assert torch.equal(
        embedding(torch.tensor([ids]))[0], torch.stack([table[5], table[4000], table[10532], table[2224]])
    )
