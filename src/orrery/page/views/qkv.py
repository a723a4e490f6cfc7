"""One head at one token, step by step: what it reads, its query, the keys, scores, weights, values, what it adds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check, bound
from orrery.inspection.explain.attention import Heads, LatentKeys, Scores
from orrery.inspection.explain.node import Numbers, Same, TensorNode
from orrery.inspection.explain.sums import JoinedHeads, affine
from orrery.page.views._inside import AttentionSite, Inside
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.page.views.attention import check_layer, site_of
from orrery.schema.section import Section


class QkvSettings(Section):
    """What is looked at.

    Attributes:
        site: which attention, by its number in the session.
        layer: the block.
        head: the head.
        query: the token that looks; the last by default.
    """

    site: int = 0
    layer: int = 0
    head: int = 0
    query: int | None = None


@register
class Qkv(View):
    """``softmax(q k^T / sqrt(d) + bias) v W_o`` of one head and token, every step with its operands and its check."""

    kind: ClassVar[str] = "qkv"
    order: ClassVar[int] = 35
    share: ClassVar[int] = 3
    Settings: ClassVar[type[Section]] = QkvSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether the model has attention."""
        return subject.inside is not None and bool(subject.inside.sites)

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return heads and tokens, the last token of each attention first."""
        inside = subject.seen
        for back in range(max(len(inside.tokens), len(inside.source_tokens))):
            for number, site in enumerate(inside.sites):
                for layer in site.layers:
                    heads, queries = inside.shapes[site.key(layer, "pattern")][1:3]
                    for head in range(heads if back < queries else 0):
                        yield QkvSettings(site=number, layer=layer, head=head, query=queries - 1 - back)

    def payload(self, subject: ViewSubject, settings: QkvSettings) -> Payload:
        """Return the operands of every step."""
        inside, site = subject.seen, site_of(subject.seen, settings.site)
        check_layer(site, settings.layer)
        heads, queries = inside.shapes[site.key(settings.layer, "pattern")][1:3]
        query = queries - 1 if settings.query is None else settings.query
        if not (0 <= settings.head < heads and 0 <= query < queries):
            raise UsageError(
                f"there is no head {settings.head} with a query {query}", f"{heads} heads, {queries} queries"
            )
        return Steps(inside, site, settings.layer, settings.head, query).payload()


@dataclass(frozen=True)
class Steps:
    """The steps of one head at one token, in order; a step that this attention does not show is left out."""

    inside: Inside
    site: AttentionSite
    layer: int
    head: int
    query: int

    @property
    def path(self) -> str:
        """What the keys of this attention begin with."""
        return self.site.key(self.layer, "")[:-1]

    @property
    def nodes(self) -> Mapping[str, TensorNode]:
        """How each tensor follows from others."""
        return self.numbers.nodes

    @property
    def numbers(self) -> Numbers:
        """The tensors of the pass."""
        return self.inside.explainer.numbers

    def of(self, name: str) -> Tensor:
        """Return a tensor of this attention, of the one row."""
        return self.numbers[f"{self.path}.{name}"][0]

    def payload(self) -> Payload:
        """Return everything that is shown."""
        tensors, checks = self._mixed()
        facts: dict[str, Any] = {"layer": self.layer, "head": self.head, "query": self.query, "path": self.path}
        node = self.nodes.get(f"{self.path}.scores")
        notes = self._notes()
        if isinstance(node, Scores):
            more, compared = self._scored(node)
            tensors, checks = {**more, **tensors}, [*compared, *checks]
            facts |= {"scale": node.scale, "cap": node.cap, "bias": "bias" in more, **self._projected()}
        if isinstance(self.nodes.get(f"{self.path}.out"), JoinedHeads):
            more, compared = self._out()
            tensors, checks = {**tensors, **more}, [*checks, *compared]
        wide = {name: value.float() for name, value in tensors.items()}
        return Payload({**facts, "notes": notes, "shared": self._shared()}, wide, checks)

    def _shared(self) -> int:
        """Return the key-value head that serves this head."""
        return int(self.head * self.of("v").shape[0] // self.of("pattern").shape[0])

    def _projected(self) -> dict[str, Any]:
        """Return where queries and keys come from, for the formulas."""
        q, k = self.nodes[f"{self.path}.q"], self.nodes[f"{self.path}.k"]
        assert isinstance(q, Heads)
        plain = k.plain if isinstance(k, LatentKeys) else k.source if isinstance(k, Heads) else None
        return {"q_from": q.source, "k_from": plain, "width": q.width, "rotates": q.first, "input": self._input()}

    def _input(self) -> str:
        """Return the key of what the queries are made of."""
        source = self.nodes[f"{self.path}.q"].source  # type: ignore[attr-defined]
        while hasattr(self.nodes[source], "source") and source.startswith(f"{self.path}.q"):
            source = self.nodes[source].source  # type: ignore[attr-defined]
        return str(source)

    def _scored(self, node: Scores) -> tuple[dict[str, Tensor], list[Check]]:
        """Return the input, the query, the keys, their products and scores."""
        projection = self.nodes[f"{self.path}.q"]
        assert isinstance(projection, Heads)
        q_C, k_SC = self.of("q")[self.head, self.query], self.of("k")[self._key_head(), :]
        unturned_C = projection.plain(self.numbers)[0, self.head, self.query]
        score_S = self.of("scores")[self.head, self.query]
        product_S = k_SC.double() @ q_C.double()
        tensors = {
            "input": self.numbers[self._input()][0, self.query],
            "q": q_C,
            "k": k_SC,
            "products": product_S,
            "scores": score_S,
        }
        if projection.first is not None:
            tensors["unturned"] = unturned_C
        added_S = node.added(self.numbers, self.head, self.query)
        if added_S is not None:
            tensors["bias"] = added_S
        x_S = node.scale * product_S
        capped_S = x_S if node.cap is None else node.cap * torch.tanh(x_S / node.cap)
        expected_S = capped_S if added_S is None else capped_S + added_S
        seen = score_S > float("-inf")
        checks = [
            self._compare("x W_q is the query before it is turned", unturned_C, self._query()),
            self._compare("the scaled products and the bias are the scores", score_S[seen], expected_S[seen]),
        ]
        return tensors, checks

    def _key_head(self) -> int:
        return int(self.head * self.of("k").shape[0] // self.of("q").shape[0])

    def _query(self) -> Float[Tensor, "C"]:
        """Return ``x W_q + b`` in float64, from the weights; then what stands between, such as a norm."""
        projection = self.nodes[f"{self.path}.q"]
        linear = self.nodes[f"{self.path}.q_in"]
        assert isinstance(projection, Heads)
        x_D = self.numbers[linear.source][0, self.query].double()  # type: ignore[attr-defined]
        weight_ED, bias_E = affine(linear.module, len(x_D))  # type: ignore[attr-defined]
        made_E = weight_ED.double() @ x_D + (0 if bias_E is None else bias_E.double())
        if projection.source != f"{self.path}.q_in":  # a norm of queries: its own node computes it
            made_E = self.numbers[projection.source][0, self.query].double()
        return made_E.unflatten(0, (-1, projection.width))[self.head]

    def _mixed(self) -> tuple[dict[str, Tensor], list[Check]]:
        """Return weights, values and what is mixed."""
        weight_S, v_SE = self.of("pattern")[self.head, self.query], self.of("v")[self._shared()]
        mixed_E = self.of("mixed")[self.head, self.query]
        tensors = {"pattern": weight_S, "v": v_SE, "mixed": mixed_E}
        check = self._compare(
            "weights times values are the kernel's output", mixed_E, weight_S.double() @ v_SE.double()
        )
        if not isinstance(self.nodes.get(f"{self.path}.scores"), Scores):
            return tensors, [check]
        return tensors, [self._softmax(weight_S), check]

    def _softmax(self, weight_S: Tensor) -> Check:
        """Compare the pattern with the softmax of the scores."""
        score_S = self.of("scores")[self.head, self.query].double()
        sinks_H = self.nodes[f"{self.path}.pattern"].sinks_H  # type: ignore[attr-defined]
        rest = score_S.new_empty(0) if sinks_H is None else sinks_H[self.head].double()[None]
        share_S = torch.cat([score_S, rest]).softmax(-1)[: len(score_S)].nan_to_num(0.0)
        return self._compare("the softmax of the scores is the pattern", weight_S, share_S)

    def _out(self) -> tuple[dict[str, Tensor], list[Check]]:
        """Return what the head gives through its part of the output matrix, all heads together, and what is added."""
        joined = self.nodes[f"{self.path}.out"]
        assert isinstance(joined, JoinedHeads)
        passed_HLE = self.numbers[joined.source][0]
        width = passed_HLE.shape[-1]
        weight_DE, bias_D = affine(joined.module, passed_HLE.shape[0] * width)
        weight_DHE = weight_DE.double().unflatten(1, (-1, width))
        heads_HD = torch.einsum("he,dhe->hd", passed_HLE[:, self.query].double(), weight_DHE)
        total_D = heads_HD.sum(0) + (0 if bias_D is None else bias_D.double())
        out_D = self.of("out")[self.query]
        tensors = {"head_out": heads_HD[self.head], "out": out_D}
        checks = [self._compare("the heads through W_o sum to the attention's output", out_D, total_D)]
        added = self.nodes.get(f"{self.path}.added")
        if isinstance(added, Same) and added.source == f"{self.path}.out":
            checks.append(self._compare("that is what is added to the stream", self.of("added")[self.query], total_D))
        return tensors, checks

    def _compare(self, name: str, recorded: Tensor, expected: Tensor) -> Check:
        if not recorded.numel():
            return Check(name, 0.0, 0.0)
        off = (recorded.double() - expected.double()).abs().max() / expected.double().abs().max().clamp(min=1)
        return Check(name, float(off), bound(recorded.dtype))

    def _notes(self) -> list[str]:
        """Return by name what a reader must know of this attention."""
        notes = []
        k, v = self.nodes.get(f"{self.path}.k"), self.of("v")
        if not isinstance(self.nodes.get(f"{self.path}.scores"), Scores):
            notes.append("recurrent")
        elif isinstance(k, LatentKeys):
            notes.append("latent")
        elif v.shape[0] < self.of("pattern").shape[0]:
            notes.append("shared")
        if self.site.queries != self.site.keys:
            notes.append("cross")
        if f"{self.path}.passed" in self.nodes:
            notes.append("gated")
        return notes
