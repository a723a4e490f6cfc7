"""Vectors and their files: the slide's numbers, neighbours by brute force, gensim reads ours and we read its."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import DataError, ModelFileError
from orrery.models.word2vec.files import VECTORS, read_binary, read_text, read_vectors, write_binary, write_text
from orrery.models.word2vec.vectors import Vectors

BANKING = [0.286, 0.792, -0.177, -0.107, 0.109, -0.542, 0.349, 0.271]
SECOND = [0.413, 0.582, -0.007, 0.247, 0.216, -0.718, 0.147, 0.051]
FORMS = {"text": (write_text, read_text), "binary": (write_binary, read_binary)}


def some(count=30, width=5, seed=0):
    matrix = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    return Vectors([f"w{number}é" for number in range(count)], matrix)


def test_the_slide_s_dense_vectors():
    """G14: the dot product and the cosine of the two printed vectors; one-hot vectors have neither."""
    vectors = Vectors(["banking", "second"], np.array([BANKING, SECOND], np.float32))
    assert float(vectors["banking"] @ vectors["second"]) == pytest.approx(1.031696, abs=1e-6)
    assert vectors.similarity("banking", "second") == pytest.approx(0.857049, abs=1e-6)
    one_hot = Vectors(["motel", "hotel"], np.eye(2, dtype=np.float32))
    assert one_hot.similarity("motel", "hotel") == 0
    assert np.linalg.norm(one_hot["motel"] - one_hot["hotel"]) == pytest.approx(np.sqrt(2))


def test_neighbours_and_analogies_by_brute_force():
    vectors = some()
    cosine = {word: vectors.similarity("w3é", word) for word in vectors.words if word != "w3é"}
    best = sorted(cosine, key=lambda word: -cosine[word])[:4]
    nearest = vectors.neighbours("w3é", 4)
    assert [word for word, _ in nearest] == best
    assert [value for _, value in nearest] == pytest.approx([cosine[word] for word in best], abs=1e-6)
    a, b, c = (vectors[word] / np.linalg.norm(vectors[word]) for word in ("w1é", "w2é", "w4é"))
    scores = vectors.unit @ (b - a + c)
    rest = [k for k in range(30) if k not in (1, 2, 4)]
    assert vectors.analogy("w1é", "w2é", "w4é")[0][0] == vectors.words[max(rest, key=lambda k: scores[k])]


def test_an_analogy_that_holds():
    rows = {"man": [1, 0, 0], "woman": [1, 1, 0], "king": [1, 0, 1], "queen": [1, 1, 1], "tree": [-1, 0, 0.1]}
    vectors = Vectors(list(rows), np.array(list(rows.values()), np.float32))
    assert vectors.analogy("man", "woman", "king")[0][0] == "queen"


def test_a_word_without_vector_and_a_vector_of_zeros():
    vectors = Vectors(["a", "b"], np.array([[0, 0], [1, 0]], np.float32))
    assert vectors.similarity("a", "b") == 0
    assert "a" in vectors
    assert "c" not in vectors
    with pytest.raises(DataError, match="'c' has no vector"):
        vectors.similarity("a", "c")
    with pytest.raises(DataError, match="one row for each word"):
        Vectors(["a"], np.zeros((2, 3), np.float32))


def test_the_map_keeps_distances_of_a_plane_and_its_signs():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(12, 2)) * [3, 1]
    turned = flat @ np.linalg.qr(rng.normal(size=(7, 2)))[0].T + rng.normal(size=7)
    vectors = Vectors([str(k) for k in range(12)], turned.astype(np.float32))
    points = vectors.map2d(vectors.words)
    between = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.testing.assert_allclose(between, np.linalg.norm(flat[:, None] - flat[None], axis=2), atol=1e-5)
    assert points[:, 0].var() > points[:, 1].var()
    assert np.all(points[np.abs(points).argmax(0), [0, 1]] > 0)
    with pytest.raises(DataError, match="at least two"):
        vectors.map2d(["1"])


def test_the_vectors_initialise_an_embedding():
    vectors, table = some(3, 4), np.zeros((4, 4), np.float32)
    assert vectors.initialise(table, ["w2é", "new", "w0é", "other"]) == 2
    assert table[0].tobytes() == vectors["w2é"].tobytes()
    assert table[2].tobytes() == vectors["w0é"].tobytes()
    assert not table[[1, 3]].any()
    with pytest.raises(DataError, match="width"):
        vectors.initialise(np.zeros((4, 5), np.float32), ["a", "b", "c", "d"])


WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \t\r\n"), min_size=1, max_size=8)


@pytest.mark.parametrize("form", FORMS)
@given(words=st.lists(WORD, min_size=1, max_size=6, unique=True), seed=st.integers(0, 9))
def test_files_give_every_bit_back(tmp_path_factory, form, words, seed):
    write, read = FORMS[form]
    path = tmp_path_factory.mktemp("vectors") / "v"
    scale = np.float32(10.0) ** np.random.default_rng(seed).integers(-30, 30, (len(words), 3))
    matrix = some(len(words), 3, seed).matrix * scale.astype(np.float32)
    write(Vectors(words, matrix), path)
    back = read(path)
    assert back.words == tuple(words)
    assert back.matrix.tobytes() == matrix.tobytes()
    assert [file.name for file in path.parent.iterdir()] == ["v"]


def test_the_c_program_s_binary_without_line_ends_is_read(tmp_path):
    vectors = some(3, 2)
    content = b"3 2\n" + b"".join(
        word.encode() + b" " + vectors[word].astype("<f4").tobytes() for word in vectors.words
    )
    (tmp_path / "v").write_bytes(content)
    assert read_binary(tmp_path / "v").matrix.tobytes() == vectors.matrix.tobytes()


DAMAGED_TEXT = {
    b"": "two whole numbers",
    b"words\n": "two whole numbers",
    b"-1 2\n": "two whole numbers",
    b"0 2\n": "promises 0 words",
    b"1 0\na\n": "promises",
    b"999999999999 300\na 1\n": "promises 999,999,999,999 words",
    b"2 2\na 1 2\n": "line 3 has 0 numbers",
    b"2 2\na 1 2\nb 1\n": "line 3 has 1 numbers",
    b"1 2\na 1 x\n": "no number",
    b"1 2\na 1 nan\n": "not finite",
    b"1 2\na 1 2\nb 1 2\n": "goes on",
    b"2 2\na 1 2\na 1 2\n": "was there before",
    b"1 2\n\xff 1 2\n": "not UTF-8",
    b"1 2\n 1 2\n": "a word is",
}
DAMAGED_BINARY = {
    b"": "two whole numbers",
    b"1 300000\na " + b"0" * 99: "promises",
    b"1 2\na 1234567": "ends inside word 1",
    b"2 2\na 12345678\nb 1234": "ends inside word 2",
    b"1 1\n" + b"a" * 2000 + b" 1234": "no end within",
    b"1 1\n\xff 1234\n": "not UTF-8",
    b"1 1\na 1234\nmore": "goes on",
    b"1 1\na \x00\x00\xc0\x7f\n": "not finite",
}


@pytest.mark.parametrize(("content", "says"), DAMAGED_TEXT.items())
def test_damaged_text_is_named(tmp_path, content, says):
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(ModelFileError, match=says):
        read_text(tmp_path / "v")


@pytest.mark.parametrize(("content", "says"), DAMAGED_BINARY.items())
def test_damaged_binary_is_named(tmp_path, content, says):
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(ModelFileError, match=says):
        read_binary(tmp_path / "v")


@pytest.mark.parametrize("form", FORMS)
def test_every_cut_file_is_refused(tmp_path, form):
    write, read = FORMS[form]
    write(some(4, 3), tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    for size in range(len(content) - 1):
        (tmp_path / "cut").write_bytes(content[:size])
        if form == "text" and size > len(content) - 13:
            continue  # a last number that lost digits is still a number
        with pytest.raises(ModelFileError):
            read(tmp_path / "cut")


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_file_and_a_word_that_cannot_be_written(tmp_path, form):
    write, read = FORMS[form]
    with pytest.raises(ModelFileError, match="No such file"):
        read(tmp_path / "none")
    for word in ("two words", "", "x" * 2000):
        with pytest.raises(ModelFileError, match="cannot stand"):
            write(Vectors([word], np.zeros((1, 2), np.float32)), tmp_path / "v")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore")
def test_gensim_reads_ours_and_we_read_gensim_s(tmp_path, form):
    from gensim import models

    write, read = FORMS[form]
    ours = some(40, 7)
    write(ours, tmp_path / "ours")
    theirs = models.KeyedVectors.load_word2vec_format(str(tmp_path / "ours"), binary=form == "binary")
    assert tuple(theirs.index_to_key) == ours.words
    assert theirs.vectors.tobytes() == ours.matrix.tobytes()
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=form == "binary")
    back = read(tmp_path / "theirs")
    assert back.words == ours.words
    np.testing.assert_allclose(back.matrix, ours.matrix, rtol=1e-7 if form == "text" else 0)
    a, b, c = ours.words[:3]
    assert [word for word, _ in theirs.most_similar(a)] == [word for word, _ in ours.neighbours(a)]
    assert theirs.most_similar(positive=[b, c], negative=[a], topn=1)[0][0] == ours.analogy(a, b, c)[0][0]


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_which_form_a_file_has_is_seen(tmp_path_factory, count, width, seed):
    folder = tmp_path_factory.mktemp("form")
    vectors = some(count, width, seed)
    for name, (write, _) in FORMS.items():
        write(vectors, folder / name)
        loaded = read_vectors(folder / name)
        assert loaded.words == vectors.words
        assert loaded.matrix.tobytes() == vectors.matrix.tobytes()


@pytest.mark.parametrize("place", ["final", "."])
def test_a_folder_with_vectors(tmp_path, place):
    (tmp_path / place).mkdir(exist_ok=True)
    write_binary(some(), tmp_path / place / VECTORS)
    assert read_vectors(tmp_path).words == some().words
    with pytest.raises(ModelFileError, match="give the path"):
        read_vectors(tmp_path / "nothing")
