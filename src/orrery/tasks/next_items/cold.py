"""Items that nobody has taken yet: vectors of their texts, projected to where the model keeps its items."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.errors import UsageError
from orrery.tasks.finetuning._counting import features

Floats = NDArray[np.float64]
Vectors = Callable[[Sequence[str]], Floats]
"""Makes a vector of each text, [texts, numbers]."""
LEAST = 2
"""Items with a text that are needed to find the projection."""
PENALTY = 0.1
"""Of the projection, in units of the mean square of the vectors."""


class WordVectors:
    """``tf-idf`` of the words and pairs of words that more than one text has, of length one: where no encoder is named.

    A word of a text counts once and weighs ``log(N / n)``, as in `orrery.tasks.finetuning._counting.MostSimilar`.
    """

    def __init__(self, texts: Sequence[str], most: int = 4096) -> None:
        counts = Counter(feature for text in texts for feature in features(text))
        kept = sorted((-count, feature) for feature, count in counts.items() if count > 1)[:most]
        self.places = {feature: place for place, (_, feature) in enumerate(kept)}
        self.weights = np.log(len(texts) / np.array([float(-count) for count, _ in kept] or [1.0])) + 1e-3

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return the vectors."""
        found = np.zeros((len(texts), len(self.weights)))
        for number, text in enumerate(texts):
            here = [self.places[feature] for feature in features(text) if feature in self.places]
            found[number, here] = self.weights[here]
        return found / np.maximum(1e-12, np.linalg.norm(found, axis=1, keepdims=True))


def encoder_vectors(lm: Any, batch: int = 64) -> Vectors:
    """Return what makes vectors of length one with a model that embeds texts."""

    def vectors(texts: Sequence[str]) -> Floats:
        found = lm.embed(list(texts), normalise=True, truncation=True, batch_size=batch, done=lambda done, of: None)
        numbers: Floats = found.cpu().double().numpy()
        return numbers

    return vectors


class Projection:
    r"""``e(text) = mean(E) + (v(text) - mean(v)) W``, W the ridge regression of item vectors E on text vectors v.

    :math:`W = V^T (V V^T + \lambda I)^{-1} (E - \bar e)`, with the penalty in units of the mean square of v. A linear
    map from attributes to factors, as that of Gantner et al. 2010; here fitted after training on the rows of the head's
    own table, so that a new item is scored as all others are: by the product with the final stream.
    """

    def __init__(self, vectors: Vectors, texts: Sequence[str], rows: Floats) -> None:
        if len(texts) < LEAST:
            raise UsageError(
                f"{len(texts)} items that the model knows have a text: there is nothing to project by",
                "give the texts of the items that it was trained on too, by the same names",
            )
        found = vectors(texts)
        self.vectors, self.middle, self.centre = vectors, found.mean(0), rows.mean(0)
        x = found - self.middle
        penalty = PENALTY * max(1e-12, float((x**2).sum(1).mean()))
        if len(x) <= x.shape[1]:
            self.map = x.T @ np.linalg.solve(x @ x.T + penalty * np.eye(len(x)), rows - self.centre)
        else:
            self.map = np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ (rows - self.centre))

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return the row of each text, [texts, D]."""
        found: Floats = self.centre + (self.vectors(texts) - self.middle) @ self.map
        return found


def split_known(texts: Mapping[str, str], known: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Return the items with a text that a model has learned, and the others, each in the order of ``texts``."""
    return [item for item in texts if item in known], [item for item in texts if item not in known]
