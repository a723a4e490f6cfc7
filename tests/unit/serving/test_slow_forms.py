"""Answers of forms that are made to be slow, asked for at once: refused by the field, and nobody waits for them."""

import ast
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orrery.generation import form_process
from orrery.serving import served
from serving_toy import chat_model, post, running
from slow_requests import slow

CHAT = "/v1/chat/completions"
ISSUE = {"type": "string", "pattern": "^((a{1000}){1000}){1000}$"}
BODY = {"messages": [{"role": "user", "content": "the cat"}], "max_tokens": 4}


def of_schema(schema: object) -> dict[str, object]:
    return {**BODY, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model", context=1024)) as server:
        yield server


def test_slow_forms_are_refused_by_name_and_others_are_answered_meanwhile(toy):
    """Six of them took every thread that prepares requests, and then the engine's, for 23 seconds."""
    call = {"type": "object", "properties": {"a": ISSUE}, "required": ["a"]}
    tools = {"tools": [{"type": "function", "function": {"name": "go", "parameters": call}}], "tool_choice": "required"}
    bodies = [of_schema(ISSUE)] * 6 + [{**BODY, **tools}]
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(post, toy, body, CHAT) for body in bodies]
        answered = 0
        while not all(one.done() for one in asked):
            assert post(toy, {"prompt": "the cat", "max_tokens": 2})[0] == 200
            assert post(toy, of_schema({"enum": ["the", "cat"]}), CHAT)[0] == 200
            answered += 1
        told = [one.result() for one in asked]
    assert answered >= 3
    for number, (status, said) in enumerate(told):
        assert status == 400
        assert said["error"]["message"].startswith("this form takes more than 2 s to begin with: simplify it")
        assert said["error"]["param"] == ("response_format" if number < 7 else "tools")


def test_a_form_is_made_ready_by_threads_of_its_own(toy, monkeypatch):
    names: list[str] = []
    held = toy.served.held
    monkeypatch.setattr(
        toy.served, "held", lambda *given: names.append(threading.current_thread().name) or held(*given)
    )
    assert post(toy, of_schema({"enum": ["the", "cat"]}), CHAT)[0] == 200
    assert post(toy, {**BODY, "response_format": {"type": "json_object"}}, CHAT)[0] == 200
    assert len(names) == 2
    assert all(name.startswith("orrery-forming") for name in names)
    assert served.FORMING > served.PREPARING


def test_a_form_that_becomes_slow_ends_its_own_answer_with_a_reason(toy, monkeypatch):
    """Its first tokens are found at once, those behind them never."""
    schema = {"type": "object", "properties": {"a": ISSUE}, "required": ["a"], "additionalProperties": False}
    began = time.monotonic()
    status, said = post(toy, of_schema(schema), CHAT)
    assert time.monotonic() - began < form_process.BEGINNING + form_process.FOLLOWING + 2
    assert status == 400
    assert "this form" in said["error"]["message"]


@pytest.mark.slow
@pytest.mark.alone
def test_nobody_waits_for_sixty_slow_requests():
    """The program that measures it says by how much: 100 ms on a machine that does nothing else."""
    assert len(list(slow())) >= 60
    program = Path(__file__).parents[2] / "slow_requests.py"
    said = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300)
    assert not said.stderr
    statuses, longest = re.search(r"in \d+ s: (\{.*\})", said.stdout), re.findall(r"the longest (\d+) ms", said.stdout)
    assert statuses is not None
    assert sum(ast.literal_eval(statuses[1]).values()) == 180
    assert ast.literal_eval(statuses[1]).keys() <= {200, 400}
    assert int(longest[1]) < 500, said.stdout
