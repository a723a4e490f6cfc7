import base64
import gzip
import hashlib
import json
import re

import pytest

import orrery
from orrery.page.assets import assets, served_modules
from orrery.page.page import address, served_page
from orrery.page.views._view import find, names
from tiny_models import saved

LARGEST = 400_000


@pytest.fixture(scope="module")
def lm(tmp_path_factory):
    return orrery.load(saved(tmp_path_factory.mktemp("m") / "model", "gpt2"), "cpu", say=lambda line: None)


def test_the_code_of_the_page_is_small():
    assert sum(map(len, assets().values())) < LARGEST
    for path, content in assets().items():
        lines = [line for line in content.decode().splitlines() if line.strip() and not line.strip().startswith("//")]
        assert len(lines) <= 400, path


def test_nothing_of_the_page_names_another_place():
    for path, content in assets().items():
        addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", content.decode())
        assert [place for place in addresses if "www.w3.org" not in place] == [], path
        assert "innerHTML" not in content.decode(), path


def test_every_import_of_a_module_is_in_the_map():
    places = json.loads(served_modules())["imports"]
    for path, content in assets().items():
        for name in re.findall(r'from "([^"]+)"', content.decode()):
            assert name in places, f"{path} imports {name}"


def test_the_policy_of_a_served_page_allows_its_own_scripts_alone():
    page, policy = served_page()
    for script in re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe-eval" not in policy
    assert policy.startswith("default-src 'self';")


def test_a_saved_page_holds_what_its_views_ask_for(lm):
    page = orrery.see(lm, "the cat </script><script>alert(1)</script>").html()
    held = json.loads(re.search(r'id="held">(.*?)</script>', page, re.DOTALL)[1])
    (run,) = held["runs"]
    payloads = run["payloads"]
    assert "parameters" in held["model"]
    assert "parameters" not in payloads
    assert "tokens" in payloads
    assert address("attention", {"site": 0, "layer": 1}) in payloads
    gzip.decompress(base64.b64decode(payloads["tokens"]))
    assert "alert(1)</script>" not in page
    assert held["session"]["screens"] == ["inside"] or "inside" in held["session"]["screens"]


def test_a_saved_page_keeps_to_its_room_and_holds_something_of_every_view(lm, monkeypatch):
    def kept():
        (run,) = json.loads(re.search(r'id="held">(.*?)</script>', orrery.see(lm, "the cat sat").html(), re.DOTALL)[1])[
            "runs"
        ]
        return run["payloads"]

    everything = kept()
    sharing = [name for name in everything if name.partition("?")[0] in ("qkv", "way", "cached")]
    rest = sum(len(packed) for name, packed in everything.items() if name not in sharing)
    monkeypatch.setattr("orrery.page.page.ROOM", rest + 60_000)
    some = kept()
    assert {name.partition("?")[0] for name in some} == {name.partition("?")[0] for name in everything}
    assert set(everything) - set(sharing) < set(some) < set(everything)
    assert all(everything[name] == packed for name, packed in some.items())
    assert sum(map(len, some.values())) <= rest + 60_000
    monkeypatch.setattr("orrery.page.page.ROOM", 0)
    assert sum(name.startswith("qkv") for name in kept()) == 1


def test_a_view_that_may_be_left_out_of_a_file_asks_whether_it_is_there():
    sharing = [name for name in names() if find(name).share]
    assert {"qkv", "way", "cached"} <= set(sharing)
    for name in sharing:
        assert f'source.has("{name}"' in assets()[f"see/views/{name}.js"].decode(), name


@pytest.mark.parametrize("kind", ["served", "saved"])
def test_policy_style_and_map_stand_in_the_head_and_what_begins_in_the_body(kind, lm):
    page = served_page()[0] if kind == "served" else orrery.see(lm, "the cat").html()
    head, between, body = page.partition("</head>")
    assert between
    assert head.count("<script") == head.count('<script type="importmap">') == 1
    assert ("Content-Security-Policy" in head) == (kind == "saved")  # a server sends it with the page
    assert ('<link rel="stylesheet"' in head) == (kind == "served")
    assert ("<style>" in head) == (kind == "saved")
    assert body.count('<script type="module">') == 1
    assert ('<script type="application/json" id="held">' in body) == (kind == "saved")


def test_a_notebook_shows_the_page_in_a_frame_that_reaches_nothing(lm):
    shown = orrery.see(lm, "the cat")._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts allow-downloads"')
    assert "<script" not in shown


def test_saving_the_same_page_twice_gives_the_same_bytes(lm, tmp_path):
    one, other = (orrery.see(lm, "the cat sat").save(tmp_path / name) for name in ("a.html", "b.html"))
    assert one.read_bytes() == other.read_bytes()
