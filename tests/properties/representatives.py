"""One family of each kind of mixing, for tests that draw many examples; the laws themselves run on all."""

from orrery.families import names

DECODERS = [name for name in ("gpt2", "llama", "bloom", "gemma2", "deepseek_v3", "t5") if name in names()]
ENCODERS = [name for name in ("bert", "deberta_v2", "modernbert") if name in names()]
CAUSAL = [
    name for name in ("gpt2", "llama", "mistral", "bloom", "gemma2", "deepseek_v3", "gru", "nplm") if name in names()
]
WRITERS = [name for name in ("t5", "bart", "rnnsearch", "luong") if name in names()]
