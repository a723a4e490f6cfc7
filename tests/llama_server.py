"""llama.cpp in a process of its own: ``python llama_server.py FILE`` prints where it answers, until it is killed.

Its server waits for threads when it is destroyed, and on a busy machine sometimes for ever: a test must not.
"""

import sys

import xllamacpp


def main() -> None:
    """Load a file, to compute on one thread with a cache in float32."""
    settings = xllamacpp.CommonParams()
    settings.model.path = sys.argv[1]
    settings.n_ctx, settings.n_parallel, settings.verbosity = 64, 1, 0
    settings.warmup, settings.fit_params, settings.cache_prompt = False, False, False
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.cache_type_k = settings.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    settings.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    server = xllamacpp.Server(settings)
    print(f"\n{server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
