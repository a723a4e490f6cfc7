"""The peer llama.cpp without its package: what is asked of its process, what it is told, and its end."""

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orrery.errors import RunError
from orrery.studies.bench import llama_cpp
from orrery.studies.bench.llama_cpp import LlamaCpp, serve

ANSWERS = {"/completion": {"tokens": [5, 6.0]}}


class Process:
    """Stands for the process of the server: says some lines, and notes that it is killed."""

    __class__ = property(lambda self, kind=subprocess.Popen: kind)  # types are checked at run time

    def __init__(self, said: str) -> None:
        self.stdout, self.ends = io.StringIO(said), list[str]()
        self.command: list[str] = []

    def __call__(self, command: list[str], **how: Any) -> "Process":
        self.command = command
        return self

    def kill(self) -> None:
        self.ends.append("killed")

    def communicate(self) -> None:
        self.ends.append("gone")


def opened(process: Process, monkeypatch: pytest.MonkeyPatch) -> LlamaCpp:
    monkeypatch.setattr(llama_cpp.subprocess, "Popen", process)
    return LlamaCpp(Path("a.gguf"), "q8_0", rows=3, context=64, threads=2, exact=False)


def test_the_process_is_given_its_settings_and_says_where_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process("loading\n\nhttp://127.0.0.1:8080\n")
    peer = opened(process, monkeypatch)
    assert (peer.name, peer.address) == ("llama.cpp q8_0", "http://127.0.0.1:8080")
    assert process.command[:3] == [sys.executable, "-m", "orrery.studies.bench.llama_cpp"]
    assert json.loads(process.command[3]) == {
        "path": "a.gguf", "rows": 3, "context": 64, "threads": 2, "exact": False,
    }  # fmt: skip
    assert process.ends == []
    peer.close()
    peer.close()
    assert process.ends == ["killed", "gone"]


def test_a_file_that_it_does_not_load_is_named_and_the_process_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process("error: no model\n")
    with pytest.raises(RunError, match=r"llama\.cpp does not load a\.gguf") as refused:
        opened(process, monkeypatch)
    assert refused.value.hint == "leave this peer out"
    assert process.ends == ["killed", "gone"]


def test_every_row_is_asked_for_greedily_and_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def urlopen(request: Any, timeout: float) -> io.BytesIO:
        route = request.full_url.removeprefix("http://here")
        asked.append((route, json.loads(request.data), request.headers, timeout))
        return io.BytesIO(json.dumps(ANSWERS[route]).encode())

    monkeypatch.setattr(llama_cpp.urllib.request, "urlopen", urlopen)
    peer = opened(Process("http://here\n"), monkeypatch)
    assert peer.write([(1, 2), (3, 4)], 2) == [[5, 6], [5, 6]]
    assert sorted(content["prompt"] for _, content, *_ in asked) == [[1, 2], [3, 4]]
    for _, content, headers, timeout in asked:
        rest = {name: value for name, value in content.items() if name != "prompt"}
        assert rest == {
            "n_predict": 2, "temperature": 0, "return_tokens": True, "samplers": ["temperature"], "ignore_eos": True,
            "cache_prompt": False,
        }  # fmt: skip
        assert headers == {"Content-type": "application/json"}
        assert timeout == llama_cpp.PATIENCE


@pytest.mark.parametrize("exact", [True, False])
def test_the_server_has_a_slot_of_the_whole_context_for_each_row(
    exact: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    params = SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())
    package = SimpleNamespace(
        CommonParams=lambda: params,
        ggml_type=SimpleNamespace(GGML_TYPE_F32="float32"),
        llama_flash_attn_type=SimpleNamespace(LLAMA_FLASH_ATTN_TYPE_DISABLED="disabled"),
        Server=lambda given: SimpleNamespace(listening_address=f"http://{given.model.path}"),
    )
    monkeypatch.setitem(sys.modules, "xllamacpp", package)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    serve("a.gguf", 3, 64, 2, exact)
    assert capsys.readouterr().out.splitlines()[-1] == "http://a.gguf"
    assert (params.n_ctx, params.n_parallel) == (192, 3)
    assert params.cpuparams.n_threads == params.cpuparams_batch.n_threads == 2
    assert (params.warmup, params.fit_params, params.cache_prompt) == (True, False, False)
    kinds = [getattr(params, name, None) for name in ("cache_type_k", "cache_type_v", "flash_attn_type")]
    assert kinds == (["float32", "float32", "disabled"] if exact else [None] * 3)
