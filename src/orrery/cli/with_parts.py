"""``orrery with``: a command line that knows the parts of a program's own file."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orrery.cli.own_parts import make_known


def with_parts(file: Path, /, *line: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """Carry out a command line that knows what a Python file registers: tasks, objectives, sources, heads, families.

    orrery with shouting.py finetune shouting --from MODEL --train FILE, and then orrery with shouting.py serve RUN. The
    file is imported as Python imports it, so give only one that you would run. Without a verb, the verbs are listed.

    Args:
        file: A Python file that registers parts.
        line: The verb and what it takes.
    """
    from orrery.cli.program import run

    make_known(file)
    return run(line)
