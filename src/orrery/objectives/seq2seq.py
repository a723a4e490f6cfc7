"""Sequence to sequence: each target token is predicted from the source and the true tokens before it."""

from orrery.objectives.causal import CausalLanguageModel

TeacherForced = CausalLanguageModel
"""``-log p(y_t | x, y_<t)``, with the true ``y_<t`` whatever the model would have written.

Williams and Zipser 1989 call it teacher forcing. It is next-token prediction by a model that has read a source: a batch
has ``source``, ``source_real``, ``ids`` (the start token, then the target) and ``targets`` (the target, then the end
token), -100 where there is none.
"""
