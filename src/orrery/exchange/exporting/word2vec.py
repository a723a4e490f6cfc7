"""Word vectors in the formats of the C program: written and read back, and a file of them as a folder of ours."""

from pathlib import Path

from orrery.checkpoints.outputs import OutputFile, OutputFolder
from orrery.exchange.exporting.export import Exported, differs
from orrery.models.word2vec.files import VECTORS, read_binary, read_text, read_vectors, write_binary, write_text
from orrery.models.word2vec.vectors import Vectors


def export_word2vec(vectors: Vectors, path: str | Path, *, binary: bool = False, overwrite: bool = False) -> Exported:
    """Write word vectors as the C program does, and compare what is read back: words and numbers, bit for bit.

    Raises:
        UsageError: the rule of `outputs` refuses the path.
        ModelFileError: a word holds white space, which the format cannot say.
        MachineError: the disk refuses.
        RunError: what was read back differs.
    """
    path = Path(path)
    write, read_back, form = (write_binary, read_binary, "binary") if binary else (write_text, read_text, "text")
    with OutputFile(path, overwrite=overwrite).aside(4 * vectors.matrix.size) as fresh:
        write(vectors, fresh)
        read_again = read_back(fresh)
        if read_again.words != vectors.words or read_again.matrix.tobytes() != vectors.matrix.tobytes():
            raise differs("a word or its vector", "")
    words, width = vectors.matrix.shape
    form = f"word2vec {form}, {words:,} words of width {width:,}"
    return Exported(path, form, vectors.matrix.size, path.stat().st_size, 0.0)


def import_word2vec(source: Path, out: Path, *, overwrite: bool = False) -> Vectors:
    """Write a word2vec file, of either form, as the binary one of a new folder, and compare what is read back.

    Raises:
        UsageError: the rule of `outputs` refuses the folder.
        ModelFileError: the file is damaged.
        MachineError: the disk refuses.
        RunError: what was read back differs.
    """
    target = OutputFolder(out, (VECTORS,), inputs=[source], overwrite=overwrite)
    vectors = read_vectors(source)
    with target.aside() as fresh:
        export_word2vec(vectors, fresh / VECTORS, binary=True)
    return vectors
