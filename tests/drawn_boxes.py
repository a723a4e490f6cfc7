"""Boxes drawn at random, right ones and guesses: what average precision is compared with pycocotools on."""

import numpy as np

from orrery.scores.detection import Found, Right

LABELS = 3


def drawn_case(seed):
    """Return the right boxes and the guesses of some pictures; scores have ties, some boxes are crowds."""
    rng = np.random.default_rng(seed)
    levels, most = [(1000, 5), (4, 5), (1000, 130), (50, 2)][seed % 4]

    def anywhere():
        return tuple(float(number) for number in (*rng.uniform(0, 50, 2), *rng.uniform(5, 40, 2)))

    right, said = [], []
    for _ in range(3 + seed):
        things = [
            Right(str(rng.integers(LABELS)), anywhere(), bool(rng.random() < 0.15)) for _ in range(rng.integers(0, 6))
        ]
        guesses = []
        for thing in things:
            for _ in range(rng.integers(0, 3)):
                near = np.array(thing.box) + rng.normal(0, 3, 4)
                box = (*near[:2].tolist(), *(1 + np.abs(near[2:])).tolist())
                label = thing.label if rng.random() < 0.8 else str(rng.integers(LABELS))
                guesses.append(Found(label, box, float(rng.integers(1, levels) / levels)))
        guesses += [
            Found(str(rng.integers(LABELS)), anywhere(), float(rng.random())) for _ in range(rng.integers(most))
        ]
        right.append(things)
        said.append(guesses)
    return right, said
