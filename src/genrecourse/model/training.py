"""The training loop of every network in the library: h, R_theta, VAEs and diffusion models.

The caller passes a module, the loss of one batch, an endless iterator of batches and, for early
stopping, a held-out loss. The loop keeps the weights with the best held-out loss, also if the user
presses Ctrl-C.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from genrecourse.model.processes import as_in_first, backward_together, start_alike, together
from genrecourse.model.progress import steps_bar

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingPlan:
    """Settings of one training run: how many steps, and how large they are.

    Examples:
        >>> plan = TrainingPlan(steps=500, lr=0.01, patience=3)
        >>> plan.schedule
        'one-cycle'
    """

    steps: int
    lr: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["constant", "one-cycle"] = "one-cycle"
    warmup: float = 0.1  # share of the steps in which the one-cycle rate rises
    clip: float | None = None  # largest gradient norm; None: no limit
    eval_every: int = 100  # steps between two held-out losses; 0: never
    patience: int | None = None  # stop after so many held-out losses without a new best


@dataclass
class TrainingReport:
    """The result of a training run: the loss curve, and why the training ended.

    Examples:
        >>> TrainingReport().ended
        'done'
    """

    steps: int = 0
    seconds: float = 0.0
    ended: Literal["done", "early-stop", "interrupted"] = "done"
    best_step: int = 0
    best_loss: float = float("inf")
    curve: list[tuple[int, float, float]] = field(default_factory=list)  # step, train, held-out


def train(
    module: nn.Module,
    loss: Callable[[Any], Tensor],
    batches: Iterator[Any],
    plan: TrainingPlan,
    *,
    held_out: Callable[[], float] | None = None,
    label: str = "training",
    progress: bool | None = False,
    shared: bool = False,
) -> TrainingReport:
    """Minimise `loss` over `batches` and leave the best weights in `module`.

    Args:
        module: the network to train.
        loss: returns the loss of one batch.
        batches: an endless iterator of batches.
        plan: the number of steps and their size.
        held_out: returns the held-out loss; None: the running training loss is used instead.
        label: the text beside the progress bar.
        progress: whether to show a progress bar; None: where somebody watches.
        shared: divide the rows of each batch among the processes of torch.distributed, if there are
            several. A batch is then a tensor or a tuple of tensors, the loss a mean over its rows,
            and every process must be given the same batches. Else each process trains alone.

    Examples:
        >>> from itertools import repeat
        >>> line, x = nn.Linear(1, 1, bias=False), torch.tensor([[1.0]])
        >>> plan = TrainingPlan(steps=200, lr=0.1)
        >>> report = train(line, lambda x: ((line(x) - 2 * x) ** 2).mean(), repeat(x), plan)
        >>> report.steps, report.ended, round(line.weight.item(), 1)
        (200, 'done', 2.0)
    """
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=plan.lr, weight_decay=plan.weight_decay, fused=True
    )
    scheduler = _scheduler(optimizer, plan)
    report, best = TrainingReport(), None
    running, since_best = 0.0, 0
    started = time.perf_counter()
    module.train()
    shared = shared and together()[1] > 1
    if shared:
        start_alike(module)
    with steps_bar(label, plan.steps, progress) as tick:
        try:
            for step in range(1, plan.steps + 1):
                value = _step(module, loss, next(batches), optimizer, plan.clip, shared)
                scheduler.step()
                report.steps = step
                running += (value - running) / min(step, 50)
                if plan.eval_every and (step % plan.eval_every == 0 or step == plan.steps):
                    judged = _evaluate(module, held_out) if held_out else running
                    judged = as_in_first(judged) if shared else judged
                    report.curve.append((step, running, judged))
                    since_best += 1
                    if judged < report.best_loss:
                        report.best_loss, report.best_step, since_best = judged, step, 0
                        best = _copy(module)
                    if plan.patience is not None and since_best >= plan.patience:
                        report.ended = "early-stop"
                        break
                tick(step, running)
        except KeyboardInterrupt:
            if shared:  # the others would wait for this process
                raise
            report.ended = "interrupted"
    if best is not None:
        module.load_state_dict(best)
    module.eval()
    report.seconds = time.perf_counter() - started
    how = (label, report.steps, plan.steps, report.seconds, report.ended)
    log.info("%s: %d of %d steps in %.1f seconds (%s)", *how)
    return report


def _step(
    module: nn.Module,
    loss: Callable[[Any], Tensor],
    batch: Any,
    optimizer: torch.optim.Optimizer,
    clip: float | None,
    shared: bool,
) -> float:
    """Take one step and return the loss of the batch."""
    optimizer.zero_grad(set_to_none=True)
    if shared:
        value = backward_together(module, loss, batch)
    else:
        own = loss(batch)
        own.backward()
        value = float(own.detach())
    if clip is not None:
        nn.utils.clip_grad_norm_(module.parameters(), clip)
    optimizer.step()
    return value


def _evaluate(module: nn.Module, held_out: Callable[[], float]) -> float:
    module.eval()
    with torch.no_grad():
        value = held_out()
    module.train()
    return value


def _scheduler(
    optimizer: torch.optim.Optimizer, plan: TrainingPlan
) -> torch.optim.lr_scheduler.LRScheduler:
    if plan.schedule == "constant":
        return torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    total, warmup = int(plan.steps) + 1, plan.warmup  # it takes no numpy integer
    if warmup * total == 1:  # the rate would rise in 0 steps, and OneCycleLR divides by that
        warmup = math.nextafter(warmup, 1.0)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=plan.lr, total_steps=total, pct_start=warmup
    )


def _copy(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}
