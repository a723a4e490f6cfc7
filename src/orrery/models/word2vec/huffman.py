"""The Huffman tree of hierarchical softmax: frequent words get short paths."""

import heapq

import numpy as np
from numpy.typing import NDArray


class HuffmanPaths:
    r"""For each word the inner nodes from the root down, and whether the path turns to the first child.

    Paper: Huffman 1952. No prefix code has a smaller mean length; the lengths satisfy Kraft's equality
    :math:`\sum_w 2^{-l(w)} = 1`. The root is the last of the ``len(counts) - 1`` inner nodes.
    """

    def __init__(self, counts: NDArray[np.int64]) -> None:
        words = len(counts)
        parent, first = np.zeros(2 * words - 1, np.int32), np.zeros(2 * words - 1, np.bool_)
        heap = [(int(count), number) for number, count in enumerate(counts)]
        heapq.heapify(heap)
        for node in range(words, 2 * words - 1):
            (small, one), (large, other) = heapq.heappop(heap), heapq.heappop(heap)
            parent[one] = parent[other] = node
            first[one] = True
            heapq.heappush(heap, (small + large, node))
        nodes: list[int] = []
        turns: list[bool] = []
        ends = np.zeros(words, np.int64)
        for word in range(words):
            path = _path(word, parent)
            nodes += [int(parent[node]) - words for node in reversed(path)]
            turns += [bool(first[node]) for node in reversed(path)]
            ends[word] = len(nodes)
        self.nodes, self.turns, self.ends = np.array(nodes, np.int32), np.array(turns, np.bool_), ends

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many inner nodes stand above each word."""
        return np.diff(self.ends, prepend=0)


def _path(word: int, parent: NDArray[np.int32]) -> list[int]:
    """Return the nodes from the word up to, and without, the root."""
    path = [word]
    while int(parent[path[-1]]) != len(parent) - 1:
        path.append(int(parent[path[-1]]))
    return path
