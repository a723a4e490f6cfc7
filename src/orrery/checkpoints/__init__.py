"""Files of numbers: safetensors, reversible weight rules, manifests, atomic saves, GGUF."""
