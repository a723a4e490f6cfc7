"""Floors: naive Bayes equals scikit-learn's, tags equal a count by hand."""

import random

import pytest

from orrery.finetuning.tasks._counting import MostFrequentTag, NaiveBayes, features, most_frequent


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
