"""Golden outputs of the families that no library has: their papers' formulas, one sentence and one word at a time."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from orrery.laws import questions
from tests.goldens import bimamba, matrix_memories, state_spaces
from tests.goldens.weights import VOCABULARY, WIDTH, Formula, Weights

OWN = "decoder.blocks.0.cross.branch"


def engine(w: Weights, name: str, end: str, x: Tensor, h: Tensor, gates: int) -> tuple[Tensor, Tensor]:
    """Return what the word and what the state give to the gates, under the names of torch's engines."""
    new, old = (
        w.take(f"{name}.weight_{side}_{end}", gates * len(h), len(v)) @ v
        + w.take(f"{name}.bias_{side}_{end}", gates * len(h))
        for side, v in (("ih", x), ("hh", h))
    )
    return new, old


def lstm(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """``c' = f c + i g``, ``h' = o tanh(c')``; the gates stand in the order i, f, g, o."""
    i, f, g, o = gates.split(len(c))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gru(new: Tensor, old: Tensor, h: Tensor) -> Tensor:
    """``h' = (1 - z) tanh(W x + r (U h)) + z h``; the gates stand in the order r, z, n."""
    (wr, wz, wn), (ur, uz, un) = new.split(len(h)), old.split(len(h))
    z = torch.sigmoid(wz + uz)
    return (1 - z) * torch.tanh(wn + torch.sigmoid(wr + ur) * un) + z * h


def zeros(width: int = WIDTH) -> Tensor:
    return torch.zeros(width, dtype=torch.float64)


def language_model(kind: str, layers: int = 2, width: int = 16) -> Formula:
    """Return a recurrent language model: layers on top of each other, each reading what the one below said."""

    def run(w: Weights, ids: Tensor) -> Tensor:
        said = w.words(ids, width)
        for layer in range(layers):
            name, h, c, heard = f"stack.blocks.{layer}.recurrence.branch.engine", zeros(width), zeros(width), said
            said = []
            for x in heard:
                new, old = engine(w, name, "l0", x, h, {"rnn": 1, "gru": 3, "lstm": 4}[kind])
                if kind == "lstm":
                    h, c = lstm(new + old, c)
                else:
                    h = gru(new, old, h) if kind == "gru" else torch.tanh(new + old)
                said.append(h)
        return torch.stack([w.head(x) for x in said])

    return run


def nplm(order: int, direct: bool, width: int = 16) -> Formula:
    """Return ``y = b + U (tanh(d + H x) + K x + k)``, x the last ``order - 1`` words' vectors, the newest first."""

    def run(w: Weights, ids: Tensor) -> Tensor:
        words, logits = w.words(ids, width), []
        for t in range(len(ids)):
            x = torch.cat([words[t - ago] if t >= ago else zeros(width) for ago in range(order - 1)])
            mixed = torch.tanh(w.linear("stack.blocks.0.words.branch.matrices.hidden", x, width))
            if direct:
                mixed = mixed + w.linear("stack.blocks.0.words.branch.matrices.direct", x, width)
            logits.append(w.head(mixed))
        return torch.stack(logits)

    return run


def read_gru(w: Weights, words: list[Tensor], end: str) -> list[Tensor]:
    h, said = zeros(), []
    for x in words:
        h = gru(*engine(w, "reader.engine", end, x, h, 3), h)
        said.append(h)
    return said


def search(w: Weights, memory: list[Tensor], target: Tensor) -> Tensor:
    """Bahdanau et al. 2015, appendix A.2: look, step, and speak by a maxout layer."""
    s, logits = torch.tanh(w.linear(f"{OWN}.first", memory[0], WIDTH)), []
    for word in w.words(target):
        asked = w.linear(f"{OWN}.scoring.q", s, WIDTH, bias=False)
        tried = [torch.tanh(asked + w.linear(f"{OWN}.scoring.k", m, WIDTH, bias=False)) for m in memory]
        energies = torch.cat([w.linear(f"{OWN}.scoring.v", t, 1, bias=False) for t in tried])
        c = energies.softmax(0) @ torch.stack(memory)
        spoken = w.linear(f"{OWN}.readout", torch.cat([s, c, word]), 2 * WIDTH).reshape(-1, 2).amax(1)
        new = w.linear(f"{OWN}.word", word, 3 * WIDTH) + w.linear(f"{OWN}.context", c, 3 * WIDTH, bias=False)
        s = gru(new, w.linear(f"{OWN}.state", s, 3 * WIDTH), s)
        logits.append(w.head(spoken))
    return torch.stack(logits)


def rnnsearch(w: Weights, target: Tensor, source: Tensor) -> Tensor:
    words = w.words(source)
    there, back = read_gru(w, words, "l0"), read_gru(w, words[::-1], "l0_reverse")[::-1]
    return search(w, [torch.cat(pair) for pair in zip(there, back, strict=True)], target)


def rnnenc(w: Weights, target: Tensor, source: Tensor) -> Tensor:
    summary = torch.tanh(w.linear("reader.summary", read_gru(w, w.words(source), "l0")[-1], WIDTH))
    return search(w, [summary], target)


def stacked(
    w: Weights, name: str, words: list[Tensor], layers: int
) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
    """Return the top h of every word, and the last h and c of each layer."""
    last = []
    for layer in range(layers):
        h, c, said = zeros(), zeros(), []
        for x in words:
            h, c = lstm(sum(engine(w, name, f"l{layer}", x, h, 4)), c)
            said.append(h)
        words = said
        last.append((h, c))
    return words, last


def step(w: Weights, x: Tensor, states: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """Step through a decoder's layers; the first one's word has been multiplied already."""
    after = []
    for layer, (h, c) in enumerate(states):
        if layer:
            x = w.linear(f"{OWN}.layers.inputs.{layer - 1}", after[-1][0], 4 * WIDTH)
        after.append(lstm(x + w.linear(f"{OWN}.layers.states.{layer}", h, 4 * WIDTH), c))
    return after[-1][0], after


def sutskever(w: Weights, target: Tensor, source: Tensor) -> Tensor:
    states, logits = stacked(w, "reader.reader.engine", w.words(source)[::-1], 2)[1], []
    for word in w.words(target):
        h, states = step(w, w.linear(f"{OWN}.word", word, 4 * WIDTH), states)
        logits.append(w.head(h))
    return torch.stack(logits)


def luong(score: str) -> Formula:
    """Return Luong et al. 2015: step, look, and feed what was found into the next step."""

    def scored(w: Weights, h: Tensor, m: Tensor) -> Tensor:
        if score == "dot":
            return h @ m
        if score == "general":
            return h @ w.take(f"{OWN}.scoring.k.weight", WIDTH, WIDTH) @ m
        both = [w.take(f"{OWN}.scoring.{part}.weight", WIDTH, WIDTH) for part in "qk"]
        return (w.take(f"{OWN}.scoring.v.weight", 1, WIDTH) @ torch.tanh(torch.cat(both, 1) @ torch.cat([h, m])))[0]

    def run(w: Weights, target: Tensor, source: Tensor) -> Tensor:
        memory, states = stacked(w, "reader.engine", w.words(source), 2)
        fed, logits = zeros(), []
        for word in w.words(target):
            x = w.linear(f"{OWN}.word", word, 4 * WIDTH) + w.linear(f"{OWN}.fed", fed, 4 * WIDTH, bias=False)
            h, states = step(w, x, states)
            c = torch.stack([scored(w, h, m) for m in memory]).softmax(0) @ torch.stack(memory)
            fed = torch.tanh(w.linear(f"{OWN}.combine", torch.cat([c, h]), WIDTH, bias=False))
            logits.append(w.head(fed))
        return torch.stack(logits)

    return run


def transformer(width: int, heads: int, hidden: int, eps: float) -> Formula:
    """Return Vaswani et al. 2017, section 3, query by query and head by head."""
    channels = width // heads

    def attention(w: Weights, name: str, x: list[Tensor], memory: list[Tensor], causal: bool) -> list[Tensor]:
        q = [w.linear(f"{name}.q", v, width) for v in x]
        k, v = ([w.linear(f"{name}.{part}", m, width) for m in memory] for part in "kv")
        mixed = []
        for i in range(len(x)):
            seen, out = range(i + 1 if causal else len(memory)), []
            for part in (slice(channels * h, channels * (h + 1)) for h in range(heads)):
                scores = torch.stack([q[i][part] @ k[j][part] for j in seen]) / math.sqrt(channels)
                out.append(scores.softmax(0) @ torch.stack([v[j][part] for j in seen]))
            mixed.append(w.linear(f"{name}.out", torch.cat(out), width))
        return mixed

    def normed(w: Weights, name: str, x: list[Tensor], added: list[Tensor]) -> list[Tensor]:
        sums = [a + b for a, b in zip(x, added, strict=True)]
        centred = [s - s.mean() for s in sums]
        gain, bias = w.take(f"{name}.weight", width), w.take(f"{name}.bias", width)
        return [c / torch.sqrt((c * c).mean() + eps) * gain + bias for c in centred]

    def layer(w: Weights, name: str, x: list[Tensor], memory: list[Tensor] | None) -> list[Tensor]:
        own = attention(w, f"{name}.attention.branch", x, x, causal=memory is not None)
        x = normed(w, f"{name}.attention.out", x, own)
        if memory is not None:
            x = normed(w, f"{name}.cross.out", x, attention(w, f"{name}.cross.branch", x, memory, causal=False))
        branch = f"{name}.feed_forward.branch"
        added = [w.linear(f"{branch}.down", w.linear(f"{branch}.up", v, hidden).clamp(min=0), width) for v in x]
        return normed(w, f"{name}.feed_forward.out", x, added)

    def placed(w: Weights, ids: Tensor) -> list[Tensor]:
        rows = []
        for k, word in enumerate(w.words(ids, width)):
            angles = [k / 10_000 ** (2 * (c // 2) / width) for c in range(width)]
            where = [math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(angles)]
            rows.append(word * math.sqrt(width) + torch.tensor(where, dtype=torch.float64))
        return rows

    def run(w: Weights, target: Tensor, source: Tensor) -> Tensor:
        x, y = placed(w, source), placed(w, target)
        for n in range(2):
            x = layer(w, f"encoder.blocks.{n}", x, None)
        for n in range(2):
            y = layer(w, f"decoder.blocks.{n}", y, x)
        return torch.stack(y) @ w.take("embed.token.weight", VOCABULARY, width).T

    return run


RECURRENT = {"vocab_size": VOCABULARY, "hidden_size": 16, "num_layers": 2, "max_position_embeddings": 48}
PAIRS = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "max_position_embeddings": 48}
ATTENTION = {
    "vocab_size": VOCABULARY,
    "d_model": 24,
    "d_ff": 20,
    "num_layers": 2,
    "num_heads": 3,
    "layer_norm_eps": 0.01,
    "max_position_embeddings": 48,
}
FORMULAS: dict[str, list[tuple[str, dict[str, Any], Formula]]] = {
    "elman_rnn": [("two layers", RECURRENT, language_model("rnn"))],
    "gru": [("two layers", RECURRENT, language_model("gru"))],
    "lstm": [("two layers", RECURRENT, language_model("lstm"))],
    "nplm": [
        (
            "order 4",
            {"vocab_size": VOCABULARY, "hidden_size": 16, "order": 4, "max_position_embeddings": 48},
            nplm(4, True),
        ),
        (
            "order 2, not direct",
            {
                "vocab_size": VOCABULARY,
                "hidden_size": 16,
                "order": 2,
                "direct": False,
                "max_position_embeddings": 48,
            },
            nplm(2, False),
        ),
    ],
    "rnnenc": [("appendix A", PAIRS, rnnenc)],
    "rnnsearch": [("appendix A.2", PAIRS, rnnsearch)],
    "sutskever": [("two layers", {**PAIRS, "num_layers": 2}, sutskever)],
    "luong": [
        (score, {**PAIRS, "num_layers": 2, "score": score}, luong(score)) for score in ("dot", "general", "concat")
    ],
    "transformer": [("section 3", ATTENTION, transformer(24, 3, 20, 0.01))],
    **matrix_memories.FORMULAS,
    **bimamba.FORMULAS,
    **state_spaces.FORMULAS,
}
ARCHITECTURES = {
    "elman_rnn": "ElmanRNNLanguageModel",
    "gru": "GRULanguageModel",
    "lstm": "LSTMLanguageModel",
    "nplm": "NPLMLanguageModel",
    "rnnenc": "RNNEncoderDecoder",
    "rnnsearch": "RNNsearch",
    "sutskever": "SutskeverSeq2Seq",
    "luong": "LuongAttention",
    "transformer": "Transformer",
    **matrix_memories.ARCHITECTURES,
    **bimamba.ARCHITECTURES,
    **state_spaces.ARCHITECTURES,
}
ENCODERS = ("bimamba",)
READERS = ("rnnenc", "rnnsearch", "sutskever", "luong", "transformer")


def cases(family: str) -> list[dict[str, Any]]:
    """Return the golden models of a family."""
    return [
        {
            "name": name,
            "by": "the formulas",
            "architecture": ARCHITECTURES[family],
            "config": config,
            "found": answered(family, formula),
        }
        for name, config, formula in FORMULAS.get(family, ())
    ]


def answered(family: str, formula: Formula) -> dict[str, Any]:
    """Return the sums, the loss, and the gradients' norm and slope."""
    reads, w = family in READERS, Weights()
    rows = questions.texts(VOCABULARY, questions.TARGETS if reads else questions.LENGTHS)
    sources = [(source,) for source in questions.sources(VOCABULARY)] if reads else [()] * len(rows)
    logits = [formula(w, row, *source) for row, source in zip(rows, sources, strict=True)]
    numbers = questions.summary([[x.detach()] for x in logits])
    if family in ENCODERS:
        loss = questions.distance([[x] for x in logits])
    else:
        loss = F.cross_entropy(torch.cat([x[:-1] for x in logits]), torch.cat([row[1:] for row in rows]))
    loss.backward()
    gradients = {name: torch.zeros_like(x) if x.grad is None else x.grad for name, x in w.items()}
    return {**numbers, "loss": float(loss.detach()), **questions.slope(gradients)}
