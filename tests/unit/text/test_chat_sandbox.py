"""Hostile templates are stopped, said to be, and leave the next rendering unharmed."""

import os
import signal
import time
from threading import Timer

import pytest

from orrery.errors import DataError, ModelFileError
from orrery.text.chat import sandbox

HOSTILE = {
    # On a busy machine the time runs out first.
    "a huge string": ("{{ 'a' * 50000000 }}", "more than|took over 2 s"),
    "a huger string": ("{{ 'a' * 50000000000 }}", "more than"),
    "many strings": ("{% for i in range(90000) %}{{ 'a' * 1000 }}{% endfor %}", "writes more than"),
    "nested ranges": (
        "{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(99999) %}{% endfor %}"
        "{% endfor %}{% endfor %}",
        "took over 2 s",
    ),
    "a large power": ("{% set x = 9 ** (9 ** 9) %}", "took over 2 s"),
    "a power of characters": ("{% set ns = namespace(a='a') %}{% for i in range(99) %}{% set ns.a = ns.a + ns.a %}"
                              "{% endfor %}", "more than|took over 2 s"),
    "recursion": ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
    "attributes": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "unsafe|undefined"),
    "globals": ("{{ cycler.__init__.__globals__.os.system('true') }}", "unsafe|undefined"),
    "a format": ("{{ '{0.__class__.__init__.__globals__}'.format(cycler) }}", "unsafe|no attribute"),
    "changing a message": ("{{ messages.append(1) }}", "unsafe"),
    "a long range": ("{{ range(10 ** 9) | list }}", "[Rr]ange"),
    "a file": ("{% include '/etc/passwd' %}", "loader"),
    "a broken tag": ("{% if %}", "template says"),
    "its own refusal": ("{{ raise_exception('no system message') }}", "no system message"),
    "a large source": ("a" * 65537, "larger than 64 KiB"),
}  # fmt: skip


def render(template):
    return sandbox.render(template, [{"messages": [{"content": "hi"}]}])


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_template_is_refused_in_time(hostile):
    template, message = HOSTILE[hostile]
    render("warm")
    before = time.monotonic()
    with pytest.raises(ModelFileError, match=message) as error:
        render(template)
    assert time.monotonic() - before < sandbox.PATIENCE * sandbox.SECONDS + 3  # two seconds where nothing else runs
    assert "one of Orrery's formats" in error.value.hint
    assert render("{{ messages[0].content }}") == ["hi"]


def test_a_process_that_waits_for_its_turn_is_not_ended():
    assert render("warm") == ["warm"]
    process = sandbox._worker()._process.pid
    os.kill(process, signal.SIGSTOP)
    Timer(0.8, os.kill, (process, signal.SIGCONT)).start()
    assert sandbox.render("{{ x }}", [{"x": "late"}], seconds=0.5) == ["late"]


def test_the_limit_of_the_output_grows_with_the_messages():
    text = "é" * 2_000_000
    assert sandbox.render("{{ x }}", [{"x": text}]) == [text]


def test_templates_find_no_environment_and_variables_are_json(monkeypatch):
    with pytest.raises(DataError, match="plain JSON"):
        sandbox.render("x", [{"x": float("nan")}])
    assert render("{{ strftime_now('%Y') | int > 2000 }}{{ lipsum is defined }}") == ["TrueFalse"]
    assert render("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == ["01"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_a_worker_of_its_own():
    render("warm")
    child = os.fork()
    if child == 0:
        os._exit(0 if render("child") == ["child"] else 1)
    assert render("parent") == ["parent"]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
