"""What training puts around a model and leaves in the names of its file: wrappers, a value head, an adapter."""

import re
from collections.abc import Iterable

from orrery.errors import ModelFileError

_WRAPPERS = re.compile(
    r"^module\.|^language_model\.(?=model\.|lm_head\.)|(?<=^model\.)language_model\."
    r"|\b(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module)\."
)
_ADAPTER = re.compile(r"^base_model\.model\.|\.lora_(embedding_)?[AB]\.|\.base_layer\.")


def unwrapped(name: str) -> str:
    """Return a name without what DDP, ``torch.compile``, FSDP, Fabric and checkpointed activations add to a model's.

    A text part that was saved alone may keep the names that it has in a model which reads pictures too.
    """
    return _WRAPPERS.sub("", name)


def is_value_head(name: str) -> bool:
    """Say whether a tensor is of the value head that trl saves beside a language model: no logits pass through it."""
    return unwrapped(name).startswith("v_head.")


def refuse_adapter(names: Iterable[str]) -> None:
    """Refuse the tensors of a model around which peft still stands.

    Raises:
        ModelFileError: an adapter was saved with its base, and not merged.
    """
    if name := next(filter(_ADAPTER.search, names), None):
        raise ModelFileError(
            f"the weights hold an adapter of peft that was not merged into the model: {name}",
            "merge it with peft, model.merge_and_unload().save_pretrained(FOLDER), and load that folder",
        )
