"""Folders whose matrices another program has rounded: GPTQ, AWQ, FP8, MXFP4, bitsandbytes, compressed-tensors, MLX."""
