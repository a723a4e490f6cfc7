"""Settings of the environment: what is set, what is empty, what is not there."""

import pytest

from orrery import settings


@pytest.mark.parametrize(("given", "key"), [("secret", "secret"), ("", None), (None, None)])
def test_there_is_a_key_where_one_is_set(given: str | None, key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORRERY_API_KEY", raising=False)
    if given is not None:
        monkeypatch.setenv("ORRERY_API_KEY", given)
    assert settings.api_key() == key
