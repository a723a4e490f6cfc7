import json
import re
import signal
import socket
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest
import torch

from orrery.cli.program import run
from orrery.data.pictures.png import write_png
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from programs import ORRERY, PIPE, Program
from serving_toy import chat_model
from tiny_models import saved, smallest
from views_toy import PIXELS


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return chat_model(tmp_path_factory.mktemp("toy") / "model")


def refused(capsys, *words):
    code = run(["see", *map(str, words)])
    return code, capsys.readouterr().err


def test_one_file_holds_the_page(model, tmp_path, capsys):
    assert run(["see", str(model), "the cat", "-o", str(tmp_path / "inside.html")]) == 0
    page = (tmp_path / "inside.html").read_text()
    assert "connect-src 'none'" in page or "default-src 'none'" in page
    assert not re.search(r"(src|href)=\"https?:", page)
    assert "wrote" in capsys.readouterr().out


def test_an_image_is_looked_into(tmp_path, capsys):
    file = tmp_path / "cat.png"
    file.write_bytes(write_png(PIXELS.permute(2, 0, 1)))
    rules = load_family("vit")
    save_model(tmp_path / "vit", smallest("vit", torch.float32), "vit", dict(rules.TINY))
    assert run(["see", str(tmp_path / "vit"), str(file), "-o", str(tmp_path / "inside.html")]) == 0
    held = json.loads((tmp_path / "inside.html").read_text().split('id="held">')[1].split("</script>")[0])
    assert [token["text"] for token in held["runs"][0]["pass"]["tokens"]][:2] == ["class", "1·1"]
    capsys.readouterr()
    code, said = refused(capsys, tmp_path / "vit", tmp_path / "dog.png", "-o", tmp_path / "x.html")
    assert code == 3
    assert "dog.png cannot be read" in said
    code, said = refused(capsys, tmp_path / "vit", tmp_path / "dog.png")
    assert code == 3


def test_a_target_is_refused_where_a_model_reads_one_text(model, tmp_path, capsys):
    code, said = refused(capsys, model, "the cat", "--target", "sat", "-o", tmp_path / "x.html")
    assert code == 2
    assert "this model reads and writes one text" in said
    assert not (tmp_path / "x.html").exists()


def test_a_text_that_is_too_long_is_refused_before_anything_is_served(model, capsys):
    code, said = refused(capsys, model, "the " * 4000)
    assert code == 2
    assert "context" in said


def test_a_model_without_a_tokenizer_is_refused(tmp_path, capsys):
    folder = saved(tmp_path / "bare", "gpt2")
    (folder / "tokenizer.json").unlink()
    code, said = refused(capsys, folder, "the cat", "-o", tmp_path / "x.html")
    assert code in (2, 4)
    assert "tokenizer" in said


def test_a_port_that_is_taken_is_told_before_the_model_is_read(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, said = refused(capsys, ".", "the cat", "--port", taken.getsockname()[1])
    assert code == 5
    assert "port" in said


def test_the_page_is_served_until_a_signal(model):
    with Program([*ORRERY, "see", model, "the cat"], stdout=PIPE, stderr=PIPE, text=True) as process:
        place = process.stdout.readline().removeprefix("open ").strip()
        fragment = parse_qs(urlsplit(place).fragment)
        assert json.loads(fragment["given"][0]) == {"text": "the cat"}
        with urllib.request.urlopen(place.partition("#")[0], timeout=30) as page:
            assert b"<html" in page.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, 143)


def test_evidence_of_the_laws_goes_into_the_page_and_another_file_is_refused(model, tmp_path, capsys):
    check = {"name": "a", "law": "cache", "family": "llama", "passed": True, "value": 1e-7, "bound": 1e-5}
    (tmp_path / "laws.json").write_text(json.dumps({"checks": [check], "not_run": []}))
    words = ["see", str(model), "the cat", "-o", str(tmp_path / "page.html"), "--laws", str(tmp_path / "laws.json")]
    assert run(words) == 0
    held = json.loads((tmp_path / "page.html").read_text().split('id="held">')[1].split("</script>")[0])
    assert "laws" in held["model"]
    (tmp_path / "other.json").write_text("{}")
    capsys.readouterr()
    code, said = refused(capsys, model, "the cat", "--laws", tmp_path / "other.json")
    assert code == 3
    assert "holds no evidence" in said
