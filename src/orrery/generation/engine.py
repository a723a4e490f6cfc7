"""The batching engine: many requests at once, each answered as if it were alone."""

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from time import monotonic
from typing import Any, final

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.answer_text import AnswerText
from orrery.generation.batch import Batch
from orrery.generation.choosing import choose, end_if_whole
from orrery.generation.compiled_step import CompiledStep
from orrery.generation.generate import beginnings, check_prompts, generators
from orrery.generation.joint_reading import read_together, take_together
from orrery.generation.next_token import at
from orrery.generation.paged import PagedModel
from orrery.generation.prefixes import Prefixes, in_pages
from orrery.generation.prompt_reading import PromptReading
from orrery.generation.requests import Answering, CancelledError, Request
from orrery.generation.row import GenerationRow
from orrery.models.protocols import ChunkedModel
from orrery.nn.cache.pages import PagePool
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer
from orrery.tuning import RowAdapters

PATIENCE, LEAST_PATIENCE = 0.02, 0.005
"""Seconds that a round waits for guides, of all rows together: as long as it has computed, within these bounds.

A row that is put aside is read again, which costs the more the longer its steps are; where they are short, the wait
for one row would be most of what another waits for its answer.
"""


@final
class Engine:
    """Continuous batching: rows join when their prompt is read and leave when their answer ends.

    A round (``advance``) writes one token in every row, then reads at most ``chunk`` tokens of the prompts that wait,
    each into a session of its own, in turns. So a long prompt delays a token of its neighbours by one chunk, and a
    short one does not wait for it (Yu et al. 2022, Orca; Agrawal et al. 2023, Sarathi).

    An answer depends on its own request alone: the engine writes what ``generate`` writes for it. The last bits of a
    product may depend on the size of its batch, so that this holds but for ties of the logits; ``deterministic``
    computes each row as if it were alone.

    Requests are let in first come, first served: a large one waits until those before it leave it room, and nothing
    that came later takes that room. What fails in one row ends that row. Where a step of all rows fails, each is read
    again alone, and those that fail alone end. A row whose guide does not know in time what may follow is put aside, so
    that no other waits for it, and read again once it does.

    Args:
        model: what writes; dropout should be off.
        tokenizer: turns answers into text.
        context: the most tokens of a row.
        most_rows: answers written at once.
        most_tokens: of all rows together, counted as if every answer became as long as it may; by default
            ``most_rows`` full rows. It bounds the memory of keys and values, of which every row has as much as the
            longest, unless they stand in pages. Storage grows by doubling.
        chunk: tokens of prompts that are read in one round.
        kept_tokens: of prompts whose session is kept for those that begin alike; by default one context.
        device: where the model is.
        adapters: the LoRAs that requests may name.
        pool: pages for keys and values, where rows shall share those of a common beginning; tokens are then counted
            in whole pages. By default each row has slots of its own, which kernels read without a gather.
        deterministic: let no bit of an answer depend on the other requests: a prompt is read alone, in pieces that end
            at multiples of ``chunk``, and each row is computed as it is alone. The same request, ``chunk`` and number
            of threads on the same machine then give the same bits, whatever comes and goes.

    Raises:
        UsageError: a number below 1, or a pool of fewer pages than ``most_tokens`` and ``kept_tokens`` fill.
    """

    def __init__(
        self,
        model: ChunkedModel,
        tokenizer: Tokenizer,
        context: int,
        *,
        most_rows: int = 16,
        most_tokens: int | None = None,
        chunk: int = 256,
        kept_tokens: int | None = None,
        device: torch.device | None = None,
        adapters: RowAdapters | None = None,
        pool: PagePool | None = None,
        deterministic: bool = False,
    ) -> None:
        self.context, self.most_rows, self.chunk = context, most_rows, chunk
        self.most_tokens = most_rows * context if most_tokens is None else most_tokens
        for name, number in (("most_rows", most_rows), ("most_tokens", self.most_tokens), ("chunk", chunk)):
            if number < 1:
                raise UsageError(f"{name} = {number} is not possible", "it must be at least 1")
        kept = context if kept_tokens is None else kept_tokens
        self._page, self._paged = (1, False) if pool is None else (pool.size, True)
        if pool is not None and pool.most is not None and pool.most * pool.size < self.most_tokens + kept:
            message = f"{pool.most:,} pages of {pool.size} tokens, for {self.most_tokens:,} of rows and {kept:,} kept"
            raise UsageError(message, "allow more pages, or lower most_tokens or kept_tokens")
        self.prefixes = Prefixes(kept, page=self._page)
        self._model: Any = model if pool is None else PagedModel(model, pool)
        self._tokenizer, self._device = tokenizer, device
        self.adapters = adapters
        self._waiting: deque[Answering] = deque()
        self._reading: deque[PromptReading] = deque()
        self._batches: list[Batch] = []
        self._late: list[Answering] = []
        self._began = 0.0
        self._deterministic = deterministic
        self._apart = deterministic and not (adapters is None and getattr(self._model, "row_invariant", False))

    @property
    def waiting(self) -> int:
        """How many requests wait for a place."""
        return len(self._waiting)

    @property
    def rows(self) -> int:
        """How many are read or written now."""
        return len(self._under_way)

    @property
    def _writing(self) -> list[Answering]:
        return [own for batch in self._batches for own in batch.rows]

    @property
    def tokens(self) -> int:
        """How many tokens' keys and values those that are read or written may come to hold memory for."""
        return self._held(self._under_way)

    @property
    def _under_way(self) -> list[Answering]:
        return [*(reading.answering for reading in self._reading), *self._writing, *self._late]

    def _held(self, rows: Sequence[Answering]) -> int:
        """Return the tokens for which rows hold memory: their own in pages; in slots, as many as the longest has."""
        sizes = [self._most_tokens(own) for own in rows]
        return sum(sizes) if self._paged else len(sizes) * max(sizes, default=0)

    def _most_tokens(self, answering: Answering) -> int:
        return in_pages(answering.most_tokens, self._page)

    def add(self, request: Request) -> Answering:
        """Take a request; its answer grows with each ``advance``.

        Raises:
            UsageError: an empty prompt, one longer than the context, or one that needs more memory than there is.
        """
        answering = self.prepare(request)
        self.enter(answering)
        return answering

    def enter(self, answering: Answering) -> None:
        """Take a request that ``prepare`` has looked at."""
        self._waiting.append(answering)

    def prepare(self, request: Request) -> Answering:
        """Return the answer that a request will have, not begun yet; any thread may ask, at any time.

        Raises:
            UsageError: as in ``add``.
        """
        if request.limits.max_new_tokens != 0:
            check_prompts([request.prompt], request.limits)
        elif not 0 < len(request.prompt) <= self.context:
            raise UsageError(f"a prompt of {len(request.prompt)} tokens", f"give 1 to {self.context:,}")
        if request.limits.context != self.context:
            raise UsageError(
                f"a request for a context of {request.limits.context}, and the engine's is {self.context}",
                "give its limits the context of the engine",
            )
        if request.adapter is not None:
            if self.adapters is None:
                raise UsageError(f"there is no adapter {request.adapter[:100]!r}", "this engine has none")
            self.adapters.require(request.adapter)
        if request.prompt_scores and self._model.reads_at_once:
            raise UsageError("this model reads its prompt at once and predicts none of it", "ask for no prompt_scores")
        (generator,), (begun,) = generators(request.seed, 1), beginnings(self._model, [request.prompt])
        answering = Answering(request, generator, begun)
        if self._most_tokens(answering) > self.most_tokens:
            raise UsageError(
                f"an answer of up to {self._most_tokens(answering):,} tokens with its prompt passes the engine's "
                f"{self.most_tokens:,}",
                "ask for fewer tokens",
            )
        return answering

    def cancel(self, answering: Answering) -> None:
        """End an answer before its time; its place is free in the next round."""
        if not answering.done:
            answering.error = CancelledError("the request was cancelled", "ask again")

    @torch.no_grad()
    def advance(self) -> bool:
        """Do one round; return whether something is left to do."""
        self._began = monotonic()
        self._drop()
        self._write()
        self._take_back()
        self._admit()
        self._read()
        return bool(self._waiting or self._reading or self._batches or self._late)

    def _drop(self) -> None:
        """Let go of what has ended."""
        self._waiting = deque(own for own in self._waiting if not own.done)
        self._reading = deque(own for own in self._reading if not own.answering.done)
        self._late = [own for own in self._late if not own.done]
        for batch in self._batches:
            batch.drop()
        self._batches = [batch for batch in self._batches if batch.rows]

    def _write(self) -> None:
        """Write one token in each row."""
        for batch in self._batches:
            try:
                with self._adapted(batch.rows):
                    logits_BV = batch.step(self._writer(batch.rows), self._device)
            except Exception as error:  # which row it was shows when each is read again alone
                self._read_again(batch.rows, error)
                batch.rows = []
            else:
                self._choose(batch.rows, logits_BV)
        self._drop()

    def _put_aside(self, rows: Sequence[Answering]) -> list[int]:
        """Put aside the rows whose guides are late; return the places of the others."""
        until = monotonic() + min(PATIENCE, max(LEAST_PATIENCE, monotonic() - self._began))
        for own in rows:
            guided = own.row is not None and bool(own.row.guides)
            own.late = guided and not own.done and not self._is_ready(own, until)
        self._late += [own for own in rows if own.late]
        return [place for place, own in enumerate(rows) if not (own.late or own.done)]

    def _is_ready(self, own: Answering, until: float) -> bool:
        """Return whether it is known what may follow in a row, or that nothing does, in which case it ends."""
        assert own.row is not None
        if not own.row.ready(max(0.0, until - monotonic())):
            return False
        try:
            end_if_whole(own)
        except Exception as error:  # of whoever listens
            own.error = error
        return True

    def _take_back(self) -> None:
        """Read again, before all others, the rows whose guides are late no more; where nothing else is to do, wait."""
        until = monotonic() + (0.0 if self._batches or self._reading else LEAST_PATIENCE)
        for own in list(self._late):
            if own.row is not None and self._is_ready(own, until):
                own.late = False
                self._late.remove(own)
                if not own.done:
                    self._reading.appendleft(self._reading_of(own, alone=True))

    def _choose(self, rows: Sequence[Answering], logits_BV: Tensor) -> None:
        """Give each row its next token, but those that are late."""
        places = self._put_aside(rows)
        if not places:
            return
        rows, logits_BV = [rows[place] for place in places], at(logits_BV, places)
        if not self._deterministic:
            choose(rows, logits_BV)
            return
        for row, own in enumerate(rows):  # what a row draws, too, is computed as it is alone
            choose([own], logits_BV[row : row + 1])

    def _admit(self) -> None:
        """Begin to read what there is a place for, first come, first served."""
        while self._waiting and self.rows < self.most_rows:
            if self._held([*self._under_way, self._waiting[0]]) > self.most_tokens:
                return
            self._reading.append(self._reading_of(self._waiting.popleft()))

    def _read(self) -> None:
        """Read a chunk of prompts, in turns, and write the first token behind those that are read."""
        left = self.chunk
        while left > 0 and self._reading:
            group = [self._reading.popleft()] if self._deterministic else take_together(self._reading, left)
            try:
                read = self._read_some(group, left)
            except Exception as error:  # which row it was shows when each is read again alone
                self._read_again([reading.answering for reading in group], error)
                continue
            left -= read or left

    def _read_some(self, group: Sequence[PromptReading], most: int) -> int:
        """Read several prompts to their ends, or a part of a single one; return how many tokens that took.

        What a deterministic engine reads next of a prompt may be more than ``most``; then it waits for the next round.
        """
        if len(group) > 1:
            places, rows = len(group) * max(own.remaining for own in group), [own.answering for own in group]
            with self._adapted(rows):
                logits_GV, session = read_together(self._writer(rows), group, self.context, self._device)
            for row, reading in enumerate(group):
                reading.keep(session, row)
            self._begin(rows, logits_GV, session)
            return places
        (reading,) = group
        with self._adapted([reading.answering]):
            read = reading.advance(most)
        if reading.done:
            self._begin([reading.answering], reading.logits_V[None], reading.session)
        elif read:
            self._reading.append(reading)
        else:
            self._reading.appendleft(reading)
        return read

    def _begin(self, group: Sequence[Answering], logits_GV: Tensor, session: Any) -> None:
        """Write the first token behind prompts that are read, and let the rows that go on join the others."""
        for own, taken in zip(group, session.lengths, strict=True):
            limits = own.request.limits
            if own.row is None:
                text = AnswerText(StreamDecoder(self._tokenizer), limits.stop)
                own.row = GenerationRow(own.begun, limits.context - taken, text, limits, own.began)
            if limits.max_new_tokens == 0:
                own.row.finish_reason = "length"
        unfinished = [place for place, own in enumerate(group) if not own.done]
        if unfinished:
            self._choose([group[place] for place in unfinished], at(logits_GV, unfinished))
        batch = Batch(group, session)
        batch.drop()
        if self._batches and not self._apart:
            self._batches[0].join(batch)
        elif batch.rows:
            self._batches.append(batch)

    def _read_again(self, rows: Sequence[Answering], error: Exception) -> None:
        """Read rows whose call has failed before all others, each in a call of its own; one that was alone ends."""
        if len(rows) == 1:
            rows[0].error = error
        else:
            self._reading.extendleft(self._reading_of(own, alone=True) for own in reversed(rows))

    def _adapted(self, rows: Sequence[Answering]) -> AbstractContextManager[None]:
        """Give each row of a call the adapter that its request names."""
        if self.adapters is None:
            return nullcontext()
        return self.adapters.rows([own.request.adapter for own in rows], self._device)

    def _reading_of(self, answering: Answering, *, alone: bool = False) -> PromptReading:
        grid = self.chunk if self._deterministic else None
        where = (self.context, self.prefixes, self._device)
        return PromptReading(self._writer([answering]), answering, *where, alone=alone, grid=grid)

    def _writer(self, rows: Sequence[Answering]) -> Any:
        """Return what computes a call of these rows: a compiled step reads matrices, and no adapter beside them."""
        adapted = any(own.request.adapter is not None for own in rows)
        return self._model.model if adapted and isinstance(self._model, CompiledStep) else self._model
