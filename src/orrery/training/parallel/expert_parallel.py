"""Experts that several processes share: each has some of a layer, and tokens go there and back."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed._functional_collectives import all_to_all_single_autograd
from torch.distributed.device_mesh import DeviceMesh

from orrery.errors import UsageError
from orrery.nn.context import Context
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routing import Routing
from orrery.recipes.parallel import ParallelSettings, divisors, near
from orrery.training.parallel.meshes import keep, owners, processes
from orrery.training.parallel.sharing import Sharing
from orrery.training.parallel.tensor_parallel import own_tensors


def share_experts(model: nn.Module, device: str, degrees: ParallelSettings, ranks: Sharing) -> None:
    """Have each ``expert`` neighbours among the processes of ``data`` and ``fsdp`` share the experts of each layer.

    Lepikhin et al. 2020, https://arxiv.org/abs/2006.16668, section 2.2. Process ``e`` of them has the ``e``-th share of
    the experts, whole; the others send it the tokens that chose them, and get the answers back.
    Differs from the paper: no expert has a capacity, so no token is dropped.

    Args:
        model: changed in place; its parameters keep their names.
        device: of the processes.
        degrees: with as many copies as there are.
        ranks: that are told which experts were called.

    Raises:
        UsageError: the model has no experts, or they do not divide.
    """
    mixtures = [(path, module) for path, module in model.named_modules() if isinstance(module, MoE)]
    refuse_undivided(mixtures, degrees.expert)
    ranks.answers_others = True
    # Axes: groups of neighbours, neighbours, those that share rows or layers with them.
    numbers = processes(degrees)[0].flatten(0, 1).unflatten(0, (-1, degrees.expert)).flatten(2)
    group = DeviceMesh(device, numbers.permute(0, 2, 1).flatten(0, 1), mesh_dim_names=("others", "expert"))["expert"]
    holders = [owners(device, numbers[:, number]) for number in range(degrees.expert)]
    for _, mixture in mixtures:
        for holder, share in zip(holders, shares(mixture, degrees.expert), strict=True):
            for expert in share:
                keep(expert, dict.fromkeys(expert.parameters(), holder))
        described: Any = mixture
        described.mix = partial(mixed, mixture, group, lambda: ranks.idling)


def refuse_undivided(mixtures: list[tuple[str, MoE]], processes: int) -> None:
    """Refuse a model without experts, and a layer whose experts do not divide.

    Raises:
        UsageError: it is such a one.
    """
    if not mixtures:
        message = f"parallel.expert {processes}: the model has no mixture of experts"
        raise UsageError(message, "leave it out; parallel.fsdp shares the weights of every model")
    for path, mixture in mixtures:
        count = len(mixture.experts)
        if count % processes:
            message = f"parallel.expert {processes} does not divide the {count} experts of {path}"
            raise UsageError(message, f"would fit: {near(divisors(count), processes)}")


def shares(mixture: MoE, processes: int) -> list[list[nn.Module]]:
    """Return the experts of a layer that each process has."""
    size = len(mixture.experts) // processes
    experts = [*mixture.experts]
    return [experts[first : first + size] for first in range(0, len(experts), size)]


def mixed(
    mixture: MoE, mesh: DeviceMesh, idling: Callable[[], bool], x_ND: Tensor, routing: Routing, ctx: Context
) -> Tensor:
    """Send each token to the processes that have its experts, and add up the weighed answers that come back.

    What an idle process has adds nothing to the loss, so that it sends nothing.
    """
    processes, chosen = mesh.size(), routing.chosen_NE.shape[1]
    by_expert_M = routing.chosen_NE.flatten().argsort(stable=True)[: 0 if idling() else None]
    row_M, weight_M = by_expert_M // chosen, routing.weights_NE.flatten()[by_expert_M]
    counts_X = torch.bincount(routing.chosen_NE.flatten()[by_expert_M], minlength=len(mixture.experts))
    theirs_X = torch.empty_like(counts_X)
    dist.all_to_all_single(theirs_X, counts_X, group=mesh.get_group())
    out, back = counts_X.view(processes, -1), theirs_X.view(processes, -1)
    sent, got = out.sum(1).tolist(), back.sum(1).tolist()
    x_TD = sent_and_got(x_ND[row_M], sent, got, mesh)
    own = shares(mixture, processes)[mesh.get_local_rank()]
    answers_TD = answered(own, mesh, x_TD, back, replace(ctx, taps=None))
    answers_MD = sent_and_got(answers_TD, got, sent, mesh) * weight_M[:, None]
    return torch.zeros_like(x_ND).index_add(0, row_M, answers_MD.to(x_ND.dtype))


def sent_and_got(x: Tensor, sent: list[int], got: list[int], mesh: DeviceMesh) -> Tensor:
    """Return the rows that other processes send here, of which ``got`` come from each, for ``sent`` of these."""
    received: Tensor = all_to_all_single_autograd(x.contiguous(), got, sent, mesh.get_group())
    return received


def answered(experts: list[nn.Module], mesh: DeviceMesh, x_TD: Tensor, counts_PX: Tensor, ctx: Context) -> Tensor:
    """Return what own experts say to tokens that lie by process, and by expert within each.

    One that nobody chose is asked too, about no token, so that each process sends back as much as it got.
    """
    numbers = torch.arange(len(experts), device=x_TD.device).repeat(len(counts_PX))
    by_expert_T = torch.repeat_interleave(numbers, counts_PX.flatten()).argsort(stable=True)
    answers = []
    for expert, x in zip(experts, x_TD[by_expert_T].split(counts_PX.sum(0).tolist()), strict=True):
        with own_tensors(expert.modules(), mesh):
            ask = expert if len(x) else expert.forward  # a hook counts what is called
            answers.append(ask(x[None], ctx)[0])
    return torch.cat(answers)[by_expert_T.argsort()]
