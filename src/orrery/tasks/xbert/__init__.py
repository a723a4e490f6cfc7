"""Ranking thousands of labels: linear classifiers of the labels of a cluster, and simpler methods beside them."""

CLUSTERS = 10
"""That are searched unless told otherwise, as PECOS does."""
