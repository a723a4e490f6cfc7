"""The bricks: torch and annotations only.

One legend of axes for the whole project, never rebound: **B** batch, **L** query length, **S** source (key)
length, **D** model width, **H** query heads, **K** key-value heads, **C** channels per head, **F** feed-forward
hidden width, **V** vocabulary, **X** experts, **R** low rank. A local name ends in its axes: ``scores_BHLS``.
"""
