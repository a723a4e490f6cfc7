"""A decoder that reads the beginning of a row in both directions."""

from dataclasses import replace
from typing import TypeVar

from orrery.errors import UsageError
from orrery.models.decoder import Decoder
from orrery.models.model import ModelSpec
from orrery.nn.masks import Causal, Prefix

Spec = TypeVar("Spec", bound=ModelSpec)


def with_prefix(spec: Spec) -> Spec:
    """Return a decoder whose causal masks have a prefix (Raffel et al. 2020, section 3.2.1); its weights are the same.

    Raises:
        UsageError: it is no decoder, or has another mask beside the causal one.
    """
    if not isinstance(spec, Decoder.Spec) or not all(isinstance(mask, Causal) for mask in spec.stack.masks.values()):
        message = "model.mask: prefix needs a decoder all of whose masks are causal, this model is none"
        raise UsageError(message, "name a family such as llama or gpt2, or describe the masks in a file: model.spec")
    masks = dict.fromkeys(spec.stack.masks, Prefix())
    return replace(spec, stack=replace(spec.stack, masks=masks))
