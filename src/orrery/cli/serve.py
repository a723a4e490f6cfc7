"""``orrery serve``: answer requests over HTTP, as OpenAI's clients make them."""

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.numbers import COUNT, COUNT_OR_NONE, PORT
from orrery.cli.places import EVIDENCE, MODEL, TEMPLATE, check_adapters
from orrery.errors import DataError, MachineError, UsageError
from orrery.settings import api_key, install

if TYPE_CHECKING:
    from pydantic import SecretStr

    from orrery.language_model.model import LanguageModel
    from orrery.serving.settings import ServerSettings


def serve(
    model: Annotated[str, MODEL],
    /,
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, PORT] = 8000,
    name: str | None = None,
    template: Annotated[str | None, TEMPLATE] = None,
    adapter: Annotated[list[str] | None, Parameter(negative=())] = None,
    api_key_file: Path | None = None,
    allowed_host: Annotated[list[str] | None, Parameter(negative=())] = None,
    cors_origin: str | None = None,
    most_rows: Annotated[int, COUNT] = 16,
    most_tokens: Annotated[int | None, COUNT] = None,
    kept_tokens: Annotated[int | None, COUNT_OR_NONE] = None,
    queue: Annotated[int, COUNT_OR_NONE] = 64,
    max_body: Annotated[int, COUNT] = 2 << 20,
    grace: Annotated[int, COUNT_OR_NONE] = 10,
    inspect: bool | None = None,
    laws: Annotated[Path | None, EVIDENCE] = None,
    deterministic: Annotated[bool, Parameter(negative=())] = False,
    device: str = "auto",
    dtype: str = "auto",
    kernel: str | None = None,
) -> int:
    """Serve a model over HTTP: completions, chats, tokens, metrics, as OpenAI's, Anthropic's and Ollama's clients ask.

    Only this machine is answered, unless --host says otherwise, which needs a key (--api-key-file, ORRERY_API_KEY).
    SIGTERM lets answers under way come to their end.

    Args:
        model: A run, a checkpoint, a Hugging Face folder, a GGUF file, or hf:org/name@revision.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        name: What clients call the model; by default that of its run or folder.
        template: chatml, gemma, llama-2, llama-3, mistral, zephyr, or a Jinja file; by default the model's own.
        adapter: NAME=FOLDER, a LoRA over the model, which clients ask for by that name; may be given several times.
        api_key_file: A file with the key that clients have to show.
        allowed_host: A name under which clients address the server; may be given several times.
        cors_origin: The one web page that browsers may let call the server, such as https://chat.example.
        most_rows: Answers written at once.
        most_tokens: Tokens of all rows together; bounds the memory. By default as many as --most-rows contexts.
        kept_tokens: Tokens of prompts that are kept for those that begin alike; by default one context, 0 keeps none.
        queue: Requests that may wait for a row; more are refused with 429.
        max_body: Bytes of a request.
        grace: Seconds that answers under way have after SIGTERM.
        inspect: Serve the page, and let clients look inside; by default where only this machine can reach the server.
        laws: What orrery verify --json wrote, for the page's screen Trust; by default laws.json of the run.
        deterministic: Compute each row as it is alone, so that no last bit of an answer depends on who asks beside.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
        kernel: How one token after another is computed: auto (compiled where that can be), eager or compiled.
    """
    from orrery.serving.settings import Safety, ServerSettings

    settings = ServerSettings(
        host=host, port=port, api_key=_key(api_key_file), allowed_hosts=tuple(allowed_host or ()),
        cors_origin=cors_origin, most_rows=most_rows, most_tokens=most_tokens, kept_tokens=kept_tokens, queue=queue,
        grace=grace, inspect=inspect, laws=laws, deterministic=deterministic, safety=Safety(max_body=max_body),
    )  # fmt: skip
    named = check_adapters(_folders(adapter or ()))
    return _serve(partial(_load, model, device, dtype, kernel, template), settings, name, named)


def _serve(
    loaded: Callable[[], "LanguageModel"], settings: "ServerSettings", name: str | None, adapters: dict[str, str]
) -> int:
    """Listen, load, serve."""
    settings.check()
    if settings.laws is not None:
        from orrery.page.views._laws import read_report

        read_report(settings.laws)
    check_packages()
    from orrery.serving.run import listen, run

    with listen(settings) as listener:  # before the model is read: a port that is taken is told at once
        from orrery.exchange.reading.adapters import read_adapters
        from orrery.serving.served import Served

        lm = loaded()
        served = Served(lm, settings, name, read_adapters(lm, adapters) if adapters else None)
        _tell_templates(lm, adapters)
        return run(served, listener, lambda line: print(line, flush=True))


def _tell_templates(lm: "LanguageModel", adapters: dict[str, str]) -> None:
    """Say of adapters whose folder has a chat template of its own that the model's is the one that is used."""
    from orrery.text.chat.folder import read_templates

    for name, folder in adapters.items():
        if (own := read_templates(Path(folder))) and own != lm.stored.chat:
            also = "--template takes a Jinja file for all"
            print(f"{name}: chats are written with the model's template, not with that in {folder}; {also}", flush=True)


def check_packages() -> None:
    """Refuse to serve without the packages of the extra ``serve``.

    Raises:
        MachineError: one is missing.
    """
    for package in ("fastapi", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise MachineError(f"a server needs the package {package}", install("serve"))


def _load(model: str, device: str, dtype: str, kernel: str | None, template: str | None) -> "LanguageModel":
    from orrery.language_model.load import load

    lm = load(model, device, dtype, kernel=kernel)
    return lm if template is None else lm.with_template(template)


def _folders(given: Sequence[str]) -> dict[str, str]:
    """Return the folders of adapters by the names that clients give."""
    folders: dict[str, str] = {}
    for one in given:
        name, equals, folder = one.partition("=")
        if not (name and equals and folder):
            raise UsageError(f"--adapter {one!r} is no name with a folder", "write --adapter NAME=FOLDER")
        if name in folders:
            raise UsageError(f"two adapters are called {name!r}", "give each a name of its own")
        folders[name] = folder
    return folders


def _key(file: Path | None) -> "SecretStr | None":
    """Return the key, from the file or the environment."""
    from pydantic import SecretStr

    if file is None:
        return None if (key := api_key()) is None else SecretStr(key)
    try:
        return SecretStr(file.read_text(encoding="utf-8").strip())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise DataError(f"cannot read {file}: {reason}", "give a file with the key as its one line") from error
