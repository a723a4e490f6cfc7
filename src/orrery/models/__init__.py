"""Assemblies of bricks: decoder, encoder, encoder-decoder, recurrences, word vectors."""
