"""What a family costs: one file of about a hundred lines, and no change anywhere else."""

import statistics
import textwrap

import torch

from architecture import rules
from orrery import families
from orrery.exchange.saving.save import save_model
from orrery.language_model.load import load
from orrery.laws import registry

MEDIAN_LINES = 110

MADE_UP = '''
"""A family of nobody's: a post-norm Llama without a feed-forward network."""

from orrery.checkpoints.rules import rename, renames
from orrery.families._config import Config
from orrery.models.decoder import Decoder
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.block import Block
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.heads import LanguageModelHead
from orrery.nn.masks import Causal
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.residual import Residual
from orrery.nn.stack import Stack, repeat

ARCHITECTURE = "MadeUpForCausalLM"
DEFAULTS = {"vocab_size": 61, "width": 24, "layers": 2, "context": 48}
TINY = {"vocab_size": 61}


def spec(config):
    c = Config("made_up", config, DEFAULTS)
    attention = MultiHeadAttention.Spec(heads=3, kv_heads=1, head_width=8, position="rotary")
    block = Block.Spec(residuals={"attention": Residual.Spec(branch=attention, post=RMSNorm.Spec())})
    return Decoder.Spec(
        width=c["width"],
        context=c["context"],
        embed=TokenEmbedding.Spec(vocabulary=c["vocab_size"]),
        stack=Stack.Spec(
            blocks=repeat(block, c["layers"]),
            positions={"rotary": Rotary.Spec(width=8)},
            masks={"causal": Causal()},
        ),
        head=LanguageModelHead.Spec(vocabulary=c["vocab_size"]),
    )


WEIGHTS = (
    rename("words", "embed.token.weight"),
    *renames("l.{i}", "stack.blocks.{i}.attention.branch", [(x, x) for x in ("q", "k", "v", "out")], ["weight"]),
    rename("l.{i}.norm", "stack.blocks.{i}.attention.post.weight"),
)
'''


def test_the_median_family_file_is_short():
    lengths = sorted(
        len(module.code_lines)
        for module in rules.source_modules()
        if module.package == "families" and not module.name.rpartition(".")[2].startswith("_") and module.code_lines
    )
    assert statistics.median(lengths) <= MEDIAN_LINES, lengths


def test_a_family_from_python_obeys_every_law_and_needs_no_other_file(tmp_path, monkeypatch):
    (tmp_path / "made_up.py").write_text(textwrap.dedent(MADE_UP))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(families._registry, "_registered", {})
    families.register("made_up")
    report = registry.verify("made_up")
    assert {evidence.law for evidence in report.checks} >= {
        "cache", "padding", "packing", "accumulation", "resume", "kernel", "checkpoint", "sight",
    }  # fmt: skip
    assert [evidence for evidence in report.checks if not evidence.passed] == []
    family = families.load_family("made_up")
    model = family.spec(family.TINY).build(0)
    save_model(tmp_path / "saved", model, "made_up", dict(family.TINY))
    again = load(tmp_path / "saved", say=lambda line: None)
    ids = torch.tensor([[5, 6, 7]])
    assert torch.equal(again.logits(ids), model.eval().logits(ids).detach())
