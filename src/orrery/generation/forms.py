"""Forms over several vocabularies, held by processes as this system allows."""

import os
import threading
from collections import OrderedDict
from typing import final

from orrery.generation.forms_alone import FormsAlone
from orrery.generation.forms_apart import FormsApart
from orrery.generation.grammar import Form
from orrery.generation.guides import Begin
from orrery.generation.vocabulary import TokenVocabulary

VOCABULARIES = 4
"""Vocabularies over which forms are held at once, each by a process with all tokens; that of the longest ago ends."""


@final
class FormsOfVocabularies:
    """The processes that hold forms, by the vocabulary that they are over.

    Args:
        glance: as in `FormsApart`.
    """

    def __init__(self, glance: float | None = None) -> None:
        self._lock, self._glance = threading.Lock(), glance
        self._compilers: OrderedDict[TokenVocabulary, FormsApart | FormsAlone] = OrderedDict()

    def begin(self, form: Form, vocabulary: TokenVocabulary) -> Begin:
        """Return what begins the guide of an answer; errors as in `FormsApart`."""
        gone = None
        with self._lock:
            compiler = self._compilers.pop(vocabulary, None) or self._over(vocabulary)
            self._compilers[vocabulary] = compiler
            if len(self._compilers) > VOCABULARIES:
                _, gone = self._compilers.popitem(last=False)
        if gone is not None:
            gone.close()
        return compiler.begin(form)

    def _over(self, vocabulary: TokenVocabulary) -> FormsApart | FormsAlone:
        """Return what holds forms over a vocabulary on this system."""
        if hasattr(os, "fork"):
            return FormsApart(vocabulary, self._glance)
        return FormsAlone(vocabulary, self._glance)

    def close(self) -> None:
        """End them."""
        with self._lock:
            for compiler in self._compilers.values():
                compiler.close()
            self._compilers.clear()
