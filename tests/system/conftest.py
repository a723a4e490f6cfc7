"""What the tests of the page share: a browser, started once for each module."""

import pytest

from browser import chromium


@pytest.fixture(scope="module")
def browser():
    with chromium() as chrome:
        yield chrome
