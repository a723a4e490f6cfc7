"""Loops compiled by numba, where it is installed: a decoder's step, int8 and int4, word vectors."""
