"""Floors: naive Bayes equals scikit-learn's, tags and similar texts equal a count by hand."""

import math
import operator
import random

import pytest

from orrery.tasks.finetuning._counting import (
    MostFrequentTag,
    MostSimilar,
    NaiveBayes,
    features,
    most_frequent,
    words,
)


def test_the_most_frequent_value_is_found():
    assert most_frequent(["b", "a", "b"]) == "b"
    assert most_frequent(["b", "a"]) == "a"


def test_naive_bayes_is_that_of_scikit_learn():
    feature_extraction = pytest.importorskip("sklearn.feature_extraction.text")
    naive_bayes = pytest.importorskip("sklearn.naive_bayes")
    rng = random.Random(1)
    draw = lambda: " ".join(rng.choices("good bad film plot , ! great dull".split(), k=rng.randint(2, 9)))  # noqa: E731, SIM905
    texts, others = [draw() for _ in range(60)], [draw() + " unseen" for _ in range(60)]
    labels = [rng.choice(["x", "y", "z"]) for _ in texts]
    counts = feature_extraction.CountVectorizer(analyzer=lambda text: sorted(features(text)), binary=True)
    theirs = naive_bayes.MultinomialNB(alpha=1.0).fit(counts.fit_transform(texts), labels)
    ours = NaiveBayes(texts, labels)
    assert [ours.predict(text) for text in others] == list(theirs.predict(counts.transform(others)))


def test_words_are_counted_in_small_letters_with_their_neighbours():
    assert features("Good film, good!") == {"good", "film", ",", "!", "good film", "film ,", ", good", "good !"}


def test_a_word_has_its_most_frequent_tag_and_an_unseen_one_that_of_rare_words():
    counting = MostFrequentTag([(["a", "b", "a"], ["X", "Y", "X"]), (["a", "c"], ["Z", "Y"])])
    assert counting.predict(["a", "b", "new"]) == ["X", "Y", "Y"]


def test_the_most_similar_text_is_that_with_the_highest_cosine():
    rng = random.Random(2)
    draw = lambda: " ".join(rng.choices("return the name of a file or open path to list".split(), k=rng.randint(3, 9)))  # noqa: E731, SIM905
    texts = list(dict.fromkeys(draw() for _ in range(40)))
    bags = [words(text) for text in texts]
    vocabulary = sorted(set().union(*bags))
    weights = {word: math.log(len(texts) / sum(word in each for each in bags)) for word in vocabulary}
    vectors = [[weights[word] * (word in each) for word in vocabulary] for each in bags]
    similar = MostSimilar(texts)
    for text in [draw() for _ in range(40)]:
        asked = [weights[word] * (word in words(text)) for word in vocabulary]
        cosines = [sum(map(operator.mul, asked, one)) / (math.hypot(*one) or 1) for one in vectors]
        assert cosines[similar.find(text)] == pytest.approx(max(cosines))


def test_a_text_is_most_similar_to_itself_and_one_that_shares_nothing_to_the_first():
    texts = ["open a file", "close a file", "close the path"]
    similar = MostSimilar(texts)
    assert [similar.find(text) for text in (*texts, "zebra")] == [0, 1, 2, 0]
