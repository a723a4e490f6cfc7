"""Tracing and trying, shared out among workers that each have a copy of the project; every result is kept at once."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import TypeVar

from mutation.asking import stages
from mutation.checkout import Checkout
from mutation.operators import Mutation
from mutation.records import ROOT, Trace, rows_of
from mutation.server import LIBRARIES, Server
from mutation.traced import files_of_tests, stale, trace
from mutation.trial import Worker, key_of

MOST_FAILED = 40
_Maker = TypeVar("_Maker")
_Thing = TypeVar("_Thing")


@dataclass(frozen=True)
class Campaign:
    """A project, the folder in which everything about it is kept, and how many are at work."""

    work: Path
    workers: int
    root: Path = ROOT
    enough: float = 30.0
    most: float = 150.0
    libraries: str = LIBRARIES

    def trace(self, wanted: list[str]) -> None:
        """Trace the files of tests that have no trace of the present state; of all, or of some paths."""
        folder = self.work / "trace"
        folder.mkdir(parents=True, exist_ok=True)
        todo = stale(files_of_tests(wanted, self.root), folder, self.root)
        if not todo:
            return
        print(f"running {len(todo)} files of tests once, to see which lines each goes through", flush=True)
        failed: list[str] = []

        def one(server: Server, file: str) -> None:
            failures = trace(server, file, folder, self.root)
            failed.extend(failures)
            print("".join(f"fails without any mutation, left out: {test}\n" for test in failures), end="", flush=True)

        with self._servers("tracer", warm=True) as pairs:
            _share_out(todo, [server for _, server in pairs], one)
        if len(failed) > MOST_FAILED:
            raise SystemExit(f"error: {len(failed)} tests fail without any mutation: mend them first")

    def attempt(self, chosen: list[Mutation], known: Trace, path: Path) -> None:
        """Try what has no verdict yet, and write each verdict as it comes."""
        _end_cleanly(path)
        done = {row["key"] for row in rows_of([path])}
        todo = [mutation for mutation in chosen if key_of(mutation) not in done]
        if not todo:
            return
        count, lock = iter(range(len(chosen) - len(todo) + 1, len(chosen) + 1)), threading.Lock()

        def one(worker: Worker, mutation: Mutation) -> None:
            verdict = worker.attempt(mutation, stages(mutation, known, self.root / "src" / "orrery"))
            became = f"caught by {len(verdict.caught_by)} of" if verdict.caught_by else "SURVIVED"
            told = f"{became} {len(verdict.asked)} tests, {verdict.core_seconds:.1f} core-s"
            with lock:
                with path.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(verdict.row(), ensure_ascii=False) + "\n")
                print(f"[{next(count)}/{len(chosen)}] {mutation.name[:150]}: {told}", flush=True)

        with self._servers("server") as pairs:
            _share_out(todo, [Worker(*pair, known.seconds, self.enough, self.most) for pair in pairs], one)

    @contextmanager
    def _servers(self, name: str, warm: bool = False) -> Iterator[list[tuple[Checkout, Server]]]:
        """Give each worker a copy of the project and a warm process in it, and end them all."""
        with ExitStack() as stack:
            pairs = []
            for n in range(self.workers):
                copy = Checkout(self.work / "checkouts" / str(n), self.root)
                stack.callback(copy.close)
                held, folder = (copy.lock,), self.work / f"{name}-{n}"
                server = Server(copy.folder, folder, warm=warm, held=held, libraries=self.libraries)
                stack.callback(server.close)
                pairs.append((copy, server))
            yield pairs


def _end_cleanly(path: Path) -> None:
    """Take away a last line that a kill has cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text or not path.exists():
        path.write_text(whole, encoding="utf-8")


def _share_out(todo: list[_Thing], workers: list[_Maker], one: Callable[[_Maker, _Thing], None]) -> None:
    """Give each worker one thing after another until none is left, or one of them fails."""
    free: Queue[_Maker] = Queue()
    for worker in workers:
        free.put(worker)

    def lent(thing: _Thing) -> None:
        worker = free.get()
        try:
            one(worker, thing)
        finally:
            free.put(worker)

    with ThreadPoolExecutor(len(workers)) as pool:
        started = [pool.submit(lent, thing) for thing in todo]
        try:
            for future in started:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
