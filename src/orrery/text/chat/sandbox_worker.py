"""The process that renders templates, run as a file by `sandbox`: requests and answers are lines of JSON."""

import contextlib
import json
import math
import sys
import time
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

MEMORY = 1 << 30


class GenerationTag(Extension):
    """``{% generation %}`` marks what the assistant writes: a variable is printed before it and one after it."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Put the two variables around the block."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        around = [nodes.Output([nodes.Name(f"generation_{end}", "load")], lineno=line) for end in ("open", "close")]
        # What is set inside does not reach outside, as in transformers.
        return [around[0], nodes.Scope(body, lineno=line), around[1]]


def environment() -> ImmutableSandboxedEnvironment:
    """Return the sandbox with what chat templates expect: trimmed blocks, loop controls, dates, plain JSON."""
    sandbox = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, "jinja2.ext.loopcontrols"]
    )
    sandbox.filters["tojson"] = _plain_json
    sandbox.globals["raise_exception"] = _raise
    sandbox.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    del sandbox.globals["lipsum"]
    return sandbox


@lru_cache(maxsize=16)
def compiled(source: str) -> Template:
    """Return the template; compiling costs more than rendering."""
    return environment().from_string(source)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Render one template with each of several sets of variables; for each its text, or what went wrong."""
    answers = [_rendered(request["template"], variables, request["limit"]) for variables in request["calls"]]
    return {"answers": answers}


def _rendered(source: str, variables: dict[str, Any], limit: int) -> dict[str, str]:
    try:
        pieces, size = [], 0
        for piece in compiled(source).generate(variables):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                return {"error": f"the chat template writes more than {limit:,} characters"}
        return {"text": "".join(pieces)}
    except MemoryError:
        return {"error": f"the chat template needs more than {MEMORY >> 20:,} MiB"}
    except TemplateError as error:
        return {"error": f"the chat template says: {str(error)[:500]}"}
    except Exception as error:
        # A template can raise whatever Python's operators do; the worker lives on.
        return {"error": f"the chat template fails: {type(error).__name__}: {str(error)[:500]}"}


def main() -> None:
    """Answer requests until the other end closes."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        _allow(request["seconds"])
        print(json.dumps(answer(request)), flush=True)


def _allow(seconds: float) -> None:
    """Let the system end this process after so many further seconds of its own computing, rounded up."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def _plain_json(value: Any, ensure_ascii: bool = False, indent: int | None = None,
                separators: tuple[str, str] | None = None, sort_keys: bool = False) -> str:  # fmt: skip
    # Jinja's own filter escapes for HTML, which a model never saw.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


if __name__ == "__main__":
    main()
