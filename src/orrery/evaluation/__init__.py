"""What is measured of a model: perplexity, benchmarks, translations, retrieval, and floors beside them."""
