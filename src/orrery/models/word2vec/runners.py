"""How the chunks of an epoch are stepped: in the order of the text, or by every worker as they come."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from orrery.models.word2vec.parts import Chunk, Draw, Step, Stepped, Work


def in_order(chunks: Iterator[Chunk], draw: Draw, step: Step, workers: int) -> Iterator[Stepped]:
    """Step the chunks one after another; the other workers draw ahead.

    The bytes are those of one worker, for any number of them: a draw depends on its chunk alone, and the
    steps, which are the serial algorithm of the papers, follow the order of the text.
    """
    if workers == 1:
        for chunk in chunks:
            yield counted(draw(chunk), step)
        return
    waiting: deque[Future[Work]] = deque()
    with ThreadPoolExecutor(workers - 1) as pool:
        for chunk in chunks:
            waiting.append(pool.submit(draw, chunk))
            if len(waiting) > workers:
                yield counted(waiting.popleft().result(), step)
        while waiting:
            yield counted(waiting.popleft().result(), step)


def hogwild(chunks: Iterator[Chunk], draw: Draw, step: Step, workers: int) -> Iterator[Stepped]:
    """Let every worker draw and step its own chunks on the shared tables, without locks (Niu et al. 2011).

    The fastest way; two runs differ, because updates that meet in one row may lose one another.
    """
    waiting: deque[Future[Stepped]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for chunk in chunks:
            waiting.append(pool.submit(lambda chunk: counted(draw(chunk), step), chunk))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def counted(work: Work, step: Step) -> Stepped:
    """Step a chunk, and return how many examples it had and the sum of their losses."""
    return len(work.contexts.words), step(work)
