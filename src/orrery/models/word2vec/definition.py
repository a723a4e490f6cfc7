r"""The plain definition of word2vec: {skip-gram, CBOW} x {full softmax, negative sampling, hierarchical softmax}.

Two vectors per word: v where a word is read, w where it is predicted. The two architectures differ in what they
read, :math:`h = \frac1n \sum_i v_i`: skip-gram one word, which predicts one neighbour of it (every pair of neighbours,
both ways round), CBOW all the words around a centre, which predict it. The three objectives differ in how h predicts.
The compiled kernel must equal this. Papers: Mikolov et al. 2013a (1301.3781), 2013b (1310.4546).
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import logsigmoid


def hidden(vectors: Float[Tensor, "V D"], inputs: Int[Tensor, " N"]) -> Float[Tensor, " D"]:
    """Return the mean vector of the words that are read: for skip-gram the one word's own."""
    return vectors[inputs].mean(0)


def full_softmax(
    hidden_D: Float[Tensor, " D"], weights: Float[Tensor, "V D"], word: Int[Tensor, ""]
) -> Float[Tensor, ""]:
    r"""Return :math:`-\log \frac{\exp(h \cdot w_o)}{\sum_x \exp(h \cdot w_x)}`, 2013b equation 2."""
    return -(weights @ hidden_D).log_softmax(0)[word]


def labelled_rows(
    hidden_D: Float[Tensor, " D"], rows: Float[Tensor, "R D"], labels: Bool[Tensor, " R"]
) -> Float[Tensor, ""]:
    r"""Return :math:`-\sum_k \log \sigma(\pm h \cdot w_k)`, plus where the label is true.

    Negative sampling (2013b equation 4): the rows are the predicted word, true, and the drawn words, false.
    Hierarchical softmax (2013b equation 3): the rows are the inner nodes from the root to the word, true where the
    path goes to the first child; the exponential of the negated sum is then the probability of the word.
    """
    scores_R = rows @ hidden_D
    return -logsigmoid(torch.where(labels, scores_R, -scores_R)).sum()
