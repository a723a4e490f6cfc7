"""Orrery: the complete Transformer system, from one-hot vectors to RLHF."""

__version__ = "0.1.0"
