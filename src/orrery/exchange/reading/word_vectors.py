"""Word vectors from wherever they lie: a word2vec file, a run of them, or the table a model reads its tokens from."""

from collections.abc import Callable
from pathlib import Path

from orrery.checkpoints import succession
from orrery.errors import ModelFileError
from orrery.models.word2vec.files import find_vectors, read_vectors
from orrery.models.word2vec.vectors import Vectors


def read_word_vectors(path: str | Path, say: Callable[[str], None] = lambda line: None) -> Vectors:
    """Read word vectors, or a model's embeddings as such.

    Args:
        path: a word2vec file (text or binary), a run of word vectors, or a model: a run, a checkpoint, a Hugging Face
            folder, ``hf:org/name@revision``.
        say: told which of a run's models was taken.

    Raises:
        ModelFileError: nothing is there, it is damaged, or the model has no tokenizer.
        UsageError: the model reads no tokens.
    """
    succession.finish(Path(path))
    if find_vectors(Path(path)):
        return read_vectors(Path(path))
    # Only here: files of word vectors need no torch.
    from orrery.exchange.reading.read import read
    from orrery.models.word_embeddings import vectors_of

    stored = read(path, say)
    if stored.tokenizer is None:
        raise ModelFileError(f"{path} has no tokenizer, so nothing names the rows", "put tokenizer.json beside it")
    return vectors_of(stored.model, stored.tokenizer)
