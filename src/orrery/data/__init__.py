"""Readers of corpora and tables, cleaning, splits, shards, batches as a function of seed and step."""
