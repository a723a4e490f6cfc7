"""Requests that a model answers by reading whole rows: one after another, and no longer than the client waits."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from starlette.types import Receive

from orrery.errors import DataError, UsageError
from orrery.language_model.vectors import NO_PROMPT
from orrery.serving.answers import GoneError
from orrery.serving.errors import ApiError
from orrery.serving.served import Served

Result = TypeVar("Result")
Done = Callable[[int, int], None]
"""Told after each batch how many rows are done, and of how many."""

SHORTER = 'shorten it, or send "truncation": true, which leaves out its end'
"""What to do with a text that is too long, where the request has that field."""

BATCH = 8
"""Rows computed at once; between two batches is looked whether the client is still there."""


async def over_rows(
    served: Served, receive: Receive, work: Callable[[Done], Result], param: str = "input", shorter: str = SHORTER
) -> Result:
    """Return what work makes of the rows of a request, done by another thread, one request at a time.

    Args:
        served: the model.
        receive: tells when the client leaves; the work then ends with its batch.
        work: called with what it has to call after each batch.
        param: the field that holds the texts, which errors name.
        shorter: what a client can do about a text that is too long.

    Raises:
        ApiError: 429 where too many are inside; 400 for what the model cannot read; 499 once the client has left.
    """
    with served.enter():
        watch = asyncio.create_task(_left(receive))

        def done(count: int, total: int) -> None:
            if watch.done():
                raise GoneError

        try:
            async with served.computing:
                done(0, 0)
                return await served.do(work, done)
        except GoneError:
            raise ApiError(499, "the client has left") from None
        except (UsageError, DataError) as error:
            raise refusal(error, param, shorter) from None
        finally:
            watch.cancel()


def refusal(error: UsageError | DataError, param: str, shorter: str) -> ApiError:
    """Return what a text that cannot be read is to the client, who has fields and no flags."""
    if "longer than" in error.message or "cannot fit" in error.message:
        return ApiError(400, f"{error.message}: {shorter}", param=param, code="context_length_exceeded")
    own = "prompt_name" if error.message.startswith(NO_PROMPT) else param
    return ApiError(400, f"{error.message}: {error.hint}", param=own, code="invalid_value")


def texts_of(given: str | Sequence[str]) -> list[str]:
    """Return the texts of a field that holds one or several."""
    return [given] if isinstance(given, str) else list(given)


async def _left(receive: Receive) -> None:
    """Return once the client has left."""
    with suppress(ApiError):
        while (await receive())["type"] != "http.disconnect":
            pass
