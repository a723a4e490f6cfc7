"""``orrery quantise``: a folder that loads as any other model, smaller, with what was measured said."""

import json

import torch

from orrery.cli.program import run as program
from orrery.exchange.exporting.quantised import quantise
from orrery.language_model.load import load
from orrery.tuning.blocks import StoredBlocks
from tiny_models import TEXT, saved


def test_the_verb_writes_a_model_to_use(tmp_path, capsys):
    folder, out, text = saved(tmp_path / "llama", "llama"), tmp_path / "small", tmp_path / "text.txt"
    text.write_text(TEXT * 3)
    assert program(["quantise", str(folder), str(out), "--bits", "4", "--group", "16", "--text", str(text)]) == 0
    said = capsys.readouterr().out
    assert "times less" in said
    assert "int4, one scale for up to 16 inputs: *.blocks.*" in said
    assert "before," in said
    lm, plain = load(out, say=lambda line: None), load(folder, say=lambda line: None)
    assert {p.dtype for p in lm.model.stack.parameters() if p.dim() == 2} >= {torch.uint8}
    assert lm.generate("the cat", max_new_tokens=3, temperature=0)
    ids = [plain.tokenizer.encode("the cat sat")]
    assert float((lm.logits(ids) - plain.logits(ids)).abs().max()) > 0
    assert program(["quantise", str(folder), str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert program(["quantise", str(folder), str(out), "--overwrite", "--head", "keep"]) == 0
    assert json.loads((out / "spec.json").read_text())["transforms"][0]["bits"] == 8
    capsys.readouterr()
    assert program(["quantise", str(out), str(tmp_path / "again")]) == 2
    said = capsys.readouterr().err
    assert "in whole numbers already" in said
    assert "the model that it was made from" in said
    assert not (tmp_path / "again").exists()
    assert program(["export", str(out), "hf", str(tmp_path / "hf")]) == 2
    assert "quantise" in capsys.readouterr().err


def test_an_untied_head_gets_bits_of_its_own_and_a_tied_one_stays(tmp_path):
    untied = quantise(saved(tmp_path / "untied", "llama", tie_word_embeddings=False), tmp_path / "one", 4, group=16)
    assert [(t.bits, t.targets) for t in untied.transforms] == [(4, ("*.blocks.*",)), (8, ("head.vocabulary",))]
    assert load(tmp_path / "one", say=lambda line: None).model.head.vocabulary.weight.dtype == torch.int8
    assert untied.after < untied.before / 2
    tied = saved(tmp_path / "tied", "llama", tie_word_embeddings=True, hidden_size=48)
    done = quantise(tied, tmp_path / "two", 4, group=16)
    assert len(done.transforms) == 1
    told = "head.vocabulary is the embedding table and stays as it is: a table of 48 channels has no blocks"
    assert done.notes == (told,)


def test_a_tied_head_and_its_table_are_stored_in_eight_bits(tmp_path):
    folder = saved(tmp_path / "tied", "llama", tie_word_embeddings=True, hidden_size=64)
    done = quantise(folder, tmp_path / "small", 4)
    assert done.transforms[1] == StoredBlocks(parameters=("embed.token.weight Q8_0",))
    assert "Q8_0" in done.notes[0]
    lm, plain = load(tmp_path / "small", say=lambda line: None), load(folder, say=lambda line: None)
    assert lm.model.embed.token.weight is lm.model.head.vocabulary.weight
    assert lm.model.embed.token.weight.dtype == torch.uint8
    ids = [plain.tokenizer.encode("the cat sat")]
    assert 0 < float((lm.logits(ids) - plain.logits(ids)).abs().max()) < 0.3 * float(plain.logits(ids).abs().max())
    kept = quantise(folder, tmp_path / "kept", 4, head=None)
    assert len(kept.transforms) == 1
    assert kept.after > done.after


def test_numbers_are_chosen_for_a_text(tmp_path, capsys):
    folder, text = saved(tmp_path / "llama", "llama"), tmp_path / "text.txt"
    text.write_text(TEXT * 3)
    words = ["quantise", str(folder), str(tmp_path / "out"), "--group", "16", "--calibrate", str(text)]
    assert program(words) == 2
    assert "--bits 4" in capsys.readouterr().err
    assert program([*words, "--bits", "4"]) == 0
    plain = quantise(folder, tmp_path / "plain", 4, group=16)
    chosen = load(tmp_path / "out", say=lambda line: None)
    assert chosen.model.transforms == plain.transforms
    name = "stack.blocks.0.feed_forward.branch.up.weight"
    other = load(tmp_path / "plain", say=lambda line: None).model.get_parameter(name)
    assert not torch.equal(chosen.model.get_parameter(name), other)


def test_some_matrices_keep_eight_bits(tmp_path, capsys):
    folder, text = saved(tmp_path / "llama", "llama"), tmp_path / "text.txt"
    text.write_text(TEXT * 3)
    words = ["quantise", str(folder), str(tmp_path / "out"), "--bits", "4", "--eight-bits", "*.v", "*.down"]
    assert program([*words, "--calibrate", str(text)]) == 0
    said = capsys.readouterr().out
    assert "int8, one scale for up to 256 inputs: *.v, *.down" in said
    model = load(tmp_path / "out", say=lambda line: None).model
    kinds = {name.split(".")[-2]: p.dtype for name, p in model.stack.named_parameters() if name.endswith(".weight")}
    assert {name for name, dtype in kinds.items() if dtype == torch.int8} == {"v", "down"}
    assert {kinds["q"], kinds["up"]} == {torch.uint8}
    assert program(["quantise", str(folder), str(tmp_path / "two"), "--eight-bits", "*.v"]) == 2
    assert "every matrix has 8 bits already" in capsys.readouterr().err
    assert program([*words[:-1], "*.dwn", "--overwrite"]) == 2
    assert "dwn" in capsys.readouterr().err


def test_eight_bits_share_a_scale_among_256_inputs(tmp_path):
    done = quantise(saved(tmp_path / "llama", "llama", hidden_size=512), tmp_path / "out")
    assert done.transforms[0].group == 256
    model = load(tmp_path / "out", say=lambda line: None).model
    assert model.stack.blocks[0].attention.branch.q.weight_scale.shape[1] == 2
