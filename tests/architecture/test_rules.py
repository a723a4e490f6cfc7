"""The source keeps every rule of the house, and each rule is shown to find the fault it is there for."""

import pytest

from architecture import rules
from architecture.rules import Module

MODULES = rules.source_modules()


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_source_keeps_rule(rule: rules.Rule) -> None:
    assert MODULES
    assert rule(MODULES) == []


def _lines(count: int, indent: str = "") -> str:
    return "\n".join(f"{indent}x = {n}" for n in range(count)) + "\n"


BROKEN = {
    rules.no_path_from_a_setting: [
        "class A:\n    def forward(self, x):\n        return -x if self.spec.flip else x\n",
        "class A:\n    def mix(self, x):\n        if x and self.spec:\n            return x\n",
        "class A:\n    def mix(self, x):\n        return [y for y in x if self.spec.keep]\n",
    ],
    rules.no_type_question_in_forward: [
        "class A:\n    def forward(self, x):\n        return isinstance(x, int)\n",
        "class A:\n    def forward(self, x):\n        return getattr(self, 'bias', x)\n",
    ],
    rules.no_question_of_the_assembly: [
        "def f(model):\n    return isinstance(model, Decoder)\n",
        "def f(spec):\n    return isinstance(spec, Encoder.Spec | EncoderDecoder.Spec)\n",
    ],
    rules.within_line_budgets: [
        _lines(rules.FILE_LINES + 1),
        "def f():\n" + _lines(rules.FUNCTION_LINES, "    "),
        "class A:\n    def forward(self):\n" + _lines(rules.FORWARD_LINES, "        "),
    ],
    rules.specs_are_small: [
        "class Spec:\n" + "\n".join(f"    field_{n}: int" for n in range(rules.SPEC_FIELDS + 1)),
    ],
    rules.classes_are_abstract_or_final: [
        "class A:\n    def f(self): ...\nclass B(A): ...\n",
        "class A(ABC): ...\nclass B(A): ...\nclass C(B): ...\n",
        "class A:\n    class Inner:\n        x: int\nclass B(A.Inner): ...\n",
        "from orrery.nn.bad import A as Base\nclass A: ...\nclass B(Base): ...\n",
        "class A(BaseModel):\n    steps: int\nclass B(A): ...\n",
    ],
    rules.modules_say_what_they_hold: ["x = 1\n"],
    rules.bricks_are_documented: [
        "def f(): ...\n",
        'class A:\n    """A layer."""\n    def forward(self, x): ...\n',
    ],
    rules.bricks_need_only_torch: [
        "import numpy as np\n",
        "from transformers import AutoModel\n",
        "from orrery.text import tokenizers\n",
    ],
    rules.inits_are_lazy: ["import torch\n", "from orrery.nn.spec import Spec\n", "def helper(): ...\n"],
}


@pytest.mark.parametrize(
    ("rule", "snippet"), [(rule, snippet) for rule, snippets in BROKEN.items() for snippet in snippets]
)
def test_rule_finds_fault(rule: rules.Rule, snippet: str) -> None:
    assert rule([Module("orrery.nn.bad", snippet, is_init=rule is rules.inits_are_lazy)])


def test_every_rule_is_shown_to_fail() -> None:
    assert {*BROKEN, rules.few_rooms_and_few_shared_names} == set(rules.RULES)


def test_too_many_rooms_and_too_many_shared_names_are_found() -> None:
    many = [Module(f"orrery.room{n}.a", "") for n in range(rules.ROOMS + 1)]
    assert rules.few_rooms_and_few_shared_names(many) == ["31 packages: at most 30"]
    classes = "".join(f"class A{n}:\n    pass\n" for n in range(rules.SHARED_NAMES + 1))
    (told,) = rules.few_rooms_and_few_shared_names([Module("orrery.nn.a", classes), Module("orrery.nn.b", classes)])
    assert told.startswith("61 shared names, at most 60: A0 (2), ")


def test_calls_that_climb_are_counted() -> None:
    text = "def a():\n    pass\ndef b():\n    a()\ndef c():\n    b()\n    d()\ndef d():\n    pass\n"
    assert rules.climbing(Module("m", text)) == ["m.c", "m.b", "m.a"]


GOOD = '''"""A module with every exception that the rules make."""
from abc import ABC, abstractmethod

class Fault(ValueError):
    """Wrong."""

class WorseFault(Fault):
    """Worse."""

class Closed(BaseModel):
    """No unknown field."""
    model_config = {"extra": "forbid"}

class Settings(Closed):
    """Some settings."""
    steps: int

class Mixer(nn.Module, ABC):
    """y = mix(x)"""
    @abstractmethod
    def forward(self, x): ...

class NamedMixer(Mixer):
    """y = mix(x), still without a forward of its own."""
    name: str

class Mean(NamedMixer):
    """y = mean(x)"""
    def forward(self, x):
        """Say it at length,

        over several lines.
        """
        # A comment is free.
        return x * self.spec.scale
'''


def test_rules_accept_what_the_house_does() -> None:
    assert [fault for rule in rules.RULES for fault in rule([Module("orrery.nn.good", GOOD)])] == []


def test_only_code_is_counted() -> None:
    module = Module("orrery.nn.good", GOOD)
    forward = [f for f in module.nodes(rules.ast.FunctionDef) if f.name == "forward"][-1]
    assert module.lines_of(forward) == 2
