"""The language model as a user meets it: text in, text, scores, numbers and the inside out."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.exchange import stored
from orrery.exchange.reading.read import Stored
from orrery.exchange.saving import stored as save
from orrery.exchange.saving.beside import copy_beside
from orrery.generation.row import Generation
from orrery.generation.scoring import Score
from orrery.generation.search import LengthPenalty
from orrery.generation.speculative import Speculation
from orrery.inspection.alignment import Alignment, align, no_source
from orrery.inspection.edits import Edit
from orrery.inspection.trace import Trace
from orrery.language_model import (
    captions,
    chat,
    cloze,
    generate,
    likelihoods,
    outputs,
    ranking,
    rewards,
    search,
    trace,
    tree,
    vectors,
    written,
)
from orrery.language_model.arguments import Ids, strings_of
from orrery.language_model.cloze import Filled
from orrery.language_model.guides import Demands
from orrery.language_model.likelihoods import Likelihood
from orrery.language_model.pictures import Picture
from orrery.language_model.ranking import PairScore, Ranked
from orrery.language_model.search import Beams, Found
from orrery.language_model.signatures import spelling_out
from orrery.language_model.sources import Source, sources
from orrery.language_model.texts import Text, Truncate, limits_of
from orrery.language_model.trace import Given, Row
from orrery.language_model.tree import DecodingTree
from orrery.language_model.vectors import TextVector
from orrery.models.default_device import doors_on_cpu_by_default
from orrery.models.model import Model
from orrery.models.pair_scores import PairScores
from orrery.models.sentence_vectors import Sentences
from orrery.schema.writing import Drawing, Form, Writing
from orrery.text import Tokenizer
from orrery.text.chat.messages import Message
from orrery.text.chat.render import ChatTemplate
from orrery.text.chat.spans.encoding import Rendered


@doors_on_cpu_by_default
class LanguageModel:
    """A model with its tokenizer; ``orrery.language_model.load.load`` makes one.

    Attributes:
        stored: what its folder holds: the model, and the tokenizer, chat templates and settings beside it.
        context: the most tokens of a row.
    """

    def __init__(self, stored: Stored) -> None:
        self.stored = stored
        self.context: int = stored.model.spec.context

    def __repr__(self) -> str:
        """Return where it comes from, and the tree of its parts."""
        text = f"tokenizer of {self.tokenizer.size:,} ids" if self.stored.tokenizer else "no tokenizer"
        return f"{type(self).__name__} {self.family or 'of its own spec'} from {self.folder}, {text}\n{self.model!r}"

    @property
    def model(self) -> Model:
        """The ``Decoder``, ``Encoder`` or ``EncoderDecoder``, in eval mode."""
        return self.stored.model

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer.

        Raises:
            ModelFileError: the model came without one.
        """
        return stored.tokenizer_of(self.stored)

    @property
    def family(self) -> str | None:
        """The ``model_type``, where the folder or its run names one."""
        return self.stored.family

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The family's configuration."""
        return self.stored.config

    @property
    def folder(self) -> Path:
        """Where the model was found."""
        return self.stored.folder

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return stored.device_of(self.stored)

    @property
    def end(self) -> frozenset[int]:
        """The ids that end a text: generation_config.json's, else config.json's, else the tokenizer's."""
        return stored.ends_of(self.stored)

    @spelling_out(Writing)
    def generate(
        self,
        text: Source,
        *,
        max_new_tokens: int | None = None,
        num_beams: int | None = None,
        length_penalty: float | int | None = None,
        stop: str | Sequence[str] = (),
        seed: int = 1337,
        stream: Callable[[str], None] | None = None,
        truncate: Truncate = None,
        edits: generate.Edits = (),
        **settings: Unpack[Writing],
    ) -> str:
        """Return a continuation of ``text``; ``generations`` tells why it ended, and takes several texts.

        What is not given is as generation_config.json says, or the same keys of an old config.json; where these draw
        nothing, the most probable token is taken. Where a temperature is given, no other setting of draws is taken
        from the files.

        Args:
            text: the prompt, or its ids; an empty one stands for the beginning of a text. Of a model that reads
                pictures a picture: a path, an array of bytes ``[rows, columns, channels]``, a picture of Pillow's.
            max_new_tokens: the most tokens of the answer; 64 where nothing is said.
            num_beams: above 1 searches for the answer of the greatest score instead of drawing tokens.
            length_penalty: of beams: 0 favours short answers, see ``LengthPenalty``; in files ``HuggingFacePenalty``.
            stop: strings that end the answer and do not belong to it.
            seed: of the draws.
            stream: called with each piece as soon as it is certain; the pieces joined are the answer.
            truncate: ``left`` cuts the beginning of the prompt so that it and the answer fit the context.
            edits: what is changed inside the model while it writes: ``lm.trace(text).edit().zero(key, head=1)``, or a
                list as JSON holds it. The model then runs token by token with the eager kernel.
            settings: how a token is chosen, and what all of the answer must be.

        Raises:
            UsageError: a prompt longer than the context, a setting outside its range, or an edit that does not fit.
        """
        demands, drawing = Demands.taken_from(settings)
        return generate.generate(
            self.stored,
            text,
            drawing,
            demands,
            max_new_tokens=max_new_tokens,
            num_beams=num_beams,
            length_penalty=length_penalty,
            stop=stop,
            seed=seed,
            stream=stream,
            truncate=truncate,
            edits=edits,
        )

    @spelling_out(Writing)
    def generations(
        self,
        texts: Source | Sequence[Source],
        *,
        max_new_tokens: int = 64,
        stop: str | Sequence[str] = (),
        seed: int | Sequence[int] = 1337,
        stream: Callable[[int, str], None] | None = None,
        truncate: Truncate = None,
        **settings: Unpack[Writing],
    ) -> list[Generation]:
        """Continue several texts as one batch; each row is what it would be alone with its seed.

        Arguments are those of ``generate``; ``seed`` is one number, to which a row's number is added, or one a row;
        ``stream`` is called with the row's number and the piece.
        """
        demands, drawing = Demands.taken_from(settings)
        limits = limits_of(self.stored, max_new_tokens, strings_of(stop), demands=demands)
        return generate.continued(
            self.stored, lambda: sources(self.stored, texts, truncate, max_new_tokens), limits, seed, stream, drawing
        )

    @spelling_out(Writing)
    def speculate(
        self,
        text: Source,
        draft: "LanguageModel | Literal['lookup']",
        *,
        guesses: int = 5,
        max_new_tokens: int = 64,
        stop: str | Sequence[str] = (),
        seed: int = 1337,
        stream: Callable[[str], None] | None = None,
        truncate: Truncate = None,
        **settings: Unpack[Writing],
    ) -> Speculation:
        """Continue one text with guesses, in fewer steps of the model, whose own distribution the answer has.

        Greedy answers, and all with ``lookup``, are those of ``generations`` for the same seed.

        Args:
            text: the prompt.
            draft: a smaller model of the same vocabulary, or ``lookup``: what followed the last tokens before.
            guesses: tokens guessed a step.
            max_new_tokens: the most tokens of the answer.
            stop: strings that end the answer.
            seed: of the draws.
            stream: called with each piece.
            truncate: as in ``generate``.
            settings: how a token is chosen, and what all of the answer must be.

        Raises:
            UsageError: as in ``generate``, or a draft of another vocabulary.
        """
        demands, drawing = Demands.taken_from(settings)
        return generate.speculated(
            self.stored,
            text,
            generate.draft_of(self.stored, draft if isinstance(draft, str) else draft.stored),
            limits_of(self.stored, max_new_tokens, strings_of(stop), demands=demands),
            count=guesses,
            seed=seed,
            stream=stream,
            truncate=truncate,
            sampling=drawing,
        )

    @spelling_out(Form)
    def contrastive_search(
        self,
        text: Source,
        *,
        top_k: int = 4,
        penalty_alpha: float | int = 0.6,
        max_new_tokens: int = 64,
        stop: str | Sequence[str] = (),
        stream: Callable[[str], None] | None = None,
        truncate: Truncate = None,
        **settings: Unpack[Form],
    ) -> Generation:
        """Continue one text by tokens that are probable and unlike what stands already (Su et al. 2022).

        Args:
            text: the prompt.
            top_k: candidates a step.
            penalty_alpha: the share of likeness in their ranking; 0 is greedy.
            max_new_tokens: the most tokens of the answer.
            stop: strings that end it.
            stream: called with each piece.
            truncate: as in ``generate``.
            settings: what all of the answer must be.

        Raises:
            UsageError: as in ``generate``.
        """
        made, drawing = Demands.taken_from(settings)
        if drawing:
            raise TypeError(f"contrastive_search() draws nothing and has no {', '.join(drawing)}")
        return generate.contrasted(
            self.stored,
            text,
            limits_of(self.stored, max_new_tokens, strings_of(stop), demands=made),
            top_k=top_k,
            penalty_alpha=penalty_alpha,
            stream=stream,
            truncate=truncate,
        )

    def search(
        self,
        texts: Source | Sequence[Source],
        *,
        num_beams: int = 4,
        length_penalty: float | int = 0.6,
        num_beam_groups: int = 1,
        diversity_penalty: float | int = 0.5,
        coverage_penalty: float | int = 0.0,
        repetition_penalty: float | int | None = None,
        answers: int = 1,
        max_new_tokens: int = 64,
        truncate: Truncate = None,
    ) -> list[list[Found]]:
        """Return the best ``answers`` for each text, by beam search over all of them as one batch.

        Args:
            texts: prompts, or the sources of an encoder-decoder.
            num_beams: hypotheses followed a text.
            length_penalty: 0 favours short answers, see ``LengthPenalty``.
            num_beam_groups: above 1, groups of beams that avoid each other's choices; the best of each comes first.
            diversity_penalty: what a choice of an earlier group costs a later one, in nats.
            coverage_penalty: of encoder-decoders with attention: how much an answer that leaves a part of its source
                out ranks lower, see ``Coverage``.
            repetition_penalty: what the log probability of a token that the row holds is multiplied by; by default
                what the files say.
            answers: at most the beams.
            max_new_tokens: the most tokens of an answer.
            truncate: as in ``generate``.

        Raises:
            UsageError: as in ``generate``.
        """
        beams = Beams(
            num_beams, LengthPenalty(length_penalty), answers, num_beam_groups, diversity_penalty, coverage_penalty
        )
        with_penalty = generate.with_repetitions(self.stored, repetition_penalty)
        return search.search(with_penalty, texts, beams, max_new_tokens, truncate)

    @spelling_out(Drawing)
    def tree(
        self,
        text: Source,
        *,
        max_new_tokens: int = 4,
        num_beams: int = 3,
        length_penalty: float | int = 0.6,
        samples: int = 0,
        seed: int = 1337,
        truncate: Truncate = None,
        **settings: Unpack[Drawing],
    ) -> DecodingTree:
        """Return the decoding tree behind a text: what greedy decoding, beams and samples followed, and at what cost.

        Args:
            text: the prompt, or the source of an encoder-decoder.
            max_new_tokens: the depth of the tree.
            num_beams: ways that the beam search follows at each depth; what it drops is marked.
            length_penalty: of beams.
            samples: answers drawn besides.
            seed: of the first of them; the others count on.
            truncate: as in ``generate``.
            settings: how samples are drawn.

        Raises:
            UsageError: as in ``generate``.
        """
        return tree.grown(
            self.stored,
            text,
            max_new_tokens=max_new_tokens,
            beams=Beams(num_beams, LengthPenalty(length_penalty)),
            samples=samples,
            seed=seed,
            truncate=truncate,
            sampling=settings,
        )

    def write(
        self,
        rows: Sequence[Sequence[int]] | Sequence[Picture],
        settings: Mapping[str, Any] | None = None,
        *,
        seeds: Sequence[int] | None = None,
        stop: str | Sequence[str] = (),
    ) -> list[list[list[int]]]:
        """Return the ids of the answers to rows of ids, as the keys of a generation_config.json ask for them.

        What is meant by the keys is what transformers means by them, beams too; ``search`` ranks and ends its own way.

        Args:
            rows: prompts, or sources of an encoder-decoder, special tokens among them; or pictures.
            settings: keys that stand before those of the model's files; ``num_return_sequences`` besides.
            seeds: of the draws, one for each row.
            stop: strings that end an answer that is drawn or greedy.

        Raises:
            UsageError: a row longer than the context, or settings that cannot go together.
        """
        return written.answers(self.stored, rows, settings or {}, seeds, strings_of(stop))

    @property
    def writing(self) -> dict[str, Any]:
        """The keys of generation_config.json, or of an old config.json, that say how to write."""
        return written.said_by_files(self.stored)

    def files_say(self, task: str) -> dict[str, Any]:
        """Return the keys for one task (``task_specific_params``) and the ``prefix`` that config.json has."""
        return written.task_keys(self.stored, task)

    def translate(
        self,
        texts: Sequence[str],
        *,
        num_beams: int | None = None,
        length_penalty: float | int | None = None,
        max_new_tokens: int = 128,
        batch_size: int = 64,
        beyond_source: int | None = None,
        coverage_penalty: float | int = 0.0,
        source_language: str | None = None,
        target_language: str | None = None,
        done: Callable[[int], None] | None = None,
    ) -> list[str]:
        """Return the translation of each text, as an encoder-decoder that was trained on pairs writes it.

        Texts of like length are searched together, which changes no answer. A blank text has a blank translation.

        Args:
            texts: sentences of the source language.
            num_beams: hypotheses followed a text; 1 is greedy; by default what the model's files say, else 4.
            length_penalty: 0 favours short answers, see ``LengthPenalty``; by default what the files say, in Hugging
                Face's form, else 0.6.
            max_new_tokens: the most tokens of an answer.
            batch_size: texts searched at once.
            beyond_source: how many tokens an answer may have more than its source, where that is fewer; the
                Transformer's paper had 50.
            coverage_penalty: how much a translation that leaves a part of its source out ranks lower, see ``Coverage``.
            source_language: of the texts, for a model of many, as its tokenizer spells it: ``en``, ``eng_Latn``.
            target_language: of the translations; by default the model's files say both.
            done: told after each batch how many texts are translated.

        Raises:
            UsageError: the model has no such language, or reads and writes the same row, or a text is longer than the
                context.
        """
        return search.translate(
            self.stored,
            texts,
            num_beams=num_beams,
            length_penalty=length_penalty,
            max_new_tokens=max_new_tokens,
            batch_size=batch_size,
            beyond_source=beyond_source,
            coverage_penalty=coverage_penalty,
            source_language=source_language,
            target_language=target_language,
            done=done,
        )

    def caption(self, pictures: Picture | Sequence[Picture], **settings: Any) -> Any:
        """Return what a model that reads pictures writes of one, or a list of what it writes of several.

        Differs from ``generate`` in what holds where neither the caller nor the model's files say anything: at most 256
        tokens, as in the image-to-text pipeline of transformers 4.

        Args:
            pictures: paths, arrays of bytes ``[rows, columns, channels]`` or of floats ``[channels, rows, columns]``
                as the model reads them, pictures of Pillow's, ``data:image/png;base64,...``; one, or a list.
            settings: ``num_beams``, hypotheses followed a picture, by default what the model's files say, else 1, which
                is greedy; ``length_penalty`` of beams, in Hugging Face's form; ``max_new_tokens``; ``batch_size``,
                pictures read at once; ``done``, told after each batch how many pictures are done.

        Raises:
            UsageError: the model reads no pictures or writes nothing, or what is given is no picture.
            DataError: a file is damaged.
        """
        found = captions.captions(self.stored, pictures, **settings)
        return found if isinstance(pictures, list | tuple) else found[0]

    def chat_template(self, choice: str | Path | None = None) -> ChatTemplate:
        """Return the template of the model's chats, or another: one of Orrery's formats by name, or a Jinja file.

        Raises:
            ModelFileError: the model came without one, or the file is too large.
            UsageError: ``choice`` is neither a format nor a file, or needs tokens that the tokenizer lacks.
        """
        return chat.chat_template(self.stored, choice)

    def with_template(self, choice: str | Path) -> "LanguageModel":
        """Return the same model whose chats are in another template, everywhere: ``reply``, pipelines, a server.

        Raises:
            ModelFileError: a file that is too large, or whose template fails.
            UsageError: ``choice`` is neither a format nor a file, or needs tokens that the tokenizer lacks.
        """
        return LanguageModel(chat.with_template(self.stored, choice))

    def chat_ids(
        self, messages: Sequence[Message], *, prompt: bool = False, template: str | Path | None = None, **variables: Any
    ) -> Rendered:
        """Return the ids of a conversation and, a boolean a token, which of them the assistant wrote.

        Control tokens come from the template alone: whatever a message says is ordinary text.

        Args:
            messages: ``{"role": "user", "content": "..."}`` and so on.
            prompt: end where the assistant's next answer begins; else the conversation is one to learn from.
            template: as in ``chat_template``.
            variables: what a Jinja template takes besides: ``tools``, ``documents``.

        Raises:
            DataError: messages that cannot be said in this template, or that would change its control tokens.
            ModelFileError: no template, one that fails, or one that doubles the start token.
        """
        return self.chat_template(template).render(messages, prompt, replies=not prompt, **variables)

    @spelling_out(Writing)
    def reply(
        self,
        messages: Sequence[Message],
        *,
        template: ChatTemplate | str | Path | None = None,
        variables: Mapping[str, Any] | None = None,
        max_new_tokens: int = 256,
        stop: str | Sequence[str] = (),
        seed: int = 1337,
        stream: Callable[[str], None] | None = None,
        **settings: Unpack[Writing],
    ) -> Generation:
        """Return the assistant's answer to a conversation; it ends at the template's end-of-turn token.

        Arguments are those of ``generate``; ``template`` is one from ``chat_template`` or what it takes, ``variables``
        what a Jinja template takes besides, such as ``{"tools": [...]}``. Errors as in ``chat_ids``.
        """
        return chat.reply(
            self.stored,
            messages,
            template,
            variables,
            settings,
            max_new_tokens=max_new_tokens,
            stop=stop,
            seed=seed,
            stream=stream,
        )

    def rewards(self, conversations: Sequence[Sequence[Message]]) -> list[float]:
        """Return what a reward model gives each conversation, read as its chat template writes it.

        Args:
            conversations: lists of messages that end with the assistant's.

        Raises:
            DataError: one does not, or cannot be said in the model's template.
            UsageError: the model has no head that gives a row one number, or a conversation is beyond its context.
        """
        return rewards.rewards(self.stored, self.chat_template, conversations)

    def score(self, text: Text) -> Score:
        """Return the log probability of each token of ``text`` and their sum, in nats.

        The first token is predicted from what the tokenizer puts before a text, else from the token that begins one,
        else from the end token, which in training stood between texts.

        Raises:
            UsageError: the text is longer than the context, or the model does not write from left to right.
            ModelFileError: a weight is no number, and so is the score.
        """
        return outputs.score(self.stored, text)

    def likelihoods(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        batch_size: int = 64,
        longest: int | None = None,
        done: Callable[[int], None] | None = None,
    ) -> list[Likelihood]:
        """Return the log likelihood of each continuation behind its context, in nats, split as lm_eval splits them.

        Args:
            pairs: (context, continuation); an empty context is the token that begins a text, else the one that ends it.
            batch_size: rows computed at once.
            longest: tokens that are read at once; the context by default. A context too long loses its beginning.
            done: told after each batch how many are scored.

        Raises:
            DataError: a continuation without a token, or longer than the context.
            UsageError: the model does not write from left to right.
            ModelFileError: a weight is no number, and so is a likelihood.
        """
        return likelihoods.of_pairs(self.stored, pairs, batch_size=batch_size, longest=longest, done=done)

    def text_likelihoods(
        self, texts: str | Sequence[str], *, batch_size: int = 64, longest: int | None = None
    ) -> list[float]:
        """Return the log likelihood of whole texts of any length, in nats, in windows; see ``likelihoods``."""
        return likelihoods.of_texts(self.stored, texts, batch_size=batch_size, longest=longest)

    def cloze(
        self,
        text: str,
        candidates: Sequence[str],
        *,
        both_sides: bool = True,
        mean: bool = False,
        batch_size: int = 16,
    ) -> list[Filled]:
        """Return how well each candidate fits the gap ``__`` of a text, the best first.

        A decoder gives ``log p(c | before) = sum_i log p(c_i | before, c_<i)`` and, with ``both_sides``, adds
        ``log p(after | before, c)``. A masked model reads as many masks as the candidate has tokens and fills them from
        left to right: ``sum_i log p(c_i | before, c_<i, masks, after)``.

        Args:
            text: with one gap.
            candidates: words or phrases.
            both_sides: of a decoder: count what stands behind the gap too.
            mean: rank by the log probability a token, which does not favour short candidates.
            batch_size: rows computed at once.

        Raises:
            UsageError: no gap or several, no candidates, a text longer than the context, or a model of another kind.
            DataError: a candidate without a token.
        """
        return cloze.cloze(self.stored, text, candidates, both_sides=both_sides, mean=mean, batch_size=batch_size)

    def logits(
        self,
        input_ids: Ids,
        attention_mask: Ids | None = None,
        decoder_input_ids: Ids | None = None,
        *,
        token_type_ids: Ids | None = None,
    ) -> Float[Tensor, "B L V"]:
        """Return the logits of every next token, or what the main head of an encoder says.

        Args:
            input_ids: ``[B, L]``; for an encoder-decoder the sources.
            attention_mask: ``[B, L]``, 1 at tokens and 0 at padding, which may stand on either side.
            decoder_input_ids: ``[B, T]``, the targets of an encoder-decoder, the start token first.
            token_type_ids: ``[B, L]``, of each token, where the model has token types; by default 0.

        Raises:
            DataError: an id outside the vocabulary, or a token type that the model does not have.
            UsageError: rows longer than the context, padding inside a row, a mask or token types of another shape or
                for a model without, or ``decoder_input_ids`` given or missing where the model is of the other kind.
        """
        return outputs.logits(self.stored, input_ids, attention_mask, decoder_input_ids, token_type_ids)

    @property
    def sentences(self) -> Sentences:
        """How this model makes vectors of texts: as a folder of sentence-transformers says, else the mean."""
        return vectors.sentences_of(self.stored)

    def vectors(self, items: Sequence[str | Sequence[int]], **settings: Any) -> list[TextVector]:
        """Return the vector of each text or row of ids, with how many tokens were read and left out.

        Settings and errors as those of ``embed``.
        """
        return vectors.vectors(self.stored, items, **settings)

    def embed(self, texts: str | Sequence[str], **settings: Any) -> Float[Tensor, "*N E"]:
        """Return the vector of a text, or a matrix of those of several.

        A folder of sentence-transformers says how they are made: pooling, what stands behind it, the length of rows,
        prompts. Any other model gives the mean of its final hidden states over the tokens of a text.

        Args:
            texts: one, or several.
            settings: ``prompt``, the name of one of the folder's prompts, or a text that ends in a blank or a colon;
                ``normalise``, whether vectors get the length 1, and ``truncation``, whether what is longer than a row
                loses its end, both by default as the folder says; ``batch_size``, rows computed at once; ``done``, told
                after each batch how many rows are done, and of how many.

        Raises:
            UsageError: a text longer than the context, or a prompt that the folder has not.
            DataError: a text without a token.
        """
        several = [texts] if isinstance(texts, str) else list(texts)
        vectors = [one.vector for one in self.vectors(several, **settings)]
        if isinstance(texts, str):
            return vectors[0]
        return torch.stack(vectors) if vectors else torch.empty(0, self.model.spec.width)

    def rank(self, query: str, documents: Sequence[str], *, top_n: int | None = None, **settings: Any) -> list[Ranked]:
        """Return documents by how well they fit a query, the best first; equal ones as they were given.

        The model reads the query beside each document. What makes a score of its logit is in its folder
        (``activation_fn``); by default a sigmoid.

        Args:
            query: a text.
            documents: texts.
            top_n: how many are wanted; all by default.
            settings: those of ``score_pairs``.

        Raises:
            UsageError: the model scores no pairs, or gives one several numbers; a pair longer than a row that may not
                be cut.
        """
        return ranking.rank(self.stored, query, documents, top_n=top_n, **settings)

    def score_pairs(self, pairs: Sequence[tuple[str, str]], **settings: Any) -> Float[Tensor, "*N"]:
        """Return what a model says of each pair of texts: a number, or one for each label; ``rank`` orders them.

        Args:
            pairs: of two texts, the query first.
            settings: ``prompt``, the name of one of the folder's prompts, or a text that ends in a blank or a colon,
                put in front of the first text; ``truncation``, whether a pair that is longer than a row is cut, the
                longer text first, as is done by default; ``batch_size``, rows computed at once; ``done``, told after
                each batch how many pairs are done, and of how many.

        Raises:
            UsageError: the model scores no pairs, or one is longer than a row and may not be cut.
            DataError: a pair that is none, or without a token.
        """
        scores = [one.score for one in self.pair_scores(pairs, **settings)]
        if scores:
            return torch.stack(scores)
        labels = ranking.scoring_of(self.stored).scorer.labels
        return torch.empty(0) if labels == 1 else torch.empty(0, labels)

    def pair_scores(self, pairs: Sequence[tuple[str, str]], **settings: Any) -> list[PairScore]:
        """Return the score of each pair, with how many tokens were read and left out; see ``score_pairs``."""
        return ranking.score_pairs(self.stored, pairs, **settings)

    @property
    def ranks(self) -> bool:
        """Whether ``rank`` can order documents: the model gives a pair of texts one number."""
        return self.stored.pairs is not None and self.stored.pairs.scorer.labels == 1

    @property
    def is_cross_encoder(self) -> bool:
        """Whether pairs of texts are what the model is for: its folder says so, or all it has is a head for rows."""
        pairs, sentences = self.stored.pairs, self.stored.sentences
        return pairs is not None and sentences is None and (pairs.given or not self.model.spec.writes)

    def check_ranks(self) -> None:
        """Refuse a model that cannot order documents.

        Raises:
            UsageError: it scores no pairs, or gives one several numbers.
        """
        ranking.check_ranks(self.stored)

    @property
    def pairing(self) -> PairScores:
        """How this model scores pairs of texts.

        Raises:
            UsageError: neither a head nor a file says so.
        """
        return ranking.scoring_of(self.stored)

    def hidden(
        self, input_ids: Ids, attention_mask: Ids | None = None, *, token_type_ids: Ids | None = None
    ) -> Float[Tensor, "B L D"]:
        """Return the final hidden states, after the last norm: an encoder-decoder's are those of its encoder.

        Arguments and errors as in ``logits``.
        """
        return outputs.hidden(self.stored, input_ids, attention_mask, token_type_ids)

    def trace(
        self,
        text: Given,
        *,
        target: Row | None = None,
        keep: Sequence[str] = ("*",),
        edit: Mapping[str, Edit] | None = None,
        folder: str | Path | None = None,
    ) -> Trace:
        """Return the inside of one pass: ``trace["blocks.0.attention.pattern"]``.

        Args:
            text: what the model reads: a text; the ids of one row, as they are; messages, ``[{"role": "user",
                "content": "..."}]``, in the model's template, up to where the next answer begins; or for an
                encoder-decoder ``(source, target)``. Of a model of images, the images.
            target: what an encoder-decoder has written so far; the tokens of the trace are then these.
            keep: patterns of the keys to keep, ``*`` for any characters.
            edit: by pattern, ``edit(value, key)``: the tensor that takes the place of ``value``.
            folder: where kept values are written as the layers pass, so that one layer at most is in memory.

        Raises:
            UsageError: nothing to read or too much, or a pattern matches nothing.
            MachineError: what is to be kept does not fit into the free memory, and there is no folder.
        """
        return trace.trace(self.stored, text, target, keep, edit, folder)

    def token_id(self, text: str) -> int:
        """Return the id of a text that is one token, as the methods of a trace take it: ``lm.token_id(" tired")``.

        Raises:
            UsageError: it is several tokens, none or an unknown one; the hint names a variant with or without a leading
                space.
        """
        return trace.token_id(self.stored, text)

    def align(self, source: str, target: str) -> Alignment:
        """Return which words of the source each word of the target looked at: ``lm.align(a, b).figure()``.

        Raises:
            UsageError: a text is blank or too long, or the model has no attention over its source.
        """
        if not self.model.spec.reads_source:
            raise no_source()
        ids = [self.tokenizer.encode(text) for text in (source, target)]
        return align(self.trace(source, target=target), self.tokenizer, *ids)

    def save(
        self, folder: str | Path, card: Mapping[str, Any] | None = None, *, layout: Literal["hf", "own"] = "hf"
    ) -> None:
        """Write the model into a folder, in the dtype that it has now.

        Args:
            folder: made where it is missing.
            card: facts for the model card: ``license``, ``data``, ``evaluation`` and others.
            layout: ``hf`` is the Hugging Face layout, which transformers loads; ``own`` has our own names and
                spec.json, and holds what no published layout can: transforms, and architectures outside the families.

        Raises:
            UsageError: the layout cannot hold the model, or is ``hf`` and nothing says which family the model has.
        """
        save.save(self.stored, folder, card, layout)
        copy_beside(self.stored.folder, Path(folder))

    def refuse_no_number(self, measured: float) -> None:
        """Refuse a measure that is no number, and say where it comes from.

        Raises:
            ModelFileError: a weight is not finite; it is named.
            RunError: every weight is, so the arithmetic has overflowed.
        """
        stored.refuse_no_number(self.stored, measured)
