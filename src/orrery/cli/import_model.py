"""``orrery import``: a folder with weights of another format in, safetensors out."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orrery.cli.places import MODEL


def import_model(
    model: Annotated[str, MODEL],
    out: Path,
    /,
    *,
    allow_pickle: bool = False,
    ignore_keys: Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())] = None,
    overwrite: bool = False,
) -> None:
    """Write a model as safetensors, read it back, and compare every tensor.

    A pickle can run any code. It is opened only with --allow-pickle, by another process without network and with
    little memory, which accepts nothing but tensors.

    Args:
        model: A Hugging Face folder, the file of weights in one, a folder of Meta's or Mistral's own layout, a
            checkpoint of nanoGPT, a GGUF file, hf:org/name@revision, or a word2vec file.
        out: The new folder.
        allow_pickle: Convert .bin and .pt files.
        ignore_keys: Keys of config.json to leave out, where you know that no number depends on them.
        overwrite: Replace an import that is in the folder, which holds nothing else.
    """
    from orrery.checkpoints.outputs import OutputFolder
    from orrery.exchange.exporting.word2vec import import_word2vec
    from orrery.exchange.reading import hub
    from orrery.exchange.saving.import_model import IMPORTED, import_model
    from orrery.models.word2vec.files import VECTORS, is_vectors

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    OutputFolder(out, (*IMPORTED, VECTORS), inputs=[model], overwrite=overwrite)  # refused before anything is fetched
    source = hub.fetch(model, say) if model.startswith(hub.PREFIX) else Path(model)
    if is_vectors(source):
        words, width = import_word2vec(source, out, overwrite=overwrite).matrix.shape
        say(f"{out}: {words:,} words of width {width:,}, read back equal bit for bit")
        print(out)
        return
    import_model(source, out, allow_pickle=allow_pickle, overwrite=overwrite, ignore_keys=ignore_keys or (), say=say)
    print(out)
