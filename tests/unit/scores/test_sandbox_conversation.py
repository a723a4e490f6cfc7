"""The program and its tests talk over a channel: what tests may ask, and how what they find is named.

Here both are in one process; that they are apart and closed off is in ``test_sandbox.py``.
"""

import json
import socket
import sys
import threading

import pytest

from orrery.sandbox import first, plain, program, tests

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is of Linux")


@pytest.fixture
def examined(monkeypatch, tmp_path):
    """Run a program in a thread, its tests in this one, and return how the first process names what they find."""
    monkeypatch.setattr(tests.sys, "setrecursionlimit", lambda most: None)
    monkeypatch.setattr(program, "MOST_ITEMS", 4)
    for name in (program.NAME, tests.NAME):
        monkeypatch.setitem(sys.modules, name, None)

    def examine(code, asked, names=()):
        ours, theirs = socket.socketpair()
        exam = tmp_path / "exam"
        exam.write_text(json.dumps({"tests": asked, "names": names}))

        def serve():
            try:
                program.Program(theirs.fileno()).serve(code)
            except EOFError:
                theirs.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with exam.open("rb") as file:
                return first._examined(ours.fileno(), file.fileno(), 0)
        finally:
            ours.close()
            thread.join()

    return examine


PROGRAM = """
import math as mathematics
_hidden = 1
def abs(x): return 0
def plus(x, *, more=1): return x + more
def fill(a, b, c): a.append(1); b["k"] = 2; c.add(3)
def raises(): raise KeyError("no such key")
def leaves(): raise SystemExit(2)
def endless():
    while True: yield 1
class Box:
    size = 3
    def __len__(self): return self.size
    def __getitem__(self, key): return key * 2
    def itself(self, other): return other is self
box = Box()
"""


@pytest.mark.parametrize(
    "asked",
    [
        "assert plus(1) == 2 and plus(1, more=4) == 5 and _hidden == 1",
        "assert abs(-3) == 3",
        "a, b, c = [], {}, set()\nfill(a, b, c)\nassert (a, b, c) == ([1], {'k': 2}, {3})",
        "assert len(box) == 3 == box.size and box['ab'] == 'abab' and box.itself(box) and not box.itself(Box())",
        "assert list(endless()) == [1, 1, 1, 1]",
        "import math\nassert mathematics is math",
        "try: raises()\nexcept KeyError as error: assert \"'no such key' (program, line 7)\" in error.args",
        "assert repr(box) == '<Box of the program>' and box != Box()",
    ],
)
def test_tests_that_hold_pass(asked, examined):
    assert examined(PROGRAM, asked) == {"outcome": "passed", "detail": ""}


@pytest.mark.parametrize(
    ("asked", "detail"),
    [
        ("x = 1\nassert plus(1) == 3", "AssertionError (tests, line 2: assert plus(1) == 3)"),
        ("raises()", "KeyError: \"'no such key' (program, line 7)\" (tests, line 1: raises())"),
        ("leaves()", "SystemExit: 2 (program, line 8) (tests, line 1: leaves()): the program ended before its tests"),
        ("missing", "NameError: name 'missing' is not defined (tests, line 1: missing)"),
        ("box.no_such", "AttributeError: 'Box' object has no attribute 'no_such' (tests, line 1: box.no_such)"),
        ("plus(object())", "TypeError: the tests give the program a object: only plain values and its own objects go"),
    ],
)
def test_tests_that_do_not_hold_say_where(asked, detail, examined):
    verdict = examined(PROGRAM, asked)
    assert verdict["outcome"] == "failed"
    assert verdict["detail"].startswith(detail)


def test_only_the_names_that_are_asked_for_are_taken(examined):
    assert examined(PROGRAM, "assert abs(-3) == 0", ["abs"])["outcome"] == "passed"
    assert "'plus' is not defined" in examined(PROGRAM, "plus(1)", ["abs"])["detail"]


@pytest.mark.parametrize(("code", "said"), [("def f(x) return", "SyntaxError"), ("1 / 0", "ZeroDivisionError")])
def test_code_that_cannot_run_is_a_failure(code, said, examined):
    verdict = examined(f"\n{code}", "pass")
    assert verdict["outcome"] == "failed"
    assert verdict["detail"].startswith(said)
    assert "(program, line 2)" in verdict["detail"]


def test_memory_that_is_used_up_is_no_failure_of_a_test(examined):
    assert examined("def f(): raise MemoryError", "f()")["outcome"] == "memory"


@pytest.mark.parametrize("said", [b"", b"\xff" * 64, plain.pack(["value", 3])])
def test_a_program_that_talks_nonsense_has_gone(said, monkeypatch):
    monkeypatch.setattr(tests.sys, "setrecursionlimit", lambda most: None)
    ours, theirs = socket.socketpair()
    theirs.sendall(said)
    theirs.close()
    with ours, pytest.raises(tests.Gone):
        tests.examine(ours.fileno(), "pass", ())
