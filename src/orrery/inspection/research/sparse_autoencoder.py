"""The sparse autoencoder: a value as a sum of few directions out of many, and its file."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, final, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.checkpoints import strict_json
from orrery.checkpoints.outputs import OutputFile
from orrery.checkpoints.tensors import TensorFile, write_tensors
from orrery.errors import ModelFileError, UsageError


@runtime_checkable
class Sparsity(Protocol):
    """What makes features sparse."""

    def features(self, before_NF: Float[Tensor, "N F"]) -> Float[Tensor, "N F"]:
        """Return how active each feature is, at least zero, from what the encoder gives."""
        ...

    def penalty(self, features_NF: Float[Tensor, "N F"]) -> Float[Tensor, ""]:
        """Return what is added to the squared error of a row, the mean over rows."""
        ...


@final
@dataclass(frozen=True)
class L1:
    """ReLU, and ``coefficient * sum_f |f|`` beside the squared error (Bricken et al. 2023).

    Attributes:
        coefficient: greater for fewer active features; it meets values whose squared length is their width.
    """

    coefficient: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a coefficient below zero.

        Raises:
            UsageError: it is one.
        """
        if not self.coefficient >= 0:
            raise UsageError(f"coefficient = {self.coefficient} rewards features", "give 0 or more")

    def features(self, before_NF: Float[Tensor, "N F"]) -> Float[Tensor, "N F"]:
        """Return what is above zero."""
        return before_NF.relu()

    def penalty(self, features_NF: Float[Tensor, "N F"]) -> Float[Tensor, ""]:
        """Return the sum of the features; their directions have length one, so that none can hide in them."""
        return self.coefficient * features_NF.sum(-1).mean()


@final
@dataclass(frozen=True)
class TopKSparsity:
    """The k greatest, where they are above zero, and no penalty (Makhzani & Frey 2013; Gao et al. 2024).

    Attributes:
        k: the most features of one row.
    """

    k: int = 16

    def __post_init__(self) -> None:
        """Refuse less than one feature.

        Raises:
            UsageError: k is no whole number of at least 1.
        """
        if type(self.k) is not int or self.k < 1:
            raise UsageError(f"k = {self.k!r} features", "give a whole number of at least 1")

    def features(self, before_NF: Float[Tensor, "N F"]) -> Float[Tensor, "N F"]:
        """Return the k greatest, and zero elsewhere."""
        kept = before_NF.topk(min(self.k, before_NF.shape[-1]), dim=-1)
        return torch.zeros_like(before_NF).scatter(-1, kept.indices, kept.values.relu())

    def penalty(self, features_NF: Float[Tensor, "N F"]) -> Float[Tensor, ""]:
        """Return zero: the number of features is fixed."""
        return features_NF.new_zeros(())


_KINDS: Mapping[str, Any] = {"l1": L1, "top_k": TopKSparsity}


@final
class SparseAutoencoder(nn.Module):
    """``f = S(W_enc (x - b) + b_enc)``, ``x' = W_dec f + b``, every column of ``W_dec`` of length one.

    Bricken et al. 2023; with S = TopK Gao et al. 2024. The columns are the directions of a dictionary, and a feature
    says how far the value goes into its direction, in the units of the value. Shapes: ``[..., D]`` to ``[..., D]``.

    Args:
        width: D, that of the value.
        features: F, the directions.
        sparsity: S.
        key: of the value, such as ``blocks.3.resid_post``; it is written into the file.
    """

    def __init__(self, width: int, features: int, sparsity: Sparsity, key: str = "") -> None:
        super().__init__()
        if min(width, features) < 1:
            raise UsageError(f"{features} features of {width} channels are no dictionary", "give at least one of each")
        self.sparsity, self.key = sparsity, key
        self.encoder_FD = nn.Parameter(torch.zeros(features, width))
        self.encoder_bias_F = nn.Parameter(torch.zeros(features))
        self.decoder_FD = nn.Parameter(torch.zeros(features, width))
        self.bias_D = nn.Parameter(torch.zeros(width))

    @property
    def features(self) -> int:
        """The number of features."""
        return len(self.decoder_FD)

    def encode(self, x_ND: Float[Tensor, "*N D"]) -> Float[Tensor, "*N F"]:
        """Return how active each feature is."""
        before_NF = (x_ND - self.bias_D) @ self.encoder_FD.T + self.encoder_bias_F
        return self.sparsity.features(before_NF.view(-1, self.features)).view(before_NF.shape)

    def decode(self, features_NF: Float[Tensor, "*N F"]) -> Float[Tensor, "*N D"]:
        """Return the sum of directions."""
        return features_NF @ self.decoder_FD + self.bias_D

    def forward(self, x_ND: Float[Tensor, "*N D"]) -> Float[Tensor, "*N D"]:
        """Return the value as its features say it."""
        return self.decode(self.encode(x_ND))

    def direction(self, feature: int) -> Float[Tensor, "D"]:
        """Return the direction of a feature, of length one.

        Raises:
            UsageError: there is none of this number.
        """
        if not 0 <= feature < self.features:
            raise UsageError(f"there is no feature {feature}", f"they are 0 to {self.features - 1}")
        return self.decoder_FD[feature].detach()

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a safetensors file; its metadata holds the key and the sparsity.

        Raises:
            UsageError: there is such a file, and it shall not be replaced.
        """
        kind = next((name for name, kind in _KINDS.items() if isinstance(self.sparsity, kind)), None)
        if kind is None:
            raise UsageError(f"{type(self.sparsity).__name__} has no name in files", "save the state_dict yourself")
        settings = json.dumps({"key": self.key, "sparsity": {"kind": kind, **asdict(self.sparsity)}})  # type: ignore[call-overload]
        with OutputFile(path, overwrite=overwrite).aside() as fresh:
            write_tensors(fresh, self.state_dict(), {"sparse_autoencoder": settings})

    @staticmethod
    def load(path: str | Path) -> "SparseAutoencoder":
        """Return what ``save`` wrote.

        Raises:
            ModelFileError: no such file, or one that holds something else.
        """
        path = Path(path)
        file = TensorFile(path)
        tensors = dict(file)
        try:
            plain = strict_json.parse(file.metadata["sparse_autoencoder"])
            sparsity = dict(plain["sparsity"])
            made = _KINDS[sparsity.pop("kind")](**sparsity)
            features, width = tensors["decoder_FD"].shape
            autoencoder = SparseAutoencoder(width, features, made, plain["key"])
            autoencoder.to(tensors["decoder_FD"].dtype).load_state_dict(tensors)
        except (UsageError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ModelFileError(f"{path} holds no sparse autoencoder: {error}", "give a file of its save()") from error
        return autoencoder
