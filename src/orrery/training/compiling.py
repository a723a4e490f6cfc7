"""Whether the blocks of a run's model are compiled."""

from torch import nn


def compiled(model: nn.Module, wanted: bool, device: str) -> tuple[str, ...]:
    """Have a model compile its blocks where that is asked for, and return what to say of it.

    Raises:
        OrreryError: they cannot be compiled.
    """
    if not wanted:
        return ()
    from orrery.training.compiled_blocks import compile_blocks  # torch's compiler takes seconds to import

    return (compile_blocks(model, device),)
