"""Tensors into a model: built without memory, filled without copies, tied weights kept tied."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from orrery.checkpoints.rules import Rule, to_ours
from orrery.errors import ModelFileError, UsageError


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's parameters by name, a tied one once under its first name: what a file holds."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def refuse_buffers(model: nn.Module) -> None:
    """Refuse a model with numbers that are no parameters, which a file would lack.

    Raises:
        UsageError: it has buffers that belong to its state.
    """
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    if buffers := [name for name in model.state_dict() if name not in parameters]:
        raise UsageError(
            f"{len(buffers)} of the model's tensors are no parameters, which a file cannot hold: {buffers[0]}",
            "save the model that its configuration describes",
        )


def check_fit(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Compare names, shapes and kinds of tensors, which may be on the meta device, with a model's parameters.

    A floating-point tensor may be of any width; whole numbers stand only where the model has the same.

    Raises:
        ModelFileError: tensors are missing, unexpected, of another shape, or of another kind of numbers.
    """
    own = weights_of(model)
    faults = {
        "missing": [name for name in own if name not in tensors],
        "unexpected": [name for name in tensors if name not in own],
        "of another shape": [n for n in own if n in tensors and own[n].shape != tensors[n].shape],
        "of whole numbers": [
            n for n, tensor in tensors.items() if _whole(tensor) and not (n in own and _whole(own[n]))
        ],
        "of other numbers": [n for n in own if n in tensors and _whole(own[n]) and own[n].dtype != tensors[n].dtype],
    }
    sentences = [f"{len(names)} {kind}: {', '.join(names[:10])}" for kind, names in faults.items() if names]
    if sentences:
        raise ModelFileError(
            f"the weights do not fit the architecture; tensors {'; '.join(sentences)}",
            "use the files of one model",
        )


def fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give a model its parameters.

    Raises:
        ModelFileError: they do not fit, see ``check_fit``.
    """
    check_fit(model, tensors)
    own = weights_of(model)
    new = {id(model.get_parameter(name)): nn.Parameter(tensors[name], requires_grad=False) for name in own}
    for name, parameter in list(model.named_parameters(remove_duplicate=False)):
        owner, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(owner), leaf, new[id(parameter)].requires_grad_(parameter.requires_grad))


def from_theirs(model: nn.Module, theirs: Mapping[str, Tensor], rules: tuple[Rule, ...]) -> dict[str, Tensor]:
    """Return a model's tensors from those of a Hugging Face file.

    A file may hold a tied tensor under both of its names; both must then be the same numbers. Tensors on the meta
    device give tensors on the meta device, so that names and shapes can be compared before a byte is read.

    Raises:
        ModelFileError: the tensors do not fit, or the two copies of a tied tensor differ.
    """
    theirs = dict(theirs)
    own = weights_of(model)
    everything = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    their_names = {ours: name for rule in rules for name, parts in rule.places(everything) for ours in parts}
    for copy in [name for name in everything if name not in own]:
        first = next(n for n in own if model.get_parameter(n) is model.get_parameter(copy))
        given, original = theirs.pop(their_names.get(copy, ""), None), theirs.get(their_names[first])
        if given is not None and original is not None and not _equal(given, original):
            raise ModelFileError(
                f"config.json ties {their_names[copy]} to {their_names[first]}, but the file has two different ones",
                "set tie_word_embeddings to false in config.json",
            )
    lacking = [their_names.get(name, "") for name in own if name.endswith("vocabulary.weight")]
    others = {name for name in their_names.values() if name not in lacking}
    if others <= theirs.keys() and (absent := [name for name in lacking if name and name not in theirs]):
        raise ModelFileError(
            f"config.json gives the head a matrix of its own, but the file has no {absent[0]}",
            "if the head is the embedding table, set tie_word_embeddings to true in config.json",
        )
    return to_ours(theirs, rules, {name: tensor.shape for name, tensor in own.items()})


def _whole(tensor: Tensor) -> bool:
    return not tensor.is_floating_point()


def _equal(a: Tensor, b: Tensor) -> bool:
    return a.is_meta or torch.equal(a, b)
