"""The language model as a user meets it: text in, text, scores, numbers and the inside out."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import ModelFileError, RunError, UsageError
from orrery.generation.batched import in_batches
from orrery.generation.generate import Generation, Limits, generate, too_long
from orrery.generation.samplers import sampler
from orrery.generation.scoring import Score, score
from orrery.generation.search import Hypothesis, LengthPenalty, Penalty, beam_search, refuse_with_beams
from orrery.inspection.alignment import Alignment, align
from orrery.inspection.edits import Edit
from orrery.inspection.trace import Trace, trace
from orrery.language_model.arguments import Ids, one_each, rows_of, segments_of, strings_of
from orrery.language_model.saving import save
from orrery.models.model import Model
from orrery.nn.embeddings import check_ids
from orrery.reading.generation_settings import Wishes, wishes_of
from orrery.reading.read import Stored
from orrery.text import Tokenizer
from orrery.text.chat.messages import Message
from orrery.text.chat.render import ChatTemplate, choose_template, template_of
from orrery.text.chat.segments import Rendered

LONGEST_TOKEN = 1024
"""Bytes that no token of a real vocabulary reaches: a text of more than this times the context cannot fit."""

LONGEST_ANSWER = 64
"""Tokens of an answer where neither the caller nor the model's files name a number."""

Truncate = Literal["left"] | None


@dataclass(frozen=True)
class Found:
    """One answer of a search: its text, and the hypothesis with its tokens, log probability and score."""

    text: str
    hypothesis: Hypothesis


class LanguageModel:
    """A model with its tokenizer; ``orrery.language_model.load.load`` makes one.

    Attributes:
        model: the ``Decoder``, ``Encoder`` or ``EncoderDecoder``, in eval mode.
        context: the most tokens of a row.
    """

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self.model: Model = stored.model
        self.context: int = stored.model.spec.context

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer.

        Raises:
            ModelFileError: the model came without one.
        """
        if self._stored.tokenizer is None:
            raise ModelFileError(
                f"{self._stored.folder} has no tokenizer.json",
                "put the tokenizer that it was trained with there",
            )
        return self._stored.tokenizer

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return next(self.model.parameters()).device

    @property
    def end(self) -> frozenset[int]:
        """The ids that end a text: generation_config.json's, else config.json's, else the tokenizer's."""
        for source in (self._stored.generation, self._stored.config or {}):
            if (ids := source.get("eos_token_id")) is not None:
                return frozenset(ids if isinstance(ids, list) else [ids])
        id = self._special("end")
        return frozenset() if id is None else frozenset([id])

    def generate(
        self,
        text: str,
        *,
        max_new_tokens: int | None = None,
        temperature: float | int | None = None,
        top_k: int | None = None,
        top_p: float | int | None = None,
        min_p: float | int | None = None,
        repetition_penalty: float | int | None = None,
        num_beams: int | None = None,
        length_penalty: float | int | None = None,
        stop: str | Sequence[str] = (),
        seed: int = 1337,
        stream: Callable[[str], None] | None = None,
        truncate: Truncate = None,
    ) -> str:
        """Return a continuation of ``text``; ``generations`` tells why it ended, and takes several texts.

        What is not given is as generation_config.json says, or the same keys of an old config.json.

        Args:
            text: the prompt; an empty one stands for the beginning of a text.
            max_new_tokens: the most tokens of the answer; 64 where nothing is said.
            temperature: 0 is greedy, and what is done where nothing is said; given, no other setting of drawing is
                taken from the files.
            top_k: how many tokens stay possible.
            top_p: the mass that stays possible.
            min_p: the least probability, as a share of the greatest.
            repetition_penalty: 1 changes nothing.
            num_beams: above 1 searches for the answer of the greatest score instead of drawing tokens.
            length_penalty: of beams: 0 favours short answers, see ``LengthPenalty``; in files ``HuggingFacePenalty``.
            stop: strings that end the answer and do not belong to it.
            seed: of the draws.
            stream: called with each piece as soon as it is certain; the pieces joined are the answer.
            truncate: ``left`` cuts the beginning of the prompt so that it and the answer fit the context.

        Raises:
            UsageError: a prompt longer than the context, or a setting outside its range.
        """
        drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
        drawing["repetition_penalty"] = repetition_penalty
        given = {key: value for key, value in drawing.items() if value is not None}
        wishes = self._wishes
        beams = (1 if given or stop or stream else wishes.beams) if num_beams is None else num_beams
        if beams < 1:
            raise UsageError(f"num_beams = {beams} is not possible", "it must be at least 1, which is no search")
        longest = self._longest(text) if max_new_tokens is None else max_new_tokens
        if beams > 1:
            drawn = wishes.sampling["temperature"] if num_beams is None else 0
            refuse_with_beams(**given, stop=stop, stream=stream, do_sample=drawn)
            penalty = wishes.penalty if length_penalty is None else LengthPenalty(length_penalty)
            return self._search([text], beams, penalty, 1, longest, truncate)[0][0].text
        usual = wishes.sampling if temperature is None else {"temperature": 0}
        return self.generations(
            [text],
            max_new_tokens=longest,
            stop=stop,
            seed=seed,
            stream=None if stream is None else lambda row, piece: stream(piece),
            truncate=truncate,
            **{**usual, **given},
        )[0].text

    def generations(
        self,
        texts: Sequence[str],
        *,
        max_new_tokens: int = 64,
        stop: str | Sequence[str] = (),
        seed: int | Sequence[int] = 1337,
        stream: Callable[[int, str], None] | None = None,
        truncate: Truncate = None,
        **sampling: Any,
    ) -> list[Generation]:
        """Continue several texts as one batch; each row is what it would be alone with its seed.

        Arguments are those of ``generate``; ``seed`` is one number, to which a row's number is added, or one a row;
        ``stream`` is called with the row's number and the piece.
        """
        limits = self._limits(max_new_tokens, strings_of(stop))
        return self._write(lambda: self._prompts(texts, truncate, max_new_tokens), limits, seed, stream, sampling)

    def search(
        self,
        texts: Sequence[str],
        *,
        num_beams: int = 4,
        length_penalty: float | int = 0.6,
        answers: int = 1,
        max_new_tokens: int = 64,
        truncate: Truncate = None,
    ) -> list[list[Found]]:
        """Return the best ``answers`` for each text, by beam search over all of them as one batch.

        Args:
            texts: prompts, or the sources of an encoder-decoder.
            num_beams: hypotheses followed a text.
            length_penalty: 0 favours short answers, see ``LengthPenalty``.
            answers: at most the beams.
            max_new_tokens: the most tokens of an answer.
            truncate: as in ``generate``.

        Raises:
            UsageError: as in ``generate``.
        """
        return self._search(texts, num_beams, LengthPenalty(length_penalty), answers, max_new_tokens, truncate)

    def _search(
        self,
        texts: Sequence[str],
        beams: int,
        penalty: Penalty,
        answers: int,
        longest: int,
        truncate: Truncate,
    ) -> list[list[Found]]:
        """Return what ``search`` does, ranked by any penalty."""
        refuse_with_beams(repetition_penalty=self._wishes.sampling["repetition_penalty"])
        found = beam_search(
            self._writer,
            self._prompts(texts, truncate, longest),
            self._limits(longest),
            beams,
            penalty=penalty,
            answers=answers,
            vocabulary=self.tokenizer.size,
            device=self.device,
        )
        return [[Found(self._spell_answer(one.ids), one) for one in row] for row in found]

    def translate(
        self,
        texts: Sequence[str],
        *,
        num_beams: int = 4,
        length_penalty: float | int = 0.6,
        max_new_tokens: int = 128,
        batch_size: int = 64,
        done: Callable[[int], None] | None = None,
    ) -> list[str]:
        """Return the translation of each text, as an encoder-decoder that was trained on pairs writes it.

        Texts of like length are searched together, which changes no answer. A blank text has a blank translation.

        Args:
            texts: sentences of the source language.
            num_beams: hypotheses followed a text; 1 is greedy.
            length_penalty: 0 favours short answers, see ``LengthPenalty``.
            max_new_tokens: the most tokens of an answer.
            batch_size: texts searched at once.
            done: told after each batch how many texts are translated.

        Raises:
            UsageError: the model reads and writes the same row, or a text is longer than the context.
        """
        if not self.model.spec.reads_source:
            raise UsageError("only an encoder-decoder translates", "train one on pairs, or use generate")
        refuse_with_beams(repetition_penalty=self._wishes.sampling["repetition_penalty"])
        places = [place for place, text in enumerate(texts) if text.strip()]
        rows = [self._line(texts[place], place) for place in places]
        limits, penalty = self._limits(max_new_tokens), LengthPenalty(length_penalty)
        size, device = self.tokenizer.size, self.device

        def answer(numbers: list[int]) -> list[str]:
            sources = [rows[number] for number in numbers]
            found = beam_search(
                self._writer, sources, limits, num_beams, penalty=penalty, vocabulary=size, device=device
            )
            return [self._spell_answer(row[0].ids) for row in found]

        written = dict(zip(places, in_batches(list(map(len, rows)), batch_size, answer, done), strict=True))
        return [written.get(place, "") for place in range(len(texts))]

    def chat_template(self, choice: str | Path | None = None) -> ChatTemplate:
        """Return the template of the model's chats, or another: one of Orrery's formats by name, or a Jinja file.

        Raises:
            ModelFileError: the model came without one, or the file is too large.
            UsageError: ``choice`` is neither a format nor a file, or needs tokens that the tokenizer lacks.
        """
        if choice is not None:
            return choose_template(choice, self.tokenizer)
        return template_of(self._stored.folder, self._stored.chat, self.tokenizer)

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
        **sampling: Any,
    ) -> Generation:
        """Return the assistant's answer to a conversation; it ends at the template's end-of-turn token.

        Arguments are those of ``generate``; ``template`` is one from ``chat_template`` or what it takes, ``variables``
        what a Jinja template takes besides, such as ``{"tools": [...]}``. Errors as in ``chat_ids``.
        """
        chat = template if isinstance(template, ChatTemplate) else self.chat_template(template)
        ids = chat.render(messages, prompt=True, **(variables or {})).ids
        if len(ids) > self.context:
            raise UsageError(
                f"the conversation of {len(ids):,} tokens is longer than this model's context of {self.context:,}",
                "leave out its earliest messages (/reset in orrery chat)",
            )
        limits = self._limits(max_new_tokens, strings_of(stop), chat.end)
        show = None if stream is None else lambda row, piece: stream(piece)
        return self._write(lambda: [ids], limits, seed, show, sampling)[0]

    def score(self, text: str) -> Score:
        """Return the log probability of each token of ``text`` and their sum, in nats.

        The first token is predicted from the end token, which in training stood between texts, where there is one.

        Raises:
            UsageError: the text is longer than the context, or the model does not write from left to right.
            ModelFileError: a weight is no number, and so is the score.
        """
        if not self.model.spec.writes or self._apart:
            raise UsageError("only a decoder gives each token a probability from those before it", "load a decoder")
        ids = self._encode(text, None, self.context)
        start = self._special("start")
        start = self._special("end") if start is None else start
        if len(ids) + (start is not None) > self.context:
            raise too_long(len(ids) + (start is not None), self.context)
        found = score(self.logits, ids, self._spell, start)
        self.refuse_no_number(found.total)
        return found

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
            token_type_ids: ``[B, L]``, the segment of each token, where the model has segments; by default the first.

        Raises:
            DataError: an id outside the vocabulary, or a segment that the model does not have.
            UsageError: rows longer than the context, padding inside a row, a mask or segments of another shape or for
                a model without, or ``decoder_input_ids`` given or missing where the model is of the other kind.
        """
        ids_BL, real_BL = self._inputs(input_ids, attention_mask)
        segments = self._segments(token_type_ids, ids_BL)
        with torch.no_grad():
            if self._apart:
                return self.model.logits(ids_BL, self._targets(decoder_input_ids), source_real=real_BL)
            if decoder_input_ids is not None:
                raise UsageError("this model has no encoder and decoder", "give input_ids without decoder_input_ids")
            return self.model.logits(ids_BL, real=real_BL, **segments)

    def hidden(
        self, input_ids: Ids, attention_mask: Ids | None = None, *, token_type_ids: Ids | None = None
    ) -> Float[Tensor, "B L D"]:
        """Return the final hidden states, after the last norm: an encoder-decoder's are those of its encoder.

        Arguments and errors as in ``logits``.
        """
        ids_BL, real_BL = self._inputs(input_ids, attention_mask)
        segments = self._segments(token_type_ids, ids_BL)
        with torch.no_grad():
            if self._apart:
                reader: Any = self.model
                return reader.read(ids_BL, real=real_BL).memory_BSD
            return self.model.hidden(ids_BL, real=real_BL, **segments)

    def trace(
        self,
        text: str,
        *,
        target: str | None = None,
        keep: Sequence[str] = ("*",),
        edit: Mapping[str, Edit] | None = None,
    ) -> Trace:
        """Return the inside of one pass over ``text``: ``trace["blocks.0.attention.pattern"]``.

        Args:
            text: what the model reads.
            target: what an encoder-decoder has written so far; the tokens of the trace are then these.
            keep: patterns of the keys to keep, ``*`` for any characters.
            edit: by pattern, ``edit(value, key)``: the tensor that takes the place of ``value``.

        Raises:
            UsageError: the text is empty or too long, or a pattern matches nothing.
        """
        ids = self._prompt(text, None, self.context)
        rows = [self._inputs([ids], None)[0]]
        if self._apart:
            self._check_one_vocabulary()
            written = self._encode(target or "", None, self.context - 1, self._target_vocabulary)
            ids = [*self._begin, *written]
            rows.append(self._targets([ids]))
        return trace(self.model, *rows, keep=keep, edit=edit, tokens=[self._spell(id) for id in ids])

    def align(self, source: str, target: str) -> Alignment:
        """Return which words of the source each word of the target looked at: ``lm.align(a, b).figure()``.

        Raises:
            UsageError: a text is blank or too long, or the model has no attention over its source.
        """
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
        save(self._stored, folder, card, layout)

    def _write(
        self,
        prompts: Callable[[], list[list[int]]],
        limits: Limits,
        seed: int | Sequence[int],
        show: Callable[[int, str], None] | None,
        sampling: Mapping[str, Any],
    ) -> list[Generation]:
        """Continue rows of ids, which are made only once the model and the settings are known to serve."""
        if sampling.get("repetition_penalty") is None:
            sampling = {**sampling, "repetition_penalty": self._wishes.sampling["repetition_penalty"]}
        model, chosen = self._writer, sampler(vocabulary=self.tokenizer.size, **sampling)
        rows = prompts()
        check_ids(torch.tensor([id for row in rows for id in row], dtype=torch.long), self._vocabulary)
        return generate(model, rows, self.tokenizer, limits, sampler=chosen, seed=seed, show=show, device=self.device)

    @property
    def _apart(self) -> bool:
        """Whether an answer has a row of its own, beside the source that was read."""
        return self.model.spec.reads_source

    @property
    def _begin(self) -> list[int]:
        """What every answer beside a source begins with."""
        return [] if self.model.first is None else [self.model.first]

    @property
    def _wishes(self) -> Wishes:
        """What the model's files say of writing."""
        return wishes_of(self._stored.generation, self._stored.config or {})

    def _limits(self, longest: int, stop: Sequence[str] = (), end: frozenset[int] = frozenset()) -> Limits:
        """Return when an answer ends, and which tokens it may hold."""
        ends = self.end | end
        return Limits(longest, self.context, ends, stop, self._wishes.constraints(ends))

    def _longest(self, text: str) -> int:
        """Return the most tokens of an answer where the caller names none."""
        return self._wishes.longest(1 if self._apart else max(1, len(self.tokenizer.encode(text))), LONGEST_ANSWER)

    @property
    def _writer(self) -> Any:
        """The model, where it writes.

        Raises:
            UsageError: it does not.
        """
        if not self.model.spec.writes:
            raise UsageError("an encoder reads whole rows and writes nothing", "load a decoder or an encoder-decoder")
        self._check_one_vocabulary()
        return self.model

    def _line(self, text: str, place: int) -> list[int]:
        """Return the ids of one of many texts; an error says which."""
        try:
            return self._prompt(text, None, self.context)
        except UsageError as error:
            raise UsageError(f"text {place + 1}: {error.message}", error.hint) from None

    def _prompts(self, texts: Sequence[str], truncate: Truncate, max_new_tokens: int) -> list[list[int]]:
        """Return the ids of prompts; an encoder-decoder's answer has a row of its own, so the whole row is theirs."""
        keep = self.context if self._apart else max(1, self.context - max_new_tokens)
        return [self._prompt(text, truncate, keep) for text in texts]

    def _spell_answer(self, ids: Sequence[int]) -> str:
        """Return an answer as text, its end token left out."""
        return self.tokenizer.decode(ids[:-1] if ids and ids[-1] in self.end else ids)

    def _check_one_vocabulary(self) -> None:
        """Refuse to spell targets by the tokenizer of the sources.

        Raises:
            UsageError: the two sides have vocabularies of their own.
        """
        read, written = self.model.spec.vocabulary, self.model.spec.target_vocabulary
        if read is not None and written is not None and read != written:
            raise UsageError(
                f"this model reads {read:,} tokens and writes {written:,} others, and there is one tokenizer",
                "encode both sides yourself, and give the ids to logits or to the model",
            )

    @property
    def _vocabulary(self) -> int:
        """The number of tokens that the model reads.

        Raises:
            UsageError: it reads images.
        """
        size = self.model.spec.vocabulary
        if size is None:
            raise UsageError("this model reads images, not tokens", "call its .model with [B, channels, rows, columns]")
        return size

    def refuse_no_number(self, measured: float) -> None:
        """Refuse a measure that is no number, and say where it comes from.

        Raises:
            ModelFileError: a weight is not finite; it is named.
            RunError: every weight is, so the arithmetic has overflowed.
        """
        if math.isfinite(measured):
            return
        for name, weight in self.model.named_parameters():
            if not torch.isfinite(weight).all():
                message = f"{self._stored.folder}: {name} has numbers that are none (NaN or infinite)"
                raise ModelFileError(message, "get the file again from its source, or take an earlier checkpoint")
        message = f"the model gives {measured} though each of its weights is finite"
        raise RunError(message, "16-bit numbers overflow: try --dtype float32")

    @property
    def _target_vocabulary(self) -> int:
        """The number of tokens that an encoder-decoder writes; its source may have another vocabulary."""
        size = self.model.spec.target_vocabulary
        assert size is not None
        return size

    def _prompt(self, text: str, truncate: Truncate, keep: int) -> list[int]:
        """Return a text's ids, the beginning of a text for an empty one."""
        ids = self._encode(text, truncate, keep)
        if ids:
            return ids
        starts = [id for id in (self._special("start"), self._special("end")) if id is not None]
        if not starts:
            raise UsageError("the text is empty", "give at least one character")
        return starts[:1]

    def _encode(self, text: str, truncate: Truncate, keep: int, vocabulary: int | None = None) -> list[int]:
        """Return a text's ids, refused or cut where they pass the context; the length in bytes is looked at first.

        They are of ``vocabulary``, by default the one that the model reads.
        """
        if len(text) > self.context * LONGEST_TOKEN:
            if truncate is None:
                raise UsageError(
                    f"a text of {len(text):,} characters cannot fit this model's context of {self.context:,} tokens",
                    'shorten it; orrery generate --truncate left (truncate="left") cuts its beginning',
                )
            text = text[-self.context * LONGEST_TOKEN :]
        ids = self.tokenizer.encode(text)
        check_ids(torch.tensor(ids, dtype=torch.long), vocabulary or self._vocabulary)
        if truncate == "left":
            return ids[-keep:]
        if len(ids) > self.context:
            raise too_long(len(ids), self.context)
        return ids

    def _inputs(self, input_ids: Ids, attention_mask: Ids | None) -> tuple[Tensor, Tensor | None]:
        """Return ids and mask as checked tensors on the model's device."""
        ids_BL = rows_of("input_ids", input_ids, self._vocabulary, self.context)
        if attention_mask is None:
            return ids_BL.to(self.device), None
        mask_BL = one_each("attention_mask", attention_mask, ids_BL)
        return ids_BL.to(self.device), mask_BL.bool().to(self.device)

    def _segments(self, token_type_ids: Ids | None, ids_BL: Tensor) -> dict[str, Any]:
        """Return the checked segments as an argument of the model, where there are any."""
        if token_type_ids is None:
            return {}
        embed = getattr(self.model.spec, "embed", None)
        return {"segments": segments_of(token_type_ids, ids_BL, embed).to(self.device)}

    def _targets(self, decoder_input_ids: Ids | None) -> Tensor:
        """Return the checked targets of an encoder-decoder."""
        if decoder_input_ids is None:
            raise UsageError(
                "an encoder-decoder predicts targets, and there are none",
                f"give decoder_input_ids; every row begins with {self.model.first}",
            )
        targets_BL = rows_of("decoder_input_ids", decoder_input_ids, self._target_vocabulary, self.context)
        return targets_BL.to(self.device)

    def _special(self, role: str) -> int | None:
        """Return the id of a control token, or nothing where the tokenizer has none."""
        try:
            return self.tokenizer.special(role)
        except UsageError:
            return None

    def _spell(self, id: int) -> str:
        """Return how an id reads."""
        return self.tokenizer.decode([id], special=True)
