"""New items for a model that is trained: where their texts put them among the items that it knows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from orrery.errors import UsageError
from orrery.tasks.next_items.cold import Projection, WordVectors, encoder_vectors, split_known
from orrery.tasks.next_items.ranking import WHOLE, NewItems, main_head, names_of

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel


def new_items(lm: "LanguageModel", texts: Mapping[str, str], encoder: "LanguageModel | None" = None) -> NewItems:
    """Return the items that a model does not know, as rows of its head that their texts lead to.

    Args:
        lm: the model over items.
        texts: of each item, those that it knows among them.
        encoder: makes a vector of each text; by default words are counted.

    Raises:
        UsageError: there is no new item, or fewer than two that it knows.
    """
    known = names_of(lm)
    learned, others = split_known(texts, known)
    if not others:
        raise UsageError(f"all {len(texts):,} items with a text are known to the model", "leave the texts out")
    return projected(lm, texts, {item: known[item] for item in learned}, others, encoder)


def projected(
    lm: "LanguageModel", texts: Mapping[str, str], learned: Mapping[str, int], others: Sequence[str],
    encoder: "LanguageModel | None" = None, ids: tuple[int, ...] = (),
) -> NewItems:  # fmt: skip
    """Return items as rows of the head's table.

    Args:
        lm: the model over items.
        texts: of each item.
        learned: the token of each item from which the projection is found.
        others: the items to project.
        encoder: as above.
        ids: the tokens of these, where the tokenizer has some.
    """
    table: Any = lm.model.named_heads[main_head(lm)].vocabulary
    numbers = list(learned.values())
    rows = table.weight.detach().double().cpu()[numbers].numpy()
    some = [texts[item] for item in learned]
    vectors = WordVectors([*some, *(texts[item] for item in others)]) if encoder is None else encoder_vectors(encoder)
    found = Projection(vectors, some, rows)([texts[item] for item in others])
    bias = 0.0 if table.bias is None else float(table.bias.detach()[numbers].mean())
    return NewItems(tuple(others), torch.from_numpy(found), bias, ids)


def is_recommender(lm: "LanguageModel") -> bool:
    """Say whether a model scores whole words, as one over items does, and none beside a source."""
    spec = lm.model.spec
    if lm.stored.tokenizer is None or spec.reads_source or spec.vocabulary is None:
        return False
    kind = (lm.tokenizer.definition.get("model") or {}).get("type")
    return kind == WHOLE and hasattr(lm.model.named_heads.get(main_head(lm)), "vocabulary")
