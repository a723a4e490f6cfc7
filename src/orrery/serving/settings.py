"""What the server is told: where it listens, whom it lets in, and how much it takes on at once."""

import ipaddress
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from orrery.errors import UsageError

MEBIBYTE = 1 << 20

Port = Annotated[int, Field(ge=0, le=65_535)]
Places = Annotated[int, Field(ge=1, le=4_096)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Size = Annotated[int, Field(ge=1_024, le=1 << 30)]


class Safety(BaseModel):
    """What one request, or one connection, may take.

    Attributes:
        max_body: bytes of a request's body.
        max_headers: bytes of a request's line and headers.
        connections: open at once; one more is closed.
        choices: answers that one request may ask for, prompts times ``n``.
        tokens: prompt and answer tokens of one request together, over all of its choices.
        read_timeout: seconds for the headers, and for the body, of a request.
        write_timeout: seconds that a reader may leave what was sent to it unread.
        keep_alive: seconds that a connection may stay open between two requests.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    max_body: Size = 2 * MEBIBYTE
    max_headers: Size = 64 << 10
    connections: Annotated[int, Field(ge=1, le=65_536)] = 1_024
    choices: Places = 128
    tokens: Annotated[int, Field(ge=1)] = 1_000_000
    read_timeout: Seconds = 10.0
    write_timeout: Seconds = 30.0
    keep_alive: Seconds = 30.0


class ServerSettings(BaseModel):
    """How a model is served.

    Attributes:
        host: the address that is listened on.
        port: 0 takes a free one.
        api_key: what clients have to show; needed where others than this machine can reach the server.
        allowed_hosts: names under which clients may address it, beside this machine's own.
        cors_origin: the one web page that browsers may let call it, such as ``https://chat.example``.
        most_rows: answers written at once.
        most_tokens: of all rows together, which bounds the memory; by default ``most_rows`` full contexts.
        kept_tokens: of prompts whose session is kept for those that begin alike; by default one context, 0 keeps none.
        queue: requests that may wait for a row; more are refused with 429.
        grace: seconds that answers under way have once the server is told to stop.
        inspect: clients may look inside the model, and the page is served; by default where this machine alone can.
        laws: a file of ``orrery verify --json`` that the page shows; by default the one of the run.
        deterministic: each row is computed as it is alone, so that no last bit of an answer depends on who asks beside.
        safety: what one request or connection may take.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Port = 8_000
    api_key: SecretStr | None = None
    allowed_hosts: tuple[str, ...] = ()
    cors_origin: str | None = None
    most_rows: Places = 16
    most_tokens: Annotated[int, Field(ge=1)] | None = None
    kept_tokens: Annotated[int, Field(ge=0)] | None = None
    queue: Annotated[int, Field(ge=0, le=100_000)] = 64
    grace: Annotated[float, Field(ge=0, le=86_400)] = 10.0
    inspect: bool | None = None
    laws: Path | None = None
    deterministic: bool = False
    safety: Safety = Safety()

    @property
    def inspects(self) -> bool:
        """Whether clients may look inside."""
        return is_loopback(self.host) if self.inspect is None else self.inspect

    def check(self) -> None:
        """Refuse a server that strangers could use.

        Raises:
            UsageError: others than this machine can reach it and there is no key, or the key is none.
        """
        key = None if self.api_key is None else self.api_key.get_secret_value()
        if key is None and not is_loopback(self.host):
            raise UsageError(
                f"{self.host} can be reached by others, and there is no key",
                "set ORRERY_API_KEY or give --api-key-file, or listen on 127.0.0.1",
            )
        if key is not None and not (key.isascii() and key.isprintable() and key.strip() == key and len(key) >= 8):
            raise UsageError(
                "the API key is no key", "give at least 8 printable ASCII characters without blanks around"
            )


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's own, which no other can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
