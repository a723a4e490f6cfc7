"""Requests that are made to be slow: patterns and schemas of answers, edits of a pass, sixty and more by rule.

Run as a file, ``python tests/slow_requests.py``, it serves a tiny model from a process of its own, sends them all three
times, eight at once, and prints the longest that another client, a third process, waited for an answer of two tokens,
and what became of them. With a word, ``bodies``, it sends the longest bodies alone, sixty times.
"""

import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Asked = tuple[str, dict[str, Any]]
"""A path and a body."""

ATOMS = ("a", "[ab]", "(a|bc)", ".", r"\w", "(ab?)")
REPEATED = ("(({0}{{1000}}){{1000}}){{1000}}", "({0}{{1000}}){{1000}}", "x(({0}{{900}}){{900}}){{900}}")
PATTERNS = (
    r"(a?){2000}a{2000}", r"((a?){200}){200}", r"(.*a.{25}){4}b", r"[ab]*a[ab]{18}c", r"(a|b|ab)*(a|b|ab){900}c",
    r"(\w{1,900}\s){900}", r"((a{1,50}b{1,50}){1,50}c{1,50}){1,50}", "|".join(f".*{n}.*" for n in range(90)),
    r"(a*){50}(b*){50}(a*){50}z{2000}", r"\d{1,5000}(\.\d{1,5000}){1,5000}", "(" * 150 + "a" + "){2}" * 150,
)  # fmt: skip


def patterns() -> Iterator[str]:
    """Yield the patterns."""
    for atom in ATOMS:
        yield from (form.format(atom) for form in REPEATED)
    yield from PATTERNS


def schemas() -> Iterator[dict[str, Any]]:
    """Yield the schemas that are more than a pattern."""
    for step in (9_999_991, 1_000_003, 7_654_321):
        yield {"type": "integer", "multipleOf": step, "minimum": -(10**15), "maximum": 10**15}
    yield {"type": "number", "multipleOf": 1e-7, "minimum": -1e15, "maximum": 1e15}
    for count in (12, 24):
        yield {"allOf": [{"type": "string", "pattern": f"a.{{{n}}}b"} for n in range(5, 5 + count)]}
        yield {"type": "string", "allOf": [{"pattern": f"(a.{{{n}}}b)*"} for n in range(5, 5 + count)]}
    yield {"enum": ["x" * 50 + str(n) for n in range(900)]}
    yield {"anyOf": [{"type": "object", "properties": {f"k{j}": {"type": "string"} for j in range(20)}}] * 25}
    yield {"type": "string", "minLength": 100_000, "maxLength": 10_000_000}
    deep: dict[str, Any] = {"type": "string", "minLength": 500, "maxLength": 9000}
    for _ in range(14):
        deep = {"type": "array", "items": deep, "minItems": 900, "maxItems": 9000}
    yield deep
    loop = {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "array", "items": {"$ref": "#/$defs/a"}}]}
    yield {"$defs": {"a": loop}, "$ref": "#/$defs/a"}
    yield {"type": "object", "patternProperties": {f"^a.{{{n}}}b$": {"type": "string"} for n in range(40)}}


def edits() -> Iterator[list[dict[str, Any]]]:
    """Yield lists of edits."""
    for at in ("*" * 100_000 + "x", "*a" * 50_000, "*[a-z]*" * 9_000, "?*" * 20_000 + "z", "a" * 900_000, "[" * 90_000):
        yield [{"at": at, "op": "zero"}]
        yield [{"at": at[: len(at) // 64], "op": "zero"}] * 64
    yield [{"at": "*" * 8 + f"{n}*", "op": "zero"} for n in range(64)]
    yield [{"at": "*", "op": "zero", "position": list(range(200_000))}]
    yield [{"at": "*", "op": "zero", "position": [0, 1] * 900}] * 64
    yield [{"at": "*", "op": "add", "vector": [0.5] * 200_000}]


def slow() -> Iterator[Asked]:
    """Yield all requests."""
    chat = {"messages": [{"role": "user", "content": "the cat"}], "max_tokens": 8}
    for pattern in patterns():
        yield chat_of({"type": "string", "pattern": f"^{pattern}$"}, chat)
    for schema in schemas():
        yield chat_of(schema, chat)
    first = next(patterns())
    call = {"type": "object", "properties": {"a": {"type": "string", "pattern": first}}, "required": ["a"]}
    tool = {"type": "function", "function": {"name": "go", "parameters": call}}
    yield "/v1/chat/completions", {**chat, "tools": [tool], "tool_choice": "required"}
    for changes in edits():
        yield "/inspect/traces", {"text": "the cat sat", "edits": changes}


def chat_of(schema: dict[str, Any], chat: dict[str, Any]) -> Asked:
    """Return the request for an answer of a schema."""
    return "/v1/chat/completions", {
        **chat, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    }  # fmt: skip


def main() -> None:
    """Measure."""
    from http_wire import Wire
    from server_load import ask
    from server_process import ServerProcess
    from serving_toy import chat_model

    def waits(port: int, going: Any, told: Any) -> None:
        seconds = []
        while going.is_set():
            outcome = ask(port, {"prompt": "the cat", "max_tokens": 2})
            assert outcome.status == 200
            seconds.append(outcome.seconds)
            time.sleep(0.005)
        told.put(seconds)

    def sent(port: int, path: str, body: bytes) -> int:
        with Wire(port, 120) as wire:
            return wire.ask("POST", path, body).status

    with tempfile.TemporaryDirectory() as folder, ServerProcess(chat_model(Path(folder) / "model")) as server:
        asked = 3 * [(path, json.dumps(body).encode()) for path, body in slow()]
        if "bodies" in sys.argv:
            asked = 60 * sorted(asked[: len(asked) // 3], key=lambda one: -len(one[1]))[:3]
        alone, beside, own = list[float](), list[float](), multiprocessing.get_context("fork")
        for seconds, bodies in ((alone, []), (beside, asked)):
            going, told_of = own.Event(), own.SimpleQueue()
            going.set()
            client = own.Process(target=waits, args=(server.port, going, told_of))
            client.start()
            began = time.perf_counter()
            if bodies:
                with ThreadPoolExecutor(8) as pool:
                    told = Counter(pool.map(lambda one: sent(server.port, *one), bodies))
                print(f"{len(bodies)} slow requests in {time.perf_counter() - began:.0f} s: {dict(told)}")
            else:
                time.sleep(5)
            going.clear()
            seconds += told_of.get()
            client.join()
        for name, seconds in (("alone", alone), ("beside them", beside)):
            longest, usual = 1000 * max(seconds), 1000 * statistics.median(seconds)
            print(f"{name}: {len(seconds)} requests, the longest {longest:.0f} ms, half of them below {usual:.1f} ms")
    sys.exit(max(beside) > max(alone) + 0.1)


if __name__ == "__main__":
    main()
