import shutil

import pytest
import yaml

from orrery.errors import UsageError
from orrery.exchange.reading.architecture import of_family
from orrery.language_model.load import load
from orrery.page.views._view import ViewSubject, shown
from orrery.planning.spec_tree import differences, tree
from tiny_models import saved
from views_toy import subject_of


def test_the_differences_are_those_of_show():
    subject = subject_of("gpt2")
    facts = shown("compare", subject, {"other": "llama"}).facts
    model = subject.lm.model
    wanted = list(map(vars, differences(tree(model.spec, "tiny"), tree(of_family("llama"), "llama"))))
    assert facts["differences"] == wanted
    assert any(one["path"] == "width" for one in wanted)
    assert facts["parameters"][0] == sum(parameter.numel() for parameter in model.parameters())


def test_what_is_offered_is_taken_and_nothing_else(tmp_path):
    subject = subject_of("gpt2")
    offered = shown("compare", subject, {}).facts
    assert "gpt2" in offered["families"]
    assert offered["runs"] == []
    for other in ("/etc", "../gpt2", "hf:gpt2", str(tmp_path)):
        with pytest.raises(UsageError, match="no family or run"):
            shown("compare", subject, {"other": other})


def test_a_run_beside_the_models_own_can_be_compared(tmp_path):
    for name, family in (("one", "gpt2"), ("two", "llama")):
        run = tmp_path / name
        saved(run / "final", family)
        (run / "metrics.jsonl").write_text("")
        (run / "config.yaml").write_text(yaml.safe_dump({"name": name}))
    shutil.copytree(tmp_path / "one", tmp_path / "no_run")
    (tmp_path / "no_run" / "config.yaml").unlink()
    subject = ViewSubject(load(tmp_path / "one", "cpu", say=lambda line: None))
    assert shown("compare", subject, {}).facts["runs"] == ["two"]
    payload = shown("compare", subject, {"other": "two"})
    assert all(check.passed for check in payload.checks)
    assert any(one["first"].startswith("LayerNorm") for one in payload.facts["differences"])
