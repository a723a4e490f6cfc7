"""GGUF files of encoder-decoders: each half is llama.cpp's, and both together are the makers'.

The server of llama.cpp does not read with the encoder before it writes: its decoder looks at nothing. So the decoder is
compared with ours whose cross-attention is silent, and the encoder as the file of an encoder alone.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
import transformers

from gguf_files import _type, finish, rewritten
from orrery.checkpoints.gguf_file import GgufFile
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.exporting.export import export_gguf
from orrery.exchange.reading.read import read
from orrery.exchange.saving.import_model import import_model
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.language_model.load import load
from orrery.models.model import LANGUAGE_MODEL
from orrery.studies.bench.llama_cpp import LlamaCpp
from orrery.tuning import merge
from tests.parity.oracle import modelling, randomise, widened
from tests.parity.test_gguf import continued, llama, round_gelu
from tiny_models import TOKENIZER

SIZES = {
    "d_model": 32, "d_kv": 8, "d_ff": 64, "num_heads": 4, "num_layers": 3, "num_decoder_layers": 2,
    "relative_attention_num_buckets": 8, "relative_attention_max_distance": 128, "n_positions": 64,
    "decoder_start_token_id": 70,
}  # fmt: skip
FREE = {"tie_word_embeddings": False}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("t5", {}),
    ("t5", {**FREE, "feed_forward_proj": "gated-gelu", "d_kv": 16, "relative_attention_num_buckets": 32}),
    ("mt5", FREE),
    ("umt5", FREE),
]
TEXTS = ("the cat", "the mat sat on the dog and the log, the cat", "dog")
IDS = torch.randint(1, 30, (2, 12), generator=torch.Generator().manual_seed(0))
CLASSES = {"t5": "T5", "mt5": "MT5", "umt5": "UMT5"}


def saved(folder: Path, family: str, **config: Any) -> Path:
    """Save a random model that writes ASCII only: llama.cpp tells the numbers of whole characters alone."""
    rules = load_family(family)
    config = {**rules.TINY, **SIZES, "vocab_size": TOKENIZER.size, **config}
    model: Any = rules.spec(config).build(0).eval()
    randomise(model, seed=1)
    shown = [TOKENIZER.decode_bytes([id]).isascii() and id not in TOKENIZER.control for id in range(TOKENIZER.size)]
    with torch.no_grad():
        for table in {model.reader.embed.token.weight, model.head.vocabulary.weight}:
            table[~torch.tensor(shown)] = 0.0
    save_model(folder, model, family, config, TOKENIZER)
    return folder


def written(folder: Path, family: str, **config: Any) -> Path:
    """Save a model as ``model`` and its export beside it; return the export."""
    return export_gguf(read(saved(folder / "model", family, **config)), folder / "x.gguf", "f32").path


def logits(model: Any, source: torch.Tensor = IDS, target: torch.Tensor = IDS) -> torch.Tensor:
    with torch.no_grad():
        return model({"source": source, "ids": target}, (LANGUAGE_MODEL,))[LANGUAGE_MODEL]


def decoder_distance(model: Any, reader: LlamaCpp, text: str) -> float:
    """Return how far the probabilities of the decoder alone are from llama.cpp's, in nats at the worst place."""
    prompt, answer = TOKENIZER.encode(text), continued(reader, text)
    row = torch.tensor([prompt + answer["tokens"]])
    silent = [
        block.cross.branch.register_forward_hook(lambda module, given, made: torch.zeros_like(made))
        for block in model.decoder.blocks
    ]
    whole = logits(model, row, row) * (model.spec.width**0.5 if model.spec.head.tied else 1.0)
    for hook in silent:
        hook.remove()
    ours = whole[0, len(prompt) - 1 : -1].log_softmax(-1)
    tops = [(place, top) for place, one in enumerate(answer["completion_probabilities"]) for top in one["top_logprobs"]]
    assert len(tops) == 16 * 5
    return max(abs(float(ours[place, top["id"]]) - top["logprob"]) for place, top in tops)


def encoder_of(source: Path, target: Path) -> Path:
    """Write the file of the encoder alone, which llama.cpp knows by another name."""
    file, writer = GgufFile(source), gguf.GGUFWriter(target, "t5encoder")
    for key, value in file.facts.items():
        if key != "general.architecture" and not key.startswith("t5.decoder"):
            writer.add_key_value(re.sub(r"^t5\.", "t5encoder.", key), value, _type(value))
    writer.add_causal_attention(False)
    for name in file:
        if not name.startswith(("dec.", "output.")):
            writer.add_tensor(name, file[name].numpy())
    finish(writer)
    return target


@pytest.mark.parametrize(("family", "config"), CASES, ids=str)
def test_both_halves_are_those_of_llama_cpp(family: str, config: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path, family, **config)
    ours: Any = load(path, say=lambda line: None).model
    round_gelu(ours)
    bound = 2e-5 if config == {} else 2e-3  # the rounding of gelu
    writes = llama(path)
    assert max(decoder_distance(ours, writes, text) for text in TEXTS) < bound
    reads = LlamaCpp(encoder_of(path, tmp_path / "reads.gguf"), "", 1, 64, 1, exact=True, embeds=True)
    for text in TEXTS:
        theirs = torch.tensor(reads.ask("/embedding", content=text)[0]["embedding"])  # type: ignore[index]  # a list
        with torch.no_grad():
            stream = ours.reader.hidden(torch.tensor([TOKENIZER.encode(text)]))[0]
        assert (stream - theirs).abs().max() < bound
    name = "decoder.blocks.1.attention.branch.k.weight"
    ours.get_parameter(name).data.mul_(1.5)
    assert decoder_distance(ours, writes, TEXTS[0]) > 10 * bound


def of_the_makers(family: str, folder: Path) -> torch.Tensor:
    """Return the logits of transformers, which scales those of every UMT5 as if its head were tied."""
    kind = getattr(transformers, f"{CLASSES[family]}ForConditionalGeneration")
    model = kind.from_pretrained(folder, attn_implementation="eager").eval().double()
    with torch.no_grad(), widened(modelling(family)):
        made: torch.Tensor = model(input_ids=IDS, decoder_input_ids=IDS).logits
    return made * (SIZES["d_model"] ** 0.5 if family == "umt5" else 1.0)


@pytest.mark.parametrize(("family", "config"), CASES, ids=str)
def test_a_file_is_the_makers_model_and_ours_again(family: str, config: dict[str, Any], tmp_path: Path) -> None:
    path = written(tmp_path, family, **config)
    again, before = read(path), read(tmp_path / "model")
    assert again.family == ("t5" if family == "mt5" else family)
    assert torch.equal(logits(again.model), logits(before.model))
    import_model(path, tmp_path / "imported")
    ours = logits(again.model.double())
    for made, folder in ((family, "model"), (again.family or "", "imported")):
        assert (ours - of_the_makers(made, tmp_path / folder)).abs().max() < 1e-9
    assert again.model.first_token == 70
    named = {gguf.TENSOR_NAMES[kind] for kind in gguf.MODEL_TENSORS[gguf.MODEL_ARCH.T5]}
    assert {re.sub(r"\d+", "{bid}", name.removesuffix(".weight")) for name in GgufFile(path)} <= named


@pytest.mark.parametrize(("family", "config"), CASES, ids=str)
def test_blocks_are_the_unpacked_model(family: str, config: dict[str, Any], tmp_path: Path) -> None:
    stored = read(rewritten(written(tmp_path, family, **config), tmp_path / "y.gguf", "Q4_0", only=no_table))
    kinds = {name for name, parameter in stored.model.named_parameters() if parameter.dtype == torch.uint8}
    assert {"reader.embed.token.weight", "decoder.blocks.1.cross.branch.q.weight"} <= kinds
    wide = logits(stored.model.double())
    assert (wide - logits(merge(stored.model))).abs().max() <= 1e-12 * wide.abs().max()


def no_table(name: str) -> bool:
    return "attn_rel_b" not in name


def test_what_a_file_may_lack_or_have_besides(tmp_path: Path) -> None:
    """The first checkpoints have a table that nothing reads, and files of stacks alike do not say how deep each is."""
    path = written(tmp_path, "t5", num_layers=2)
    plain = logits(read(path).model)

    def with_table(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {**tensors, "dec.blk.0.cross_attn_rel_b.weight": torch.ones(8, 4)}

    besides = rewritten(path, tmp_path / "b.gguf", "F32", {"t5.decoder_block_count": None}, others=with_table)
    assert torch.equal(logits(read(besides).model), plain)
    with pytest.raises(ModelFileError, match=r"c\.gguf: attention\.value_length = 4 beside keys of 8"):
        read(rewritten(path, tmp_path / "c.gguf", "F32", {"t5.attention.value_length": 4}))


def test_what_llama_cpp_would_take_otherwise_is_noted_or_refused(tmp_path: Path) -> None:
    tied = export_gguf(read(saved(tmp_path / "tied", "t5")), tmp_path / "x.gguf", "f32")
    assert any("the scale of a tied head" in note for note in tied.notes)
    free = export_gguf(read(saved(tmp_path / "free", "t5", **FREE)), tmp_path / "y.gguf", "f32")
    assert not any("tied" in note for note in free.notes)
    for number, (changed, told) in enumerate(
        [
            ({"relative_attention_max_distance": 12}, "furthest = 12 (a reader takes 128)"),
            ({"feed_forward_proj": "gated-silu"}, "activation = silu"),
            ({"scale_decoder_outputs": False}, "head.transform.kind = nn.residual.Identity"),
        ]
    ):
        with pytest.raises(UsageError) as refused:
            export_gguf(read(saved(tmp_path / f"{number}", "t5", **changed)), tmp_path / "z.gguf", "f32")
        assert told in refused.value.message
