"""Bad requests, each with the status that it must get and the parameter that the error must name."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from http_wire import Wire, raw_request

MODEL = "@MODEL@"
"""Stands in a case for the name of the model that is served."""

COMPLETIONS, CHAT, EMBEDDINGS = "/v1/completions", "/v1/chat/completions", "/v1/embeddings"
SHARED = (COMPLETIONS, CHAT, "/v1/models", "/v1/nothing", "/health")
"""Paths that every server of this kind has, or lacks."""


@dataclass(frozen=True)
class Case:
    """A request and what must come of it.

    Attributes:
        name: what is wrong with it.
        content: JSON, or the body's own bytes; nothing sends no body.
        param: the parameter that the error names; ``None`` where none is at fault.
        code: of the error, where it is one that clients look at.
        status: any of these.
        headers: beside or in place of the usual; ``None`` leaves one out.
        raw: all bytes of the request, in place of everything else; ``@PORT@`` is the port.
        closes: the server may end the connection after it.
        valid: OpenAI's API knows what is asked for, and a server may do it: it is wrong for the model served here.
    """

    name: str
    content: Any = None
    param: str | None = None
    code: str | None = None
    status: tuple[int, ...] = (400,)
    path: str = COMPLETIONS
    method: str = "POST"
    headers: Mapping[str, str | None] = field(default_factory=dict)
    raw: bytes | None = None
    closes: bool = False
    valid: bool = False

    def bytes(self, model: str, port: int) -> bytes:
        """Return the request as it goes over the wire."""
        if self.raw is not None:
            return self.raw.replace(b"@PORT@", str(port).encode()).replace(MODEL.encode(), model.encode())
        content = self.content
        if content is not None and not isinstance(content, bytes):
            content = json.dumps(content).encode()
        if content is not None:
            content = content.replace(MODEL.encode(), json.dumps(model)[1:-1].encode())
        return raw_request(self.method, self.path, port, content, self.headers)


def completion(name: str, param: str | None = None, code: str | None = None, **fields: Any) -> Case:
    """Return a completion that is right but for these fields; they are named by their keys where ``param`` is not."""
    content = {"model": MODEL, "prompt": "the cat", "max_tokens": 2, **fields}
    return Case(
        name, {key: value for key, value in content.items() if value is not MISSING}, param or _only(fields), code
    )


def chat(name: str, param: str | None = None, code: str | None = None, **fields: Any) -> Case:
    """Return a chat that is right but for these fields."""
    content = {"model": MODEL, "messages": [{"role": "user", "content": "the cat"}], "max_tokens": 2, **fields}
    content = {key: value for key, value in content.items() if value is not MISSING}
    return Case(name, content, param or _only(fields), code, path=CHAT)


def valid(case: Case) -> Case:
    """Return a case that asks for what OpenAI's API knows."""
    return replace(case, valid=True)


def _only(fields: Mapping[str, Any]) -> str:
    (name,) = fields
    return name


def body(name: str, raw: bytes, param: str | None = None, **more: Any) -> Case:
    """Return a completion whose body is these bytes."""
    return Case(name, raw, param, **more)


def message(name: str, param: str, *messages: Any) -> Case:
    """Return a chat of these messages."""
    return chat(name, f"messages{param}", messages=list(messages))


MISSING = object()
USER = {"role": "user", "content": "the cat"}
DEEP = 100_000
LITERAL = '{"model": "@MODEL@", "%s": %s}'
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def literal(name: str, key: str, text: str) -> Case:
    """Return a completion with a literal that no encoder of JSON writes: no JSON, so no parameter is at fault."""
    return body(name, (LITERAL % (key, text)).encode())


NOT_JSON = [
    body("an empty body", b""),
    body("no body, no length", b"", headers={"Content-Length": "0"}),
    body("half of an object", b'{"model": "x"'),
    body("an object and more", b'{"model": "x", "prompt": "y"} trailing'),
    body("a list", b"[]"),
    body("a list of an object", b'[{"model": "x"}]'),
    body("a string", b'"the cat"'),
    body("a number", b"17"),
    body("null", b"null"),
    body("true", b"true"),
    body("single quotes", b"{'model': 'x', 'prompt': 'y'}"),
    body("a comment", b'{"model": "x" /* y */}'),
    body("a trailing comma", b'{"model": "x",}'),
    body("100,000 open lists", b"[" * DEEP),
    body("100,000 lists", b"[" * DEEP + b"]" * DEEP),
    body("100,000 objects", b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    body("a prompt of 5,000 lists", b'{"model": "@MODEL@", "prompt": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
    body("metadata 200 objects deep", b'{"prompt": "a", "metadata": ' + b'{"a":' * 200 + b"1" + b"}" * 201),
    body("bytes that are not UTF-8", b'{"model": "@MODEL@", "prompt": "\xff\xfe"}'),
    body("UTF-16", '{"model": "x", "prompt": "y"}'.encode("utf-16")),
    body("an overlong UTF-8 byte", b'{"model": "@MODEL@", "prompt": "\xc0\xaf"}'),
    body("a zero byte", b'{"model": "@MODEL@", "prompt": "a\x00b"}'),
    body("a bare control character", b'{"model": "@MODEL@", "prompt": "a\x1bb"}'),
    literal("half of a surrogate pair", "prompt", r'"\ud800"'),
    literal("half of a surrogate pair in a list", "prompt", r'["a", "\udfff b"]'),
    literal("NaN", "temperature", "NaN"),
    literal("Infinity", "temperature", "Infinity"),
    literal("-Infinity", "top_p", "-Infinity"),
    literal("a number beyond float64", "temperature", "1e999"),
    literal("an integer of 5,000 digits", "max_tokens", "9" * 5000),
    literal("an integer of 5,000 digits as a seed", "seed", "9" * 5000),
    literal("a temperature of 5,000 digits", "temperature", "1" * 5000),
    literal("NaN as a bias", "logit_bias", '{"5": NaN}'),
]  # fmt: skip

CONTENT_TYPES = [
    body("text/plain", b'{"model": "@MODEL@", "prompt": "a"}', status=(415,), headers={"Content-Type": "text/plain"}),
    body("no content type", b'{"model": "@MODEL@", "prompt": "a"}', status=(415,), headers={"Content-Type": None}),
    body("a form", b"model=x&prompt=y", status=(415,), headers={"Content-Type": "application/x-www-form-urlencoded"}),
    body("a form of parts", b"--x--", status=(415,), headers={"Content-Type": "multipart/form-data; boundary=x"}),
    body("XML", b"<model>x</model>", status=(415,), headers={"Content-Type": "application/xml"}),
    body("JSON in its beginning", b"{}", status=(415,), headers={"Content-Type": "application/jsonp"}),
    body("gzip", b"\x1f\x8b\x08\x00", status=(415,), headers={"Content-Encoding": "gzip"}),
    body("another character set", b"{}", status=(415,), headers={"Content-Type": "application/json; charset=utf-16"}),
]

DRAWING = [
    completion("temperature below 0", temperature=-1),
    completion("temperature a word", temperature="hot"),
    completion("temperature true", temperature=True),
    completion("temperature a list", temperature=[1]),
    completion("temperature a number in quotes", temperature="0.5"),
    completion("top_p 0", top_p=0),
    completion("top_p below 0", top_p=-0.1),
    completion("top_p 5", top_p=5),
    completion("n 0", n=0),
    completion("n below 0", n=-1),
    completion("a million answers", n=1_000_000),
    completion("n a fraction", n=1.5),
    completion("n true", n=True),
    completion("n a word", n="two"),
    completion("a million of which the best", "best_of", best_of=1_000_000),
    completion("max_tokens below 0", max_tokens=-1),
    completion("a billion tokens", "prompt", "context_length_exceeded", max_tokens=1_000_000_000),
    completion("max_tokens a fraction", max_tokens=1.5),
    completion("max_tokens a word", max_tokens="ten"),
    completion("max_tokens true", max_tokens=True),
    completion("10,000 log probabilities", logprobs=10_000),
    completion("log probabilities below 0", logprobs=-1),
    completion("log probabilities as a word", logprobs="all"),
    completion("1,000 stops", stop=["x"] * 1000),
    completion("17 stops", stop=[chr(97 + n) for n in range(17)]),
    completion("an empty stop", stop=""),
    completion("an empty stop among others", "stop[1]", stop=["a", ""]),
    completion("a stop that is a number", stop=5),
    completion("stops that are lists", "stop[0]", stop=[["a"]]),
    completion("a stop of 100,000 characters", stop="x" * 100_000),
    completion("a bias of a token that is none", logit_bias={"999999": 1}),
    completion("a bias of a token below 0", logit_bias={"-1": 1}),
    completion("a bias of a word", logit_bias={"cat": 1}),
    completion("a bias of 20,000", logit_bias={"5": 20_000}),
    completion("a bias that is a word", "logit_bias.5", logit_bias={"5": "much"}),
    completion("biases as a list", logit_bias=[5, 1]),
    completion("a seed of 2^70", seed=2**70),
    completion("a seed that is a word", seed="x"),
    completion("a seed that is a fraction", seed=1.5),
    completion("presence_penalty 20,000", presence_penalty=20_000),
    completion("frequency_penalty -20,000", frequency_penalty=-20_000),
    completion("frequency_penalty a word", frequency_penalty="much"),
    completion("echo a word", echo="yes"),
    completion("stream a word", stream="yes"),
    completion("stream a number", stream=1),
    completion("stream_options without a stream", stream_options={"include_usage": True}),
    completion("stream_options a list", "stream_options", stream=True, stream_options=[]),
    valid(completion("a suffix", suffix=" on the mat")),
]

PROMPTS = [
    completion("no prompt", prompt=MISSING),
    completion("a prompt of null", prompt=None),
    completion("a prompt that is a number", prompt=5),
    completion("a prompt that is an object", prompt={"text": "x"}),
    completion("a prompt that is true", prompt=True),
    completion("no prompts", prompt=[]),
    completion("an empty list of ids", "prompt[0]", prompt=[[]]),
    completion("an empty list of ids beside another", "prompt[1]", prompt=[[5], []]),
    completion("an id below 0", "prompt[1]", prompt=[5, -1]),
    completion("an id beyond the vocabulary", prompt=[5, 999_999]),
    completion("an id of 2^70", "prompt[0]", prompt=[2**70]),
    completion("an id that is a fraction", "prompt[0]", prompt=[1.5]),
    completion("an id that is true", "prompt[0]", prompt=[True]),
    completion("a text and an id", "prompt[1]", prompt=["a", 1]),
    completion("a text and a list", "prompt[1]", prompt=[[5], "a"]),
    completion("a list of lists of lists", "prompt[0][0]", prompt=[[[5]]]),
    completion("10,000 prompts", prompt=["a"] * 10_000),
    completion("a prompt and tokens beyond the context", "prompt", "context_length_exceeded",
               prompt=[5] * 400, max_tokens=400),
    completion("a prompt beyond the context", "prompt", "context_length_exceeded", prompt=[5] * 4000),
    completion("a text beyond the context", "prompt", "context_length_exceeded", prompt="the cat sat " * 4000),
    completion("a megabyte of text", "prompt", "context_length_exceeded", prompt="x" * 1_000_000),
]  # fmt: skip

MODELS = [
    completion("a model that is a number", model=5),
    Case("an unknown model", {"model": "gpt-7", "prompt": "a"}, "model", "model_not_found", (404,)),
    Case("a model without a name", {"model": "", "prompt": "a"}, "model", "model_not_found", (404,)),
    Case("a path for a model", {"model": "../../etc/passwd", "prompt": "a"}, "model", "model_not_found", (404,)),
    Case("a model of 100,000 letters", {"model": "m" * 100_000, "prompt": "a"}, "model", None, (404, 400)),
    Case("a chat with an unknown model", {"model": "gpt-7", "messages": [USER]}, "model", "model_not_found", (404,),
         CHAT),
    Case("an unknown model's page", None, "model", "model_not_found", (404,), "/v1/models/gpt-7", "GET"),
]  # fmt: skip

MESSAGES = [
    chat("no messages", messages=MISSING),
    chat("empty messages", messages=[]),
    chat("messages of null", messages=None),
    chat("messages that are a text", messages="the cat"),
    chat("messages that are an object", messages=USER),
    message("a message that is a number", "[0]", 5),
    message("a message that is null", "[1]", USER, None),
    message("a message without a role", "[0].role", {"content": "x"}),
    message("a role that is none", "[0].role", {"role": "wizard", "content": "x"}),
    message("a role that is a number", "[0].role", {"role": 5, "content": "x"}),
    message("a role of a control token", "[0].role", {"role": "<|im_start|>system", "content": "x"}),
    message("a message without content", "[0].content", {"role": "user"}),
    message("content of null", "[0].content", {"role": "user", "content": None}),
    message("content that is a number", "[0].content", {"role": "user", "content": 5}),
    message("content that is an object", "[0].content", {"role": "user", "content": {"text": "x"}}),
    message("a part without a type", "[0].content[0].type", {"role": "user", "content": [{"text": "x"}]}),
    message("a part of an unknown type", "[0].content[0]", {"role": "user", "content": [{"type": "smell"}]}),
    message("a part without its text", "[0].content[0]", {"role": "user", "content": [{"type": "text"}]}),
    message("an image of a file", "[0].content[0]",
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}),
    message("an image of the network", "[0].content[0]",
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/x.png"}}]}),
    message("a sound", "[0].content[0]",
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]}),
    message("a name that is a number", "[0].name", {"role": "user", "content": "x", "name": 5}),
    Case("half of a surrogate pair in a message", {"messages": [{"role": "user", "content": "\ud800"}]}, path=CHAT),
    message("the answer of a tool that answers no call", "[0].tool_call_id", {"role": "tool", "content": "x"}),
    message("calls that are no list", "[0].tool_calls", {"role": "assistant", "content": None, "tool_calls": "look"}),
    chat("5,000 messages", messages=[USER, {"role": "assistant", "content": "a"}] * 2500),
    chat("messages beyond the context", "messages", "context_length_exceeded",
         messages=[{"role": "user", "content": "the cat sat " * 4000}]),
    chat("max_tokens 0 in a chat", max_tokens=0),
    chat("max_completion_tokens 0", max_completion_tokens=0),
    chat("a billion max_completion_tokens", "messages", "context_length_exceeded",
         max_completion_tokens=1_000_000_000),
    chat("temperature -9 in a chat", temperature=-9),
    chat("a million answers in a chat", n=1_000_000),
    chat("logprobs as a number", logprobs=5),
    chat("top_logprobs without logprobs", top_logprobs=2),
    chat("100 top_logprobs", "top_logprobs", logprobs=True, top_logprobs=100),
    chat("a bad seed in a chat", seed=2**70),
]  # fmt: skip

TOOLS = [
    chat("tools that are no list", tools="look"),
    chat("a tool without a type", "tools[0].type", tools=[{"function": {"name": "look"}}]),
    chat("a tool of another kind", "tools[0].type", tools=[{"type": "code_interpreter"}]),
    chat("a tool without a function", "tools[0].function", tools=[{"type": "function"}]),
    chat("a tool without a name", "tools[0].function.name", tools=[{"type": "function", "function": {}}]),
    chat("a tool whose name has blanks", "tools[0].function.name",
         tools=[{"type": "function", "function": {"name": "look around\n"}}]),
    chat("parameters that are a text", "tools[0].function.parameters",
         tools=[{"type": "function", "function": {"name": "look", "parameters": "x"}}]),
    chat("1,000 tools", tools=[TOOL] * 1000),
    chat("a choice of a tool that is none", "tool_choice", tools=[TOOL],
         tool_choice={"type": "function", "function": {"name": "smell"}}),
    chat("a choice that is a word", "tool_choice", tools=[TOOL], tool_choice="sometimes"),
    chat("a choice without tools", tool_choice="required"),
    chat("functions that are no list", functions="look"),
    chat("a function of old clients without a name", "functions[0].name", functions=[{}]),
    chat("tools in the old form and in the new", "functions", functions=[{"name": "look"}], tools=[TOOL]),
    chat("an old choice without functions", function_call={"name": "look"}),
    chat("an old choice that is none of the functions", "function_call", functions=[{"name": "look"}],
         function_call={"name": "smell"}),
]  # fmt: skip


def shaped(name: str, schema: Any) -> Case:
    """Return a chat whose answer must have this schema."""
    return chat(
        name,
        "response_format",
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )


FORMATS = [
    chat("a format that is a text", response_format="json"),
    chat("a format of an unknown type", "response_format.type", response_format={"type": "xml"}),
    chat("a format without a type", "response_format.type", response_format={}),
    chat("a format without its schema", "response_format.json_schema", response_format={"type": "json_schema"}),
    chat("a schema that is a list", "response_format.json_schema.schema",
         response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": []}}),
    shaped("a schema with an unknown type", {"type": "wizard"}),
    shaped("a schema with a bad expression", {"type": "string", "pattern": "("}),
    shaped("a schema that refers to the network", {"$ref": "http://127.0.0.1:1/schema.json"}),
    shaped("a schema that refers to a file", {"$ref": "file:///etc/passwd"}),
    shaped("a schema that refers to nothing", {"$ref": "#/$defs/none"}),
    shaped("a schema that nothing fits", {"enum": []}),
    shaped("a schema of 60,000 properties", {"properties": {f"p{n}": {"type": "string"} for n in range(60_000)}}),
]  # fmt: skip

UNSUPPORTED = [
    valid(chat("sound wanted", modalities=["text", "audio"])),
    valid(chat("a sound's voice", audio={"voice": "x", "format": "wav"})),
    valid(chat("a prediction", prediction={"type": "content", "content": "x"})),
    valid(chat("a search of the web", web_search_options={})),
]

ROUTES = [
    Case("no such path", None, None, None, (404,), "/v1/nothing", "GET"),
    Case("no such path for a POST", {"a": 1}, None, None, (404,), "/v1/nothing"),
    Case("a path with a slash behind", {"model": MODEL, "prompt": "a"}, None, None, (404,), "/v1/completions/"),
    Case("a path out of the folder", None, None, None, (404,), "/../../../../etc/passwd", "GET"),
    Case("an escaped path out of the folder", None, None, None, (404,), "/%2e%2e/%2e%2e/etc/passwd", "GET"),
    Case("a path with a zero byte", None, "model", "model_not_found", (404,), "/v1/models/%00", "GET"),
    Case("a path of 20,000 letters", None, None, None, (404, 414, 431), "/" + "x" * 20_000, "GET", closes=True),
    Case("GET of completions", None, None, None, (405,), COMPLETIONS, "GET"),
    Case("PUT of completions", {"a": 1}, None, None, (405,), COMPLETIONS, "PUT"),
    Case("DELETE of a chat", None, None, None, (405,), CHAT, "DELETE"),
    Case("PATCH of a chat", {"a": 1}, None, None, (405,), CHAT, "PATCH"),
    Case("POST of models", {"a": 1}, None, None, (405,), "/v1/models"),
    Case("POST of health", {"a": 1}, None, None, (405,), "/health"),
    Case("TRACE", None, None, None, (405,), COMPLETIONS, "TRACE"),
    Case("a method of one's own", None, None, None, (405, 501, 400), COMPLETIONS, "FETCH"),
    Case("OPTIONS of a foreign page", None, None, None, (400, 403, 405), COMPLETIONS, "OPTIONS",
         {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}),
]  # fmt: skip

GOOD = b'{"prompt": "a", "max_tokens": 1}'


def raw(name: str, head: str, content: bytes = GOOD, status: tuple[int, ...] = (400,), closes: bool = True) -> Case:
    """Return a POST of completions with its head as given."""
    first = b"POST /v1/completions HTTP/1.1\r\n" if not head.startswith("=") else b""
    return Case(
        name, status=status, raw=first + head.removeprefix("=").encode("latin-1") + b"\r\n" + content, closes=closes
    )


HERE = "Host: 127.0.0.1:@PORT@\r\nContent-Type: application/json\r\n"
HEADERS = [
    Case("a foreign host", {"model": MODEL, "prompt": "a"}, status=(400, 403, 421), headers={"Host": "evil.example"}),
    Case("a foreign host of health", None, None, None, (400, 403, 421), "/health", "GET", {"Host": "evil.example"}),
    Case("a host that begins like ours", None, None, None, (400, 403, 421), "/v1/models", "GET",
         {"Host": "127.0.0.1.evil.example"}),
    Case("a host that is no name", None, None, None, (400, 403, 421), "/v1/models", "GET", {"Host": "a b/../"}),
    raw("no host", f"Content-Type: application/json\r\nContent-Length: {len(GOOD)}\r\n"),
    raw("two hosts", f"{HERE}Host: evil.example\r\nContent-Length: {len(GOOD)}\r\n"),
    raw("a header of 200 kB", f"{HERE}X-A: {'a' * 200_000}\r\nContent-Length: {len(GOOD)}\r\n", status=(400, 431)),
    raw("10,000 headers", HERE + "".join(f"X-{n}: a\r\n" for n in range(10_000)) + "\r\n", status=(400, 431)),
    raw("a length below 0", f"{HERE}Content-Length: -1\r\n"),
    raw("a length that is a word", f"{HERE}Content-Length: ten\r\n"),
    raw("two lengths", f"{HERE}Content-Length: {len(GOOD)}\r\nContent-Length: 3\r\n"),
    raw("a length and chunks", f"{HERE}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"%x\r\n%b\r\n0\r\n\r\n" % (len(GOOD), GOOD)),
    raw("an encoding of one's own", f"{HERE}Transfer-Encoding: squeezed\r\n", status=(400, 501)),
    raw("a chunk whose size is no number", f"{HERE}Transfer-Encoding: chunked\r\n", b"zz\r\n{}\r\n0\r\n\r\n"),
    raw("a length of 100 MB", f"{HERE}Content-Length: 100000000\r\n", b"{", status=(413,)),
    raw("3 MB in chunks", f"{HERE}Transfer-Encoding: chunked\r\n",
        (b"100000\r\n" + b" " * 0x100000 + b"\r\n") * 3 + b"0\r\n\r\n", status=(413,)),
    raw("a blank in the name of a header", f"{HERE}X A: 1\r\nContent-Length: {len(GOOD)}\r\n"),
    raw("a line without a colon", f"{HERE}nothing\r\nContent-Length: {len(GOOD)}\r\n"),
    raw("a first line that is none", "=hello\r\nHost: x\r\n", b""),
    raw("no version", "=GET /health\r\nHost: 127.0.0.1:@PORT@\r\n", b""),
    raw("HTTP/9.9", "=GET /health HTTP/9.9\r\nHost: 127.0.0.1:@PORT@\r\n", b"", status=(400, 505)),
    raw("TLS", "=\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n", b""),
    raw("the preface of HTTP/2", "=PRI * HTTP/2.0\r\n\r\nSM\r\n", b"", status=(400, 505)),
]  # fmt: skip


def own(name: str, path: str, param: str | None, /, code: str | None = None, **fields: Any) -> Case:
    """Return a request to a route that Orrery has beside OpenAI's, or may not have for this model."""
    return Case(name, {"model": MODEL, **fields}, param, code, path=path)


OWN = [
    own("a text to cut that is missing", "/tokenize", "prompt"),
    own("a text to cut that is a number", "/tokenize", "prompt", prompt=5),
    own("half of a surrogate pair to cut", "/tokenize", None, prompt="\ud800"),
    own("no ids to spell", "/detokenize", "tokens"),
    own("ids that are a text", "/detokenize", "tokens", tokens="5"),
    own("an id to spell below 0", "/detokenize", "tokens[0]", tokens=[-1]),
    own("an id to spell beyond the vocabulary", "/detokenize", "tokens", tokens=[999_999]),
    own("an id to spell of 2^70", "/detokenize", "tokens[0]", tokens=[2**70]),
    own("nothing to embed", EMBEDDINGS, "input"),
    own("an empty list to embed", EMBEDDINGS, "input", input=[]),
    own("an empty text to embed", EMBEDDINGS, "input", input=""),
    own("an empty text among others to embed", EMBEDDINGS, "input", input=["a", ""]),
    own("a number to embed", EMBEDDINGS, "input", input=5),
    own("an object to embed", EMBEDDINGS, "input", input={"text": "a"}),
    own("an id to embed beyond the vocabulary", EMBEDDINGS, "input", input=[999_999]),
    own("an id to embed below 0", EMBEDDINGS, "input", input=[-1]),
    own("a fraction to embed", EMBEDDINGS, "input", input=[1.5]),
    own("10,000 texts to embed", EMBEDDINGS, "input", input=["a"] * 10_000),
    own("a text to embed beyond the context", EMBEDDINGS, "input", "context_length_exceeded", input="the cat " * 4000),
    own("an encoding that is none", EMBEDDINGS, "encoding_format", input="a", encoding_format="hex"),
    own("vectors of 0 numbers", EMBEDDINGS, "dimensions", input="a", dimensions=0),
    own("vectors of three numbers", EMBEDDINGS, "dimensions", input="a", dimensions=3),
    own("vectors of too many numbers", EMBEDDINGS, "dimensions", input="a", dimensions=10**6),
    Case("an unknown model to embed", {"model": "x", "input": "a"}, "model", "model_not_found", (404,), EMBEDDINGS),
]

CASES = [
    *NOT_JSON, *CONTENT_TYPES, *DRAWING, *PROMPTS, *MODELS, *MESSAGES, *TOOLS, *FORMATS, *UNSUPPORTED, *ROUTES,
    *HEADERS, *OWN,
]  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """How a server answered a case.

    Attributes:
        refused: with a status of the client's fault.
        expected: with one of those that the case names.
        named: and with an error object that names the parameter, and the code where the case has one.
        survived: the same connection, or after those that may end it a new one, answers the next request.
        said: the status, and the beginning of the body.
    """

    refused: bool
    expected: bool
    named: bool
    survived: bool
    said: str

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.refused and self.expected and self.named and self.survived


def judge(case: Case, wire: Wire, model: str) -> tuple[Verdict, Wire]:
    """Send a case and a harmless request behind it; return the verdict and the connection to go on with."""
    reply = wire.send(case.bytes(model, wire.port), case.method)
    error = reply.error
    named = set(error) >= {"message", "type", "param", "code"} and isinstance(error["message"], str)
    named = named and error["param"] == case.param and (case.code is None or error["code"] == case.code)
    if case.method in ("HEAD", "TRACE") or case.raw is not None:
        named = True  # what is no request at all is refused below the application, which has the words
    if case.closes or reply.closes:
        wire.close()
        wire = Wire(wire.port, wire.timeout)
        alive = case.closes and wire.ask("GET", "/health").status == 200
    else:
        alive = wire.ask("GET", "/health").status == 200
    if not alive:
        wire.close()
        wire = Wire(wire.port, wire.timeout)
    said = f"{reply.status} {reply.body[:300]!r}"
    refused = 400 <= reply.status < 500 or reply.status in case.status
    return Verdict(refused, reply.status in case.status, named, alive, said), wire
