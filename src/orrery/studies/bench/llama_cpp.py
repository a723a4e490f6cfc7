"""llama.cpp as a peer: its server in a process of its own, from the package xllamacpp.

``python -m orrery.studies.bench.llama_cpp SETTINGS`` is that process: it prints its address and serves until its input
ends. The server waits for threads when it is destroyed, on a busy machine for ever: so the process is killed.
"""

import json
import subprocess
import sys
import urllib.request
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, final

from orrery.errors import RunError

PATIENCE = 600.0
"""Seconds that an answer may take."""


@final
class LlamaCpp:
    """A server that writes rows side by side, a slot each.

    Args:
        path: a GGUF file.
        kind: of its matrices, for the name.
        rows: how many at once.
        context: the most tokens of a row.
        threads: as many as everybody has.
        exact: keep keys and values in float32.
        embeds: give vectors of texts, and write none.
        ranks: give pairs of texts a number, and write none.

    Attributes:
        address: where it answers.

    Raises:
        RunError: it does not load the file.
    """

    def __init__(
        self,
        path: Path,
        kind: str,
        rows: int,
        context: int,
        threads: int,
        *,
        exact: bool,
        embeds: bool = False,
        ranks: bool = False,
    ) -> None:
        self.name = f"llama.cpp {kind}"
        settings = {"path": str(path), "rows": rows, "context": context, "threads": threads, "exact": exact}
        settings |= {"embeds": True} if embeds or ranks else {}
        settings |= {"ranks": True} if ranks else {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._end = weakref.finalize(self, _killed, self._process)
        assert self._process.stdout is not None
        lines = (line.strip() for line in self._process.stdout)
        self.address = next((line for line in lines if line.startswith("http")), "")
        if not self.address:
            self.close()
            raise RunError(f"llama.cpp does not load {path}", "leave this peer out")

    def write(self, rows: Any, new: int) -> list[list[int]]:
        """Return the tokens of each row, its prompt read again."""
        with ThreadPoolExecutor(len(rows)) as pool:
            return list(pool.map(lambda row: self._one(list(row), new), rows))

    def _one(self, ids: list[int], new: int) -> list[int]:
        how = {"samplers": ["temperature"], "ignore_eos": True, "cache_prompt": False}
        answer = self.ask("/completion", prompt=ids, n_predict=new, temperature=0, return_tokens=True, **how)
        return [int(id) for id in answer["tokens"]]

    def ask(self, route: str, **content: Any) -> dict[str, Any]:
        """Return what a route of the server answers."""
        data, header = json.dumps(content).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + route, data, header)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            answered: dict[str, Any] = json.load(answer)
        return answered

    def close(self) -> None:
        """End the process."""
        self._end()


def _killed(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def serve(
    path: str, rows: int, context: int, threads: int, exact: bool, embeds: bool = False, ranks: bool = False
) -> None:
    """Serve a file until the input ends; ``exact`` keeps keys and values in float32."""
    xllamacpp: Any = __import__("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.n_ctx, settings.n_parallel, settings.verbosity = context * rows, rows, 0
    settings.warmup, settings.fit_params, settings.cache_prompt = True, False, False
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    if exact:
        settings.cache_type_k = settings.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        settings.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    settings.embedding = embeds
    if ranks:
        settings.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
    server = xllamacpp.Server(settings)
    print(f"\n{server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(**json.loads(sys.argv[1]))
