"""Several processes that train one network together, each on its share of every batch.

`torchrun`, or a Ray Train loop, starts the processes; torch.distributed connects them. Each process
computes the gradient of its share, and the sum over the processes is the gradient of the batch. So
all processes take the same steps and end with the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def together() -> tuple[int, int]:
    """Return the number of this process, and how many train together.

    >>> together()  # a process alone
    (0, 1)
    """
    if not (dist.is_available() and dist.is_initialized()):
        return 0, 1
    return dist.get_rank(), dist.get_world_size()


def own_share(batch: Any) -> tuple[Any, float]:
    """Return this process's rows of a batch, and which share of the batch they are.

    batch: a tensor, or a tuple of tensors of the same length.

    >>> own_share(torch.tensor([5, 3, 8]))  # a process alone
    (tensor([5, 3, 8]), 1.0)
    """
    first, step = together()
    if isinstance(batch, Tensor):
        own = batch[first::step]
        return own, len(own) / len(batch)
    parts = tuple(part[first::step] for part in batch)
    return parts, len(parts[0]) / len(batch[0])


def backward_together(module: nn.Module, loss: Callable[[Any], Tensor], batch: Any) -> float:
    """Compute the gradient of a batch, each process of its own rows; return the loss of the batch.

    loss: the mean over the rows that it is given.

    >>> line, x = nn.Linear(1, 1, bias=False), torch.tensor([[1.0], [3.0]])
    >>> loss = backward_together(line, lambda x: (line(x) - 2 * x).mean(), x)
    >>> line.weight.grad
    tensor([[2.]])
    """
    own, share = own_share(batch)
    value = torch.zeros(())
    if share > 0:
        value = loss(own) * share
        value.backward()
    learned = [each for each in module.parameters() if each.requires_grad]
    for each in learned:
        if each.grad is None:  # no row here, or the loss does not need it
            each.grad = torch.zeros_like(each)
    grads = [each.grad for each in learned if each.grad is not None]
    flat = torch.cat([value.detach().reshape(1), *(grad.reshape(-1) for grad in grads)])
    if together()[1] > 1:
        dist.all_reduce(flat)
    parts = flat[1:].split([grad.numel() for grad in grads])
    for grad, part in zip(grads, parts, strict=True):
        grad.copy_(part.view_as(grad))
    return float(flat[0])


def start_alike(module: nn.Module) -> None:
    """Give a module the weights that it has in the first process.

    >>> start_alike(nn.Linear(1, 1))  # a process alone: nothing changes
    """
    if together()[1] > 1:
        for each in module.state_dict().values():
            dist.broadcast(each, src=0)


def as_in_first(value: float) -> float:
    """Return the number that the first process has, so that all processes decide alike.

    >>> as_in_first(0.5)  # a process alone
    0.5
    """
    if together()[1] == 1:
        return value
    number = torch.tensor(value, dtype=torch.float64)
    dist.broadcast(number, src=0)
    return float(number)


@contextmanager
def joined_by_torchrun() -> Iterator[bool]:
    """Connect the processes that torchrun has started; yields whether this is the first one.

    >>> with joined_by_torchrun() as is_first:  # a process alone
    ...     is_first
    True
    """
    if dist.is_available() and not dist.is_initialized() and dist.is_torchelastic_launched():
        dist.init_process_group("gloo")
        try:
            yield together()[0] == 0
            dist.barrier()  # nobody leaves before the first one has saved
        finally:
            dist.destroy_process_group()
    else:
        yield together()[0] == 0
