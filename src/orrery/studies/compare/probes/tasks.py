"""Made-up texts with one right continuation: pairs to be recalled, and texts to be copied."""

from dataclasses import dataclass

import torch
from torch import Tensor

from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED


@dataclass(frozen=True)
class RecallPairs:
    """Associative recall: ``k v k v ... k v``, then the keys in another order, each with its value to be said.

    Arora et al. 2023 (Zoology), section 3, with all queries at the end. Keys and values are different tokens; no key
    comes twice among the pairs.
    """

    keys: int = 16
    values: int = 16

    @property
    def vocabulary(self) -> int:
        """The tokens that there are."""
        return self.keys + self.values

    def length(self, pairs: int) -> int:
        """Return the tokens of a row."""
        return 4 * pairs

    def rows(self, count: int, pairs: int, rng: torch.Generator) -> Batch:
        """Draw rows of so many pairs."""
        keys_BP = torch.rand(count, self.keys, generator=rng).argsort(1)[:, :pairs]
        values_BP = self.keys + torch.randint(self.values, (count, pairs), generator=rng)
        order_BP = torch.rand(count, pairs, generator=rng).argsort(1)
        asked_BP, answers_BP = keys_BP.gather(1, order_BP), values_BP.gather(1, order_BP)
        ids_BL = torch.cat([_woven(keys_BP, values_BP), _woven(asked_BP, answers_BP)], 1)
        targets_BL = torch.full_like(ids_BL, IGNORED)
        targets_BL[:, 2 * pairs :: 2] = answers_BP
        return {"ids": ids_BL, "targets": targets_BL}


def _woven(first_BP: Tensor, second_BP: Tensor) -> Tensor:
    return torch.stack([first_BP, second_BP], 2).flatten(1)


@dataclass(frozen=True)
class Copies:
    """Copying: random tokens, a mark, and the same tokens again, to be said from the mark on."""

    tokens: int = 32

    @property
    def vocabulary(self) -> int:
        """The tokens that there are, the mark among them."""
        return self.tokens + 1

    def length(self, size: int) -> int:
        """Return the tokens of a row."""
        return 2 * size + 1

    def rows(self, count: int, size: int, rng: torch.Generator) -> Batch:
        """Draw rows whose text has so many tokens."""
        text_BN = torch.randint(self.tokens, (count, size), generator=rng)
        mark_B1 = torch.full((count, 1), self.tokens)
        ids_BL = torch.cat([text_BN, mark_B1, text_BN], 1)
        targets_BL = torch.full_like(ids_BL, IGNORED)
        targets_BL[:, size:-1] = text_BN
        return {"ids": ids_BL, "targets": targets_BL}
