"""Scores of labels, entities, numbers, answers, rankings and texts; intervals and paired tests."""
