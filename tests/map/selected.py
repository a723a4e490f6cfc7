"""A plugin of pytest that keeps the asked tests of the files that were collected, and names those that are gone."""

import json
import os
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = json.loads(Path(os.environ["ORRERY_ASKED_TESTS"]).read_text())
    wanted, whole = set(asked["tests"]), asked["whole"]
    is_whole = {item.nodeid for item in items if any(Path(item.nodeid.split("::")[0]).is_relative_to(p) for p in whole)}
    kept = [item for item in items if item.nodeid in wanted | is_whole]
    gone = wanted - {item.nodeid for item in items}
    if gone:
        with Path(os.environ["ORRERY_GONE_TESTS"]).open("a") as stream:
            stream.write("".join(f"{test}\n" for test in sorted(gone)))
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept
