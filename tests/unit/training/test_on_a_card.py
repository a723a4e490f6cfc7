"""A training on a GPU, which is simulated: batches, samples of an evaluation and what goes on meet the model there."""

import pytest
import torch
from safetensors.torch import load_file

from one_verb import run
from orrery.cli.train.app import train
from orrery.training import machine_rates
from simulated_card import simulated_card

RECIPE = """
name: card
seed: 1
model:
  family: llama
  config: {hidden_size: 16, intermediate_size: 32, num_hidden_layers: 1, num_attention_heads: 2,
           max_position_embeddings: 32}
  dropout: 0.1
tokenizer: {kind: character}
data: {train: text.txt, val: text.txt}
batches: {kind: crops, length: 8, size: 4}
objective: {kind: causal}
training:
  steps: 4
  precision: float32
  optimizer: {kind: adamw, rate: 0.003}
  schedule: {kind: constant}
evaluation: {every: 2, batches: 1, sample: "1 and"}
checkpoints: {every: 2}
"""


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_a_run_on_a_card_is_the_run_on_the_cpu_and_goes_on_as_it(tmp_path, monkeypatch, optimizer, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(machine_rates, "SIDES", {"cpu": 64})
    (tmp_path / "text.txt").write_text("".join(f"{n} and {n * n} are said.\n" for n in range(300)))
    (tmp_path / "card.yaml").write_text(RECIPE.replace("adamw", optimizer))
    run(train, "card.yaml", "--output", "cpu", "--training.device", "cpu")
    with simulated_card():
        run(train, "card.yaml", "--output", "card", "--training.device", "cuda")
        run(train, "card.yaml", "--output", "parts", "--training.device", "cuda", "--training.steps", "2")
        run(train, "parts", "--resume", "--training.steps", "4")
    assert "1 and" in capsys.readouterr().err
    cpu, card, parts = (load_file(f"{name}/final/model.safetensors") for name in ("cpu", "card", "parts"))
    assert cpu.keys() == card.keys() == parts.keys()
    for name in cpu:
        torch.testing.assert_close(card[name], cpu[name], rtol=1e-4, atol=1e-5)  # other kernels of attention
        assert parts[name].equal(card[name])
