"""``orrery quiz``: what the lectures ask, with computed answers."""

import json
import sys
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from orrery.cli.tables import print_table
from orrery.errors import UsageError
from orrery_course.quiz import Entry, Judgement, chosen, judge, lettered, shown


def quiz(
    *names: str,
    answers: Annotated[bool, Parameter(negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Ask the questions of the lectures, and say of a wrong answer where it comes from; without a name list them all.

    Every answer is computed when it is asked for. Options are chosen by their letters, numbers are typed with spaces
    between them; an empty line shows the answer, and the end of the input (Ctrl-D) ends the quiz.

    Args:
        names: Questions by name, or decks: S0, S1, S2, S3, S4.
        answers: Show the answers instead of asking.
        as_json: Print questions and answers as JSON.
    """
    asked = chosen(names)
    if as_json:
        print(json.dumps([_record(one) for one in asked], indent=2, ensure_ascii=False))
    elif answers:
        for one in asked:
            _put(one)
            _explain(one)
    elif not names:
        print_table(("deck", "name", "slide"), [(one.deck, one.name, one.slide) for one in asked])
        print("\nAsk with: orrery quiz S3, or orrery quiz swap; with --answers everything is shown")
    else:
        _ask(asked)


def _ask(asked: list[Entry]) -> None:
    """Ask one after the other, and say how many were right."""
    right = answered = 0
    for place, one in enumerate(asked, 1):
        print(f"{place} of {len(asked)}: ", end="")
        _put(one)
        judgement = _answered(one)
        if judgement is None:
            print()
            break
        answered += 1
        right += judgement.right
        print(judgement.said, end="\n" if judgement.said else "")
        _explain(one)
    print(f"{right} of {answered} right" + (f", {len(asked) - answered} not asked" if answered < len(asked) else ""))


def _answered(one: Entry) -> Judgement | None:
    """Read an answer until it is one, and judge it; nothing at the end of the input."""
    while True:
        print("> ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return None
        if not line.strip():
            return Judgement(False, "")
        try:
            found = judge(one.question, line)
        except UsageError as error:
            print(f"{error.message}: {error.hint}")
            continue
        return replace(found, said="\n".join(filter(None, ("Right." if found.right else "Not right.", found.said))))


def _put(one: Entry) -> None:
    print(f"{one.deck}, {one.slide} ({one.name})\n\n{one.question.asks}")
    options = lettered(one.question)
    for letter, option in options.items():
        print(f"  {letter}  {option}")
    if one.question.kind == "many":
        print("(several may hold: type all letters)")


def _explain(one: Entry) -> None:
    found = one.question
    print(f"\nAnswer: {shown(found)}\n{found.why}")
    for wrong in found.wrong:
        print(f"  not {wrong.says}: {wrong.because}")
    if found.try_this:
        print(f"See also: {found.try_this}")
    print()


def _record(one: Entry) -> dict[str, object]:
    found = one.question
    return {
        "name": one.name, "deck": one.deck, "slide": one.slide, "asks": found.asks, "kind": found.kind,
        "options": lettered(found), "right": list(found.right),
        "wrong": [{"says": wrong.says, "because": wrong.because} for wrong in found.wrong],
        "why": found.why, "try_this": found.try_this,
    }  # fmt: skip
