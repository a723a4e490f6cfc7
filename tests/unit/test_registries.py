"""Parts that a test makes known are forgotten behind it, and no registry is left out of that."""

import re
from pathlib import Path
from typing import ClassVar

import orrery
from orrery.objectives import OBJECTIVES, Objective
from registries import REGISTRIES, forget_made_up

_MADE = re.compile(r"^(\w+)(?:: [^=\n]+)? = Registry\(", re.MULTILINE)


def test_every_registry_of_the_package_is_known():
    source = Path(orrery.__file__).parent
    registries = {
        ".".join(("orrery", *path.relative_to(source).with_suffix("").parts)): name
        for path in source.rglob("*.py")
        for name in _MADE.findall(path.read_text("utf-8"))
    }
    assert registries == REGISTRIES


def test_a_part_of_a_tests_body_is_forgotten_and_those_of_modules_stay():
    OBJECTIVES.find("causal")
    before = OBJECTIVES.names()

    class Made(Objective):
        kind: ClassVar[str] = "made_up_here"

    OBJECTIVES.register(Made)
    assert OBJECTIVES.names() == sorted([*before, "made_up_here"])
    forget_made_up()
    assert OBJECTIVES.names() == before
    assert OBJECTIVES.find("causal").__module__ == "orrery.objectives.causal"
