"""Faults to put into a copy of the source: one brick of the mathematics wrong in each, as bugs really are."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Break:
    """One fault: in a file below ``src/orrery``, a text that stands there once, and what takes its place."""

    name: str
    file: str
    right: str
    wrong: str


POSITIONS = (
    Break(
        "rotary rates",
        "nn/positions/rotary.py",
        "dtype=torch.float64) / width)\n\n\n@spec",
        "dtype=torch.float64) / (width - 2))\n\n\n@spec",
    ),
    Break(
        "rotation the other way",
        "nn/positions/rotary.py",
        "    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)",
        "    return torch.cat([a * cosine + b * sine, b * cosine - a * sine], dim=-1)",
    ),
    Break(
        "rotation always in halves",
        "nn/positions/rotary.py",
        "_rotate_neighbours if spec.interleaved else _rotate_halves",
        "_rotate_halves",
    ),
    Break(
        "partial rotation turns the last channels",
        "nn/positions/rotary.py",
        "self.rotate_pairs(x_BHLC[..., : self.width], self.cosine",
        "self.rotate_pairs(x_BHLC.flip(-1)[..., : self.width], self.cosine",
    ),
    Break(
        "linear scaling forgets its factor",
        "nn/positions/rotary.py",
        "return plain_rates(base, width) / self.factor",
        "return plain_rates(base, width)",
    ),
    Break(
        "llama 3.1's ramp is not clamped",
        "nn/positions/rotary.py",
        "(self.high_frequency - self.low_frequency)).clamp(0, 1)",
        "(self.high_frequency - self.low_frequency))",
    ),
    Break(
        "yarn's ramp is not truncated",
        "nn/positions/rotary.py",
        "        if self.truncate:\n",
        "        if not self.truncate:\n",
    ),
    Break(
        "yarn's temperature",
        "families/_rotary.py",
        "return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0",
        "return 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0",
    ),
    Break(
        "ALiBi's slopes begin at one",
        "nn/positions/alibi.py",
        "first = [2 ** (-8 * h / power)",
        "first = [2 ** (-8 * (h - 1) / power)",
    ),
    Break(
        "ALiBi's slopes between powers of two",
        "nn/positions/alibi.py",
        "range(1, 2 * power + 1, 2)]",
        "range(2, 2 * power + 2, 2)]",
    ),
    Break(
        "Falcon's ALiBi is not scaled",
        "nn/positions/alibi.py",
        "bias_BHS = self.scale * rounded_BHS",
        "bias_BHS = rounded_BHS",
    ),
    Break(
        "T5's buckets: where the logarithm begins",
        "nn/positions/relative.py",
        "    exact = count // 2\n",
        "    exact = count // 2 - 1\n",
    ),
    Break("T5's buckets: which direction", "nn/positions/relative.py", "half * (ahead > 0)", "half * (ahead < 0)"),
    Break(
        "OPT's and BART's offset of 2",
        "nn/positions/learned.py",
        "self.table(call.query.positions + self.offset)",
        "self.table(call.query.positions)",
    ),
    Break(
        "RoBERTa's offset",
        "families/_roberta.py",
        'offset = c["pad_token_id"] + 1',
        'offset = c["pad_token_id"]',
    ),
    Break(
        "sinusoidal rates", "nn/positions/sinusoidal.py", "(-math.log(base) / width)", "(-math.log(base) / (width - 2))"
    ),
    Break(
        "Pegasus' sines and cosines in turns",
        "nn/positions/sinusoidal.py",
        "    return torch.cat([sine, cosine], dim=-1)\n",
        "    return torch.stack([sine, cosine], dim=-1).flatten(-2)\n",
    ),
)
NORMS = (
    Break(
        "LayerNorm with the unbiased variance",
        "nn/norms.py",
        "        return F.layer_norm(x_BLD, self.shape, gain_D, self.bias, self.eps)\n",
        "        y = (x_BLD - x_BLD.mean(-1, keepdim=True)) / (x_BLD.var(-1, keepdim=True) + self.eps).sqrt()\n"
        "        y = y if gain_D is None else y * gain_D\n"
        "        return y if self.bias is None else y + self.bias\n",
    ),
    Break(
        "RMSNorm with epsilon outside the root",
        "nn/norms.py",
        "        return F.rms_norm(x_BLD.to(gain_D.dtype), gain_D.shape, gain_D, self.eps).to(x_BLD.dtype)\n",
        "        return x_BLD / (x_BLD.pow(2).mean(-1, keepdim=True).sqrt() + self.eps) * gain_D\n",
    ),
    Break(
        "Gemma's gain without its one",
        "nn/norms.py",
        "gain_D = self.weight + self.offset",
        "gain_D = self.weight + 0.0",
    ),
    Break("norms of heads with another epsilon", "nn/norms.py", "self.shape, eps=self.eps)", "self.shape, eps=1e-6)"),
    Break(
        "post-norm in front of the sum",
        "nn/residual.py",
        "self.out(self.skip(x_BLD) + added_BLD)",
        "self.skip(x_BLD) + self.out(added_BLD)",
    ),
    Break(
        "keys are not normalised",
        "nn/attention/multihead.py",
        "self.split(self.k_norm(self.k(read.stream_BSD)))",
        "self.split(self.k(read.stream_BSD))",
    ),
)
ATTENTION = (
    Break(
        "a window longer by one",
        "nn/masks.py",
        "query.positions - key.positions < self.length",
        "query.positions - key.positions <= self.length",
    ),
    Break("a window on both sides shorter by one", "nn/masks.py", ".abs() <= self.distance", ".abs() < self.distance"),
    Break(
        "the scale of the scores",
        "nn/attention/multihead.py",
        "spec.head_width**-0.5 if spec.scoring.scale is None",
        "spec.head_width**-1.0 if spec.scoring.scale is None",
    ),
    Break(
        "the order of grouped heads",
        "nn/attention/multihead.py",
        "        kv = read.keep(project)\n",
        "        kv = read.keep(project)\n"
        "        q_BHLC = q_BHLC.unflatten(1, (-1, kv.k_BKSC.shape[1])).transpose(1, 2).flatten(1, 2)\n",
    ),
    Break(
        "Gemma 2's cap of the scores",
        "nn/attention/kernels.py",
        "scores_BHLS = operands.cap * torch.tanh(scores_BHLS / operands.cap)",
        "scores_BHLS = scores_BHLS.clamp(-operands.cap, operands.cap)",
    ),
    Break(
        "gpt-oss' sinks",
        "nn/attention/multihead.py",
        "        return self.weight\n",
        "        return self.weight.exp()\n",
    ),
    Break(
        "padding seen by cross-attention",
        "models/session.py",
        "return PLAIN_FULL if self.real_BS is None else BoundMask(dense=self.real_BS[:, None, None], is_causal=False)",
        "return PLAIN_FULL",
    ),
    Break("DeepSeek's temperature is squared", "families/_deepseek.py", "temperature**2)", "temperature)"),
    Break(
        "the latent is not normalised", "nn/attention/latent.py", "self.norm(self.latent(x_BLD))", "self.latent(x_BLD)"
    ),
    Break(
        "DeBERTa's scale counts no terms",
        "families/_deberta.py",
        "scale=((1 + len(names)) * head_width) ** -0.5",
        "scale=head_width**-0.5",
    ),
    Break(
        "DeBERTa's distances from keys to queries",
        "nn/attention/disentangled.py",
        "_picked(k_BHSC @ queries_1HRC.mT, rows_BLS.mT).mT",
        "_picked(k_BHSC @ queries_1HRC.mT, rows_BLS).mT",
    ),
    Break(
        "Gopher's bias of the queries",
        "nn/attention/transformer_xl.py",
        "return q_BHLC + self.weight[:, None]",
        "return q_BHLC - self.weight[:, None]",
    ),
    Break("GPT-Neo divides its scores", "families/gpt_neo.py", "ScoreSettings(scale=1.0, ", "ScoreSettings("),
    Break(
        "OLMo's clip of the values",
        "families/olmo.py",
        "source=SelfSource.Spec(values=clip)",
        "source=SelfSource.Spec()",
    ),
)
FEED_FORWARD = (
    Break("gelu in the place of its tanh form", "nn/activations.py", 'partial(F.gelu, approximate="tanh")', "F.gelu"),
    Break(
        "the tanh form in the place of gelu",
        "nn/activations.py",
        '"gelu": F.gelu,',
        '"gelu": partial(F.gelu, approximate="tanh"),',
    ),
    Break(
        "the wrong side of the gate",
        "nn/feedforward/gated.py",
        "self.activation(self.before(self.gate(x_BLD))))\n"
        '        hidden_BLF = ctx.tap(self, "hidden", gate_BLF * self.up(x_BLD))',
        "self.before(self.gate(x_BLD)))\n"
        '        hidden_BLF = ctx.tap(self, "hidden", gate_BLF * self.activation(self.up(x_BLD)))',
    ),
    Break(
        "gpt-oss' one on the linear side", "nn/feedforward/clamped.py", "gate_BLF * (up_BLF + 1)", "gate_BLF * up_BLF"
    ),
    Break(
        "gpt-oss' gate clamped from below",
        "nn/feedforward/clamped.py",
        ".clamp(max=self.limit), ",
        ".clamp(-self.limit, self.limit), ",
    ),
    Break(
        "weights of experts that do not sum to one",
        "nn/feedforward/routers.py",
        "scores_NE / (scores_NE.sum(-1, keepdim=True) + self.eps) * self.scale",
        "scores_NE * self.scale",
    ),
    Break(
        "the scale of the experts' weights",
        "nn/feedforward/routers.py",
        "        return scores_NE * self.scale\n",
        "        return scores_NE\n",
    ),
    Break(
        "the correction of DeepSeek-V3's router",
        "nn/feedforward/routers.py",
        "self.choice.of(scores_NX + self.correction)",
        "self.choice.of(scores_NX)",
    ),
    Break("how groups of experts are judged", "nn/feedforward/routers.py", ".values.sum(-1)", ".values.amax(-1)"),
    Break(
        "shared experts",
        "nn/feedforward/moe.py",
        "            mixed_BLD = mixed_BLD + expert(x_BLD, ctx)\n",
        "            mixed_BLD = expert(x_BLD, ctx) * 1.0 + 0.5 * mixed_BLD\n",
    ),
    Break(
        "Qwen's gate of the shared expert",
        "nn/residual.py",
        "return torch.sigmoid(self.gate(x_BLD)) * self.branch(x_BLD, ctx)",
        "return self.branch(x_BLD, ctx)",
    ),
)
ENDS = (
    Break(
        "BERT's token types",
        "nn/embeddings.py",
        "torch.zeros_like(ids_BL) if token_types_BL is None else token_types_BL)",
        "torch.zeros_like(ids_BL))",
    ),
    Break(
        "BERT's pooled token",
        "nn/heads.py",
        "return x_BLD[:, 0] if real_BL is None else _at(x_BLD, real_BL.long().argmax(1))",
        "return x_BLD[:, 1] if real_BL is None else _at(x_BLD, real_BL.long().argmax(1) + 1)",
    ),
    Break(
        "ModernBERT's mean over padding", "nn/heads.py", "real_BL.sum(1, keepdim=True).clamp(min=1)", "x_BLD.shape[1]"
    ),
    Break(
        "Gemma's scale of the words", "families/_gemma.py", 'math.sqrt(c["hidden_size"])', 'math.sqrt(c["head_dim"])'
    ),
    Break(
        "Gemma 2's cap of the logits",
        "nn/elementwise.py",
        "return self.cap * torch.tanh(x / self.cap)",
        "return torch.tanh(x / self.cap)",
    ),
    Break(
        "Granite's scale of the branches",
        "families/_granite.py",
        'Scale.Spec(factor=c["residual_multiplier"])',
        'Scale.Spec(factor=c["residual_multiplier"] ** 0.5)',
    ),
    Break(
        "Granite's scale of the logits",
        "families/_granite.py",
        'factor=1 / c["logits_scaling"]',
        'factor=c["logits_scaling"]',
    ),
    Break(
        "Cohere's scale of the logits",
        "families/cohere.py",
        'cap=Scale.Spec(factor=c["logit_scale"])',
        'cap=Scale.Spec(factor=1 / c["logit_scale"])',
    ),
    Break(
        "T5's scale of its head",
        "families/t5.py",
        'Scale.Spec(factor=c["d_model"] ** -0.5)',
        'Scale.Spec(factor=c["d_model"] ** -1.0)',
    ),
    Break(
        "parallel branches one after the other",
        "nn/residual.py",
        "total_BLD = total_BLD + branch(x_BLD, ctx)",
        "total_BLD = total_BLD + branch(x_BLD + total_BLD, ctx)",
    ),
    Break("GPT-2's keys and values change places", "families/_gpt.py", 'for x in "qkv"', 'for x in "qvk"'),
)
RECURRENT = (
    Break(
        "the order of an LSTM's gates",
        "nn/recurrent/lstm.py",
        "i, f, g, o = mixed_BE.chunk(4, dim=-1)",
        "i, f, o, g = mixed_BE.chunk(4, dim=-1)",
    ),
    Break(
        "the reset gate before the product",
        "nn/recurrent/gru.py",
        "torch.tanh(new[2] + r * old[2])",
        "torch.tanh(r * (new[2] + old[2]))",
    ),
    Break(
        "Bahdanau's score",
        "nn/attention/alignment_score.py",
        "self.v(torch.tanh(self.q(q_BD)[:, None] + keys_BSE))[..., 0]",
        "self.v(self.q(q_BD)[:, None] + keys_BSE)[..., 0]",
    ),
    Break(
        "Bahdanau's maxout",
        "nn/recurrent/bahdanau.py",
        ".unflatten(-1, (-1, 2)).amax(-1)",
        ".unflatten(-1, (2, -1)).amax(-2)",
    ),
    Break(
        "Luong's order of context and state",
        "nn/recurrent/luong.py",
        "torch.cat([c_BD, h_BD], -1)",
        "torch.cat([h_BD, c_BD], -1)",
    ),
    Break(
        "Sutskever's source is not turned round",
        "nn/recurrent/encoders.py",
        "self.reader(x_BLD.flip(1), real_BL.flip(1))",
        "self.reader(x_BLD, real_BL)",
    ),
    Break(
        "Bengio's words, the oldest first",
        "nn/time_delay.py",
        "for ago in range(self.kept + 1)]",
        "for ago in reversed(range(self.kept + 1))]",
    ),
)
METHODS = (
    Break(
        "label smoothing",
        "nn/cross_entropy.py",
        "ignore_index=IGNORED, label_smoothing=label_smoothing\n",
        "ignore_index=IGNORED, label_smoothing=label_smoothing / 2\n",
    ),
    Break(
        "a micro-batch's own denominator",
        "training/step.py",
        "return term.sum * (term.weight / max(1, count))",
        "return term.sum * (term.weight / max(1, int(term.count)))",
    ),
    Break("dropout does not scale", "nn/residual.py", "keep.to(x.dtype).div_(1 - self.rate)", "keep.to(x.dtype)"),
    Break(
        "clipping by another norm",
        "training/parallel/placement.py",
        "clip_grad_norm_(parameters, limit)",
        'clip_grad_norm_(parameters, limit, float("inf"))',
    ),
    Break(
        "weight decay on vectors",
        "training/optimizers.py",
        '"weight_decay": decay if matrix else 0.0',
        '"weight_decay": decay',
    ),
    Break("Noam's warm-up", "training/schedules.py", "update * warmup**-1.5)", "update / warmup)"),
    Break(
        "the cosine begins at zero",
        "training/schedules.py",
        "math.cos(math.pi * progress(update, warmup, steps))",
        "math.cos(math.pi * progress(update, 0, steps))",
    ),
    Break(
        "the rate of the step before",
        "training/loop.py",
        "self.schedule(step + 1))\n            with self",
        "self.schedule(step or 1))\n            with self",
    ),
    Break(
        "validation as a mean of means",
        "metrics/_of_the_loss.py",
        "(term.weight * float(term.sum), term.count)",
        "(term.weight * float(term.sum) / float(term.count), 1)",
    ),
    Break(
        "the nucleus without the token that fills it",
        "generation/filters.py",
        "own_BN.cumsum(-1) - own_BN < p",
        "own_BN.cumsum(-1) < p",
    ),
    Break(
        "the repetition penalty of negative logits",
        "generation/filters.py",
        "torch.where(logits_BV > 0, logits_BV / self.penalty, logits_BV * self.penalty)",
        "logits_BV / self.penalty",
    ),
    Break("min-p without the greatest", "generation/filters.py", "self.p * mass_BV.amax(-1, keepdim=True)", "self.p"),
    Break("the length penalty", "generation/beams.py", "((5 + length) / 6) ** self.alpha", "length**self.alpha"),
    Break(
        "a beam that stops early",
        "generation/beams.py",
        "return sum(hypothesis.score >= bound for hypothesis in self.ended) >= wanted",
        "return len(self.ended) >= wanted",
    ),
)
BREAKS = (*POSITIONS, *NORMS, *ATTENTION, *FEED_FORWARD, *ENDS, *RECURRENT, *METHODS)
