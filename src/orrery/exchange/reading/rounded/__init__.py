"""Folders whose matrices another program rounded: GPTQ, AWQ, FP8, MXFP4, bitsandbytes, compressed-tensors, ModelOpt."""
