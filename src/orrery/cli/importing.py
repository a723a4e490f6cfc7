"""``orrery import``: a folder with weights of another format in, safetensors out."""

import sys
from pathlib import Path


def import_(model: str, out: Path, /, *, allow_pickle: bool = False) -> None:
    """Write a model anew as safetensors, read it back, and compare every tensor.

    A pickle can run any code. It is opened only with --allow-pickle, by another process without network and with
    little memory, which accepts nothing but tensors.

    Args:
        model: A Hugging Face folder, the file of weights in one, or hf:org/name@revision.
        out: The new folder.
        allow_pickle: Convert .bin and .pt files.
    """
    from orrery.loading import hub
    from orrery.loading.importing import import_model

    def say(line: str) -> None:
        print(line, file=sys.stderr)

    source = hub.fetch(model, say) if model.startswith(hub.PREFIX) else Path(model)
    import_model(source, out, allow_pickle=allow_pickle, say=say)
    print(out)
