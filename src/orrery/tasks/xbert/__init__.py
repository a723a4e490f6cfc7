"""Ranking thousands of labels: linear classifiers of the labels of a cluster, and simpler methods beside them."""
