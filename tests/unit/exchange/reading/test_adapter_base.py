"""An adapter of another model is refused as what it is: a file that does not fit."""

from pathlib import Path

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.exchange.reading.adapters import _refuse_other_base
from tiny_models import tiny


def test_an_adapter_of_another_model_is_refused() -> None:
    base = tiny("gpt2")
    _refuse_other_base(base, tiny("gpt2"), Path("a"))
    with pytest.raises(ModelFileError, match="their tensors have other names"):
        _refuse_other_base(base, tiny("llama"), Path("a"))
    other = tiny("gpt2")
    with torch.no_grad():
        other.stack.final.weight += 1
    with pytest.raises(ModelFileError, match=r"stack.final.weight differs"):
        _refuse_other_base(base, other, Path("a"))
