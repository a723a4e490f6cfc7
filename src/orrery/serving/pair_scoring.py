"""Scores of pairs of texts for every interface that asks for them."""

from collections.abc import Sequence

from starlette.types import Receive

from orrery.language_model.ranking import PairScore
from orrery.serving.abilities import RERANK
from orrery.serving.reading import BATCH, over_rows
from orrery.serving.served import Served


async def scored_pairs(
    served: Served,
    receive: Receive,
    pairs: Sequence[tuple[str, str]],
    *,
    param: str,
    names: Sequence[str],
    shorter: str,
    truncation: bool = True,
    prompt: str | None = None,
    activation: str | None = None,
) -> list[PairScore]:
    """Return the score of each pair of texts.

    Args:
        served: the model.
        receive: tells when the client leaves.
        pairs: of texts, a query first.
        param: the field that holds the second texts, which errors name.
        names: what errors call each of them.
        shorter: what a client can do about a text that is too long.
        truncation: whether what is longer than a row is cut.
        prompt: the name of one of the folder's prompts.
        activation: torch's name of what makes scores of logits; by default as the folder says.

    Raises:
        ApiError: the model scores no pairs, or cannot read one.
    """
    served.require(RERANK)
    return await over_rows(
        served,
        receive,
        lambda done: served.lm.pair_scores(
            pairs, prompt=prompt, truncation=truncation, activation=activation, batch_size=BATCH, names=names, done=done
        ),
        param=param,
        shorter=shorter,
    )
