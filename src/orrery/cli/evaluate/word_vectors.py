"""The task ``word-vectors`` of ``orrery evaluate``: Google's analogies and WordSim-353.

Google's analogies by section, and the rank correlation with WordSim-353.
"""

import sys
from typing import Annotated

from orrery.cli.places import MODEL


def word_vectors(model: Annotated[str, MODEL], /) -> None:
    """Print right answers of Google's analogies by section, and the rank correlation with WordSim-353.

    Args:
        model: A word2vec file, a run of word vectors, or a model, whose table of tokens is measured.
    """
    from orrery.cli.neighbours import print_measures
    from orrery.exchange.reading.word_vectors import read_word_vectors

    print_measures(read_word_vectors(model, lambda line: print(line, file=sys.stderr)))
