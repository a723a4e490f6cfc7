"""Word vectors from wherever they lie: a word2vec file, a run of them, or the table a model reads its tokens from."""

from collections.abc import Callable
from pathlib import Path

from orrery.checkpoints import succession
from orrery.errors import ModelFileError
from orrery.models.word2vec.files import VECTORS, find_vectors, read_vectors
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
    from orrery.loading.read import read
    from orrery.models.word_embeddings import vectors_of

    stored = read(path, say)
    if stored.tokenizer is None:
        raise ModelFileError(f"{path} has no tokenizer, so nothing names the rows", "put tokenizer.json beside it")
    return vectors_of(stored.model, stored.tokenizer)


def import_word2vec(source: Path, out: Path, *, overwrite: bool = False) -> Vectors:
    """Write a word2vec file, of either form, as the binary one of a new folder, and compare what is read back.

    Raises:
        UsageError: the rule of `outputs` refuses the folder.
        ModelFileError: the file is damaged.
        MachineError: the disk refuses.
        RunError: what was read back differs.
    """
    from orrery.checkpoints.outputs import OutputFolder
    from orrery.loading.export import export_word2vec

    target = OutputFolder(out, (VECTORS,), inputs=[source], overwrite=overwrite)
    vectors = read_vectors(source)
    with target.aside() as fresh:
        export_word2vec(vectors, fresh / VECTORS, binary=True)
    return vectors
