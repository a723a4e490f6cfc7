"""``hf:org/name@revision`` against a hub of our own, and proof that nothing else opens a socket."""

import hashlib
import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest
import torch
import transformers

import programs
from orrery.checkpoints.tensors import write_tensors
from orrery.errors import UsageError
from orrery.exchange.reading import hub
from orrery.text import load_tokenizer
from tiny_models import saved

COMMIT = "0123456789abcdef0123456789abcdef01234567"
EVIL = {
    "modeling_evil.py": b"raise SystemExit",
    "pytorch_model.bin": b"\x80\x02.",
    "README.md": b"hello",
    "sub/x.json": b"{}",
}


class Hub:
    """A model's files under ``org/name``; says what it was asked for."""

    def __init__(self, folder):
        own = [path for path in folder.rglob("*") if path.is_file()]
        self.files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in own} | EVIL
        self.asked, self.listed, self.status = [], {}, 200
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def listing(self):
        def entry(name, content):
            digest = self.listed.get(name, hashlib.sha256(content).hexdigest())
            lfs = {"sha256": digest, "size": len(content), "pointerSize": 130} if name.endswith("safetensors") else None
            return {"rfilename": name, "size": len(content), "blobId": "b" * 40, **({"lfs": lfs} if lfs else {})}

        siblings = [entry(name, content) for name, content in self.files.items()]
        return {"id": "org/name", "sha": COMMIT, "siblings": siblings, "cardData": {"license": "mit"}, "tags": []}

    def handler(self):
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self, status, content=b"", **headers):
                self.send_response(status)
                for name, value in {"Content-Length": len(content), **headers}.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

            def do_GET(self):
                path = unquote(urlsplit(self.path).path)
                hub.asked.append(f"{self.command} {path}")
                if hub.status != 200:
                    self.answer(hub.status, **({"X_Error_Code": "GatedRepo"} if hub.status == 403 else {}))
                elif path in (f"/api/models/org/name/revision/{r}" for r in ("main", COMMIT)):
                    self.answer(200, json.dumps(hub.listing()).encode(), Content_Type="application/json")
                elif path.startswith("/api/models/org/name/revision/"):
                    self.answer(404, X_Error_Code="RevisionNotFound")
                elif path.startswith(prefix := f"/org/name/resolve/{COMMIT}/") and path[len(prefix) :] in hub.files:
                    content = hub.files[path[len(prefix) :]]
                    etag = f'"{hashlib.sha256(content).hexdigest()}"'
                    self.answer(200, content, ETag=etag, X_Repo_Commit=COMMIT)
                else:
                    self.answer(404, X_Error_Code="RepoNotFound")

            do_HEAD = do_GET

            def log_message(self, *args):
                pass

        return Handler


@pytest.fixture
def served(tmp_path):
    yield from until_closed(Hub(saved(tmp_path / "model", "llama")))


@pytest.fixture
def served_vectors(tmp_path):
    """Yield the folder of a model that takes a text's first vector, with another template for chats with tools."""
    folder = saved(tmp_path / "model", "bert")
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    for place, content in (
        ("1_Pooling/config.json", '{"pooling_mode": "cls"}'),
        ("0_Evil/code.py", "raise SystemExit"),
    ):
        (folder / place).parent.mkdir()
        (folder / place).write_text(content)
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("{{ tools }}")
    yield from until_closed(Hub(folder))


def until_closed(hub):
    yield hub
    hub.server.shutdown()
    hub.server.server_close()


def orrery(tmp_path, url, *words, **environment):
    fixed = {"HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "*"}
    settings = {**inherited(), **fixed, **environment}
    return programs.run([*programs.ORRERY, *words], capture_output=True, text=True, env=settings)


def inherited():
    """Return this environment without what leads requests elsewhere."""
    dropped = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {n: value for n, value in os.environ.items() if n.upper() not in dropped and not n.startswith("HF_")}


def test_vocabularies_are_fetched_with_what_is_read_beside_them(served, tmp_path):
    names = ["added_tokens.json", "encoder.json", "vocab.bpe", "tekken.json", "tiktoken.model", "qwen.tiktoken"]
    served.files |= dict.fromkeys(names, b"{}")
    assert orrery(tmp_path, served.url, "score", "hf:org/name", "the cat").returncode == 0
    assert {line.rpartition("/")[2] for line in served.asked} >= set(names)


def test_a_model_of_vectors_comes_with_what_makes_them(served_vectors, tmp_path):
    words = ("the cat", "the cat sat on the mat and the cat sat", "--json")
    done = orrery(tmp_path, served_vectors.url, "embed", "hf:org/name", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == orrery(tmp_path, served_vectors.url, "embed", str(tmp_path / "model"), *words).stdout
    fetched = {line.partition(f"{COMMIT}/")[2] for line in served_vectors.asked if "/resolve/" in line}
    assert "additional_chat_templates/tool_use.jinja" in fetched
    assert not [name for name in fetched if name.endswith(".py")]


def test_a_table_of_static_vectors_in_a_folder_of_its_own_comes_without_a_config(tmp_path):
    folder = saved(tmp_path / "bert", "bert")
    table = tmp_path / "model" / "0_StaticEmbedding"
    table.mkdir(parents=True)
    (folder / "tokenizer.json").rename(table / "tokenizer.json")
    rows = load_tokenizer(table).size
    write_tensors(table / "model.safetensors", {"embedding.weight": torch.arange(2.0 * rows).view(rows, 2)})
    modules = [{"path": table.name, "type": "sentence_transformers.models.StaticEmbedding"}]
    (table.parent / "modules.json").write_text(json.dumps(modules))
    served = next(hub := until_closed(Hub(table.parent)))
    done = orrery(tmp_path, served.url, "embed", "hf:org/name", "the cat")
    assert done.returncode == 0, done.stderr
    assert done.stdout == orrery(tmp_path, served.url, "embed", str(table.parent), "the cat").stdout
    next(hub, None)


def test_a_model_is_fetched_by_its_commit_and_nothing_but_data(served, tmp_path):
    weights = hashlib.sha256(served.files["model.safetensors"]).hexdigest()
    done = orrery(tmp_path, served.url, "score", "hf:org/name@main", "the cat")
    assert done.returncode == 0, done.stderr
    assert f"hf:org/name@{COMMIT} (main of this day): licence mit" in done.stderr
    size = len(served.files["model.safetensors"])
    assert f"hf:org/name@{COMMIT}: model.safetensors, {size:,} bytes, sha256 {weights}" in done.stderr
    assert "total" in done.stdout
    fetched = {line.rpartition("/")[2] for line in served.asked if "/resolve/" in line}
    assert fetched == {
        "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors",
    }  # fmt: skip
    assert all(COMMIT in line for line in served.asked if "/resolve/" in line)

    served.asked.clear()
    pinned = orrery(tmp_path, served.url, "score", f"hf:org/name@{COMMIT}", "the cat")
    assert (pinned.returncode, pinned.stdout) == (0, done.stdout)
    assert served.asked == []  # a full commit in the cache needs no network

    served.server.shutdown()
    served.server.server_close()
    offline = orrery(tmp_path, served.url, "score", "hf:org/name@main", "the cat")
    assert offline.returncode == 5
    error, hint = offline.stderr.splitlines()[-2:]
    assert error.startswith("error: hf:org/name@main cannot be fetched: ")
    assert hint.endswith(f"hf:org/name@{COMMIT}")


def test_shards_come_by_the_index(served, tmp_path):
    whole = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    whole.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    del served.files["model.safetensors"]
    served.files |= {p.name: p.read_bytes() for p in (tmp_path / "shards").glob("model*")}
    served.files["model-of-another.safetensors"] = b""
    done = orrery(tmp_path, served.url, "import", "hf:org/name", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("sha256") == len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    assert not [line for line in served.asked if "another" in line]


def test_show_needs_no_weights(served, tmp_path):
    done = orrery(tmp_path, served.url, "show", "hf:org/name")
    assert (done.returncode, "Decoder(width=32, context=48)" in done.stdout) == (0, True)
    assert not [line for line in served.asked if "safetensors" in line]


def changed_listing(served):
    served.listed["model.safetensors"] = "0" * 64


def only_pickles(served):
    del served.files["model.safetensors"]


def endless_text(served):
    served.files["tokenizer.json"] = b""
    content = json.dumps(served.listing()).replace(
        '"tokenizer.json", "size": 0', '"tokenizer.json", "size": 9999999999'
    )
    served.listing = lambda: json.loads(content)


def traversal(served):
    del served.files["model.safetensors"]
    served.files["model.safetensors.index.json"] = b'{"weight_map": {"a": "../../a.safetensors"}}'


@pytest.mark.parametrize(
    ("change", "model", "code", "says"),
    [
        (changed_listing, "hf:org/name", 4, f"the hub lists {'0' * 64}"),
        (only_pickles, "hf:org/name", 4, "has no safetensors, only the pickle pytorch_model.bin"),
        (endless_text, "hf:org/name", 4, "tokenizer.json has 9,999,999,999 bytes"),
        (traversal, "hf:org/name", 4, "names the shard '../../a.safetensors'"),
        (lambda served: None, "hf:org/name@v9", 2, "org/name has no revision 'v9'"),
        (lambda served: None, "hf:org/other", 2, "the hub has no model 'org/other' that you may see"),
        (lambda served: setattr(served, "status", 403), "hf:org/name", 2, "accept its licence"),
        (lambda served: setattr(served, "status", 500), "hf:org/name", 5, "cannot be fetched"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_is_wrong_is_told_by_kind(served, tmp_path, change, model, code, says):
    change(served)
    done = orrery(tmp_path, served.url, "score", model, "text")
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hub_that_is_not_there_is_the_machines_fault(tmp_path):
    done = orrery(tmp_path, "http://127.0.0.1:9", "score", "hf:org/name", "text")
    assert done.returncode == 5
    assert "check the network; a folder on this machine needs none" in done.stderr
    done = orrery(tmp_path, "http://127.0.0.1:9", "score", "hf:org/name", "text", HF_HUB_OFFLINE="1")
    assert done.returncode == 5


@pytest.mark.parametrize(
    "text", ["hf:", "hf:a/b/c", "hf:../a", "hf:a/b@", "hf:a/b@../x", "hf:a b", "hf:a/b@x y", "hf:a/b@-x", "hf:/a"]
)
def test_other_forms_are_refused_before_anything_is_asked(text, monkeypatch):
    monkeypatch.setattr("socket.socket", None)
    with pytest.raises(UsageError, match="no model on the hub"):
        hub.fetch(text)


def test_forms():
    assert str(hub.parse("hf:org/name")) == "hf:org/name@main"
    assert str(hub.parse("hf:name@refs/pr/1")) == "hf:name@refs/pr/1"
    assert hub.parse(f"hf:org/name@{COMMIT}").is_pinned


GUARD = """
import sys
def hook(event, arguments):
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto", "socket.gethostby")):
        print("SOCKET", event, arguments, file=sys.stderr)
        sys.exit(99)
sys.addaudithook(hook)
from orrery.cli.program import run
for line in sys.argv[1:]:
    code = run(line.split())
    print("DONE", code)
    if code:
        sys.exit(code)
"""
VERBS = (
    "score {model} cat",
    "generate {model} cat --max-new-tokens 2",
    "show {model}",
    "show --diff gpt2 llama",
    "import {model} {out}",
    "parity {model} --against {out} --with transformers",
    "tokenizer show {model} cat",
)


def guarded(start, *lines, **environment):
    command = [sys.executable, "-c", GUARD, *lines]
    return start(command, capture_output=True, text=True, check=False, env={**inherited(), **environment})


def test_no_other_form_opens_a_socket(tmp_path):
    folder = saved(tmp_path / "model", "gpt2")
    # A cold start: what is imported may open none either.
    done = guarded(subprocess.run, *(verb.format(model=folder, out=tmp_path / "out") for verb in VERBS))
    assert "SOCKET" not in done.stderr
    assert (done.returncode, done.stdout.count("DONE 0")) == (0, len(VERBS)), done.stderr


def test_the_guard_notices_a_socket(tmp_path):
    done = guarded(programs.run, "score hf:org/name text", HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path))
    assert "SOCKET" in done.stderr
