"""From a problem and what a model wrote to a program and its tests, in the formats of HumanEval and of MBPP."""

import ast
from collections.abc import Sequence
from textwrap import dedent

from orrery.errors import DataError
from orrery.sandbox.verdict import Exam

HUMANEVAL_STOPS = ("\nclass", "\ndef", "\n#", "\nif", "\nprint")
MBPP_STOPS = ("[DONE]",)


def humaneval_exam(prompt: str, completion: str, test: str, entry_point: str) -> Exam:
    """Return the program ``prompt + completion`` and its tests, ``check(entry_point)``.

    Helper functions and imports of the prompt are the tests' own: the program cannot change what they do.

    Raises:
        DataError: the prompt is no Python, or does not define ``entry_point``.
    """
    tests = f"{helpers(prompt, entry_point)}\n{test}\ncheck({entry_point})\n"
    return Exam(prompt + completion, tests, (entry_point,))


def helpers(prompt: str, entry_point: str) -> str:
    """Return what a HumanEval prompt defines besides the function that is to be written.

    Raises:
        DataError: the prompt is no Python, or does not define that function.
    """
    for end in ("", "\n    pass\n"):
        try:
            tree = ast.parse(prompt + end)
        except SyntaxError:
            continue
        others = [node for node in tree.body if getattr(node, "name", None) != entry_point]
        if len(others) < len(tree.body):
            return ast.unparse(ast.Module(others, []))
    raise DataError(f"a prompt that does not define {entry_point!r}", "give the code up to the function's first line")


def mbpp_exam(completion: str, tests: Sequence[str], code: str, setup: str = "") -> Exam:
    """Return the program that a model wrote and its tests, with the imports of the right ``code`` as their own.

    Raises:
        DataError: the right code is no Python, or defines nothing.
    """
    try:
        tree = ast.parse(dedent(code))
    except (SyntaxError, ValueError) as error:
        raise DataError(f"the right code is no Python: {error}", "look at its column `code`") from None
    defined = [getattr(node, "name", None) for node in tree.body]
    names = tuple(name for name in defined if name is not None)
    if not names:
        raise DataError("the right code defines no function or class", "look at its column `code`")
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return Exam(completion, "\n".join([*imports, setup, *tests]) + "\n", names)


def code_of(answer: str) -> str:
    """Return the code of an answer: what stands in its first fence of three backticks, or all of it."""
    _, fence, rest = answer.partition("```")
    if not fence:
        return answer
    first, _, body = rest.partition("\n")
    return (body if first.strip().isalpha() or not first.strip() else rest).partition("```")[0]
