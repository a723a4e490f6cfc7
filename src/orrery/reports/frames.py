"""Results as tables of pandas, where it is installed."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.errors import MachineError


def frame(rows: Sequence[Mapping[str, Any]], index: str | None = None) -> Any:
    """Return rows as a ``pandas.DataFrame``: a column for each name, empty where a row has none.

    Args:
        rows: by the names of columns.
        index: the column that names the rows; by default they are numbered.

    Raises:
        MachineError: pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        message = "a table of pandas needs the package pandas, which is not installed"
        raise MachineError(message, "install it beside this package, or take the rows as they are") from None
    made = pandas.DataFrame([dict(row) for row in rows])
    return made if index is None or index not in made else made.set_index(index)
