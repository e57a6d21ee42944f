"""train: it converges, keeps the best weights, stops when told to, and is deterministic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from genrecourse.model.training import TrainingPlan, train

GOAL = torch.tensor([3.0, -1.0])


class Point(nn.Module):
    """Two numbers to be moved."""

    def __init__(self, start: float = 0.0) -> None:
        super().__init__()
        self.at = nn.Parameter(torch.full((2,), start))

    def gap(self) -> Tensor:
        return ((self.at - GOAL) ** 2).sum()


def nothing() -> Iterator[None]:
    return repeat(None)


def constant(steps: int, **others: Any) -> TrainingPlan:
    return TrainingPlan(steps=steps, schedule="constant", **others)


# ---- convergence ------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["constant", "one-cycle"])
def test_a_quadratic_converges(schedule: Any) -> None:
    point = Point()
    plan = TrainingPlan(steps=300, lr=0.1, schedule=schedule)
    report = train(point, lambda _: point.gap(), nothing(), plan)
    torch.testing.assert_close(point.at.detach(), GOAL, rtol=0, atol=0.02)
    assert (report.ended, report.steps) == ("done", 300)
    assert [step for step, _, _ in report.curve] == [100, 200, 300]
    assert report.best_loss == min(judged for _, _, judged in report.curve)
    assert report.seconds > 0


def test_batches_are_used_in_turn() -> None:
    point, seen = Point(), []

    def loss(batch: int) -> Tensor:
        seen.append(batch)
        return point.gap()

    train(point, loss, iter([5, 3, 8, 1, 7]), constant(3))
    assert seen == [5, 3, 8]


def test_first_step_is_adam() -> None:
    point = Point()
    train(point, lambda _: point.gap(), nothing(), constant(1, lr=0.25))
    # Adam's first step is the rate itself, towards the goal, whatever the gradient
    torch.testing.assert_close(point.at.detach(), torch.tensor([0.25, -0.25]), rtol=0, atol=1e-5)


def test_weight_decay_pulls_to_zero() -> None:
    point = Point(start=2.0)
    train(point, lambda _: point.at.sum() * 0, nothing(), constant(10, lr=0.1, weight_decay=1.0))
    torch.testing.assert_close(point.at.detach(), torch.full((2,), 2 * 0.9**10))


def test_clip_bounds_the_gradient() -> None:
    norms: dict[float | None, float] = {}
    for clip in (None, 0.5):
        point = Point()
        train(point, lambda _, p=point: p.gap(), nothing(), constant(1, clip=clip))
        assert point.at.grad is not None
        norms[clip] = float(point.at.grad.norm())
    assert norms[None] == pytest.approx(2 * 10**0.5)
    assert norms[0.5] == pytest.approx(0.5, rel=1e-4)


# ---- the schedule -----------------------------------------------------------------------------


def rates(plan: TrainingPlan, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The rate of every step, as the optimizer has it when it is called."""
    seen: list[float] = []
    original = torch.optim.AdamW.step

    def step(self: torch.optim.AdamW, *args: Any, **kwargs: Any) -> Any:
        seen.append(float(self.param_groups[0]["lr"]))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    point = Point()
    train(point, lambda _: point.gap(), nothing(), plan)
    return seen


def test_one_cycle_rises_and_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = rates(TrainingPlan(steps=100, lr=0.5, warmup=0.2), monkeypatch)
    top = seen.index(max(seen))
    assert len(seen) == 100
    assert seen[0] == pytest.approx(0.5 / 25)
    assert max(seen) == pytest.approx(0.5, rel=1e-3)
    assert 18 <= top <= 20
    assert seen[: top + 1] == sorted(seen[: top + 1])
    assert seen[top:] == sorted(seen[top:], reverse=True)
    assert seen[-1] < 0.5 / 1000


def test_constant_is_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(rates(constant(20, lr=0.5), monkeypatch)) == {0.5}


@pytest.mark.parametrize("steps", [1, 2, 8, 9, 10, 19])
@pytest.mark.parametrize("warmup", [0.0, 0.05, 0.1, 0.5])
def test_one_cycle_of_few_steps(steps: int, warmup: float) -> None:
    point = Point()
    plan = TrainingPlan(steps=steps, warmup=warmup)
    assert train(point, lambda _: point.gap(), nothing(), plan).steps == steps
    assert torch.isfinite(point.at).all()
    assert not torch.equal(point.at.detach(), torch.zeros(2))


# ---- the best weights are kept ------------------------------------------------------------------


def runaway(point: Point) -> Tensor:
    return -point.at.sum()  # each step adds about the rate to both numbers


def test_the_best_weights_are_left_not_the_last() -> None:
    point, seen = Point(), []

    def held_out() -> float:
        seen.append(point.at.detach().clone())
        return float((point.at[0] - 0.5).abs())  # best about halfway to 1

    plan = constant(100, lr=0.01, eval_every=10)
    report = train(point, lambda _: runaway(point), nothing(), plan, held_out=held_out)
    assert report.best_step == 50
    assert report.best_loss == pytest.approx(0.0, abs=1e-3)
    assert torch.equal(point.at.detach(), seen[4])
    assert float(seen[-1][0]) == pytest.approx(1.0, abs=1e-2)
    assert [step for step, _, _ in report.curve] == list(range(10, 101, 10))
    assert [judged for _, _, judged in report.curve][4] == report.best_loss


def test_patience_stops() -> None:
    point = Point()
    losses = iter([5.0, 4.0, 6.0, 4.0, 3.0, 3.5, 3.2, 3.1, 1.0])
    plan = constant(1000, eval_every=2, patience=3)
    report = train(point, lambda _: runaway(point), nothing(), plan, held_out=lambda: next(losses))
    # 4.0 is no new best after 4.0; 3.0 starts the count again
    assert report.ended == "early-stop"
    assert [judged for _, _, judged in report.curve] == [5.0, 4.0, 6.0, 4.0, 3.0, 3.5, 3.2, 3.1]
    assert (report.steps, report.best_step, report.best_loss) == (16, 10, 3.0)


def test_an_equal_loss_is_no_new_best() -> None:
    point = Point()
    losses = iter([2.0, 1.0, 1.0, 1.0, 0.0])
    plan = constant(1000, eval_every=10, patience=2)
    report = train(point, lambda _: runaway(point), nothing(), plan, held_out=lambda: next(losses))
    assert (report.ended, report.steps, report.best_step) == ("early-stop", 40, 20)


def test_the_last_step_is_judged_too() -> None:
    point = Point()
    report = train(point, lambda _: point.gap(), nothing(), constant(25, lr=0.1, eval_every=10))
    assert [step for step, _, _ in report.curve] == [10, 20, 25]
    assert report.best_step == 25


def test_without_a_held_out_loss_the_running_loss_judges() -> None:
    point = Point()
    report = train(point, lambda _: point.gap(), nothing(), constant(100, lr=0.1, eval_every=10))
    assert all(running == judged for _, running, judged in report.curve)
    first, last = report.curve[0][1], report.curve[-1][1]
    assert last < first


def test_without_evaluation_the_last_weights_stay() -> None:
    point = Point()
    plan = constant(40, lr=0.01, eval_every=0)
    report = train(point, lambda _: runaway(point), nothing(), plan, held_out=lambda: 1 / 0)
    assert (report.curve, report.best_step, report.steps) == ([], 0, 40)
    assert point.at[0].item() == pytest.approx(0.4, abs=1e-2)


@pytest.mark.parametrize(("breaks_at", "best_step", "left"), [(35, 30, 0.3), (5, 0, 0.04)])
def test_interrupt_keeps_the_best_so_far(breaks_at: int, best_step: int, left: float) -> None:
    point = Point()
    calls = iter(range(1, 1000))

    def loss(_: object) -> Tensor:
        if next(calls) == breaks_at:
            raise KeyboardInterrupt
        return runaway(point)

    plan = constant(100, lr=0.01, eval_every=10)
    report = train(point, loss, nothing(), plan, held_out=lambda: -float(point.at.detach()[0]))
    assert report.ended == "interrupted"
    assert (report.steps, report.best_step) == (breaks_at - 1, best_step)
    assert point.at[0].item() == pytest.approx(left, abs=1e-3)
    assert not point.training


def test_another_error_is_not_swallowed() -> None:
    def loss(_: object) -> Tensor:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        train(Point(), loss, nothing(), constant(3))


# ---- modes and seeds ----------------------------------------------------------------------------


def test_modes_in_training_in_judging_and_after() -> None:
    point = Point().eval()
    in_loss, in_judging = set(), set()

    def loss(_: object) -> Tensor:
        in_loss.add((point.training, torch.is_grad_enabled()))
        return point.gap()

    def held_out() -> float:
        in_judging.add((point.training, torch.is_grad_enabled()))
        return 0.0

    train(point, loss, nothing(), constant(6, eval_every=2), held_out=held_out)
    assert in_loss == {(True, True)}
    assert in_judging == {(False, False)}
    assert not point.training


def fit_net(seed: int) -> list[Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    generator = torch.Generator().manual_seed(seed)

    def batches() -> Iterator[Tensor]:
        while True:
            yield torch.randn(16, 3, generator=generator)

    def loss(x: Tensor) -> Tensor:
        return ((net(x)[:, 0] - x.sum(1)) ** 2).mean()

    train(net, loss, batches(), TrainingPlan(steps=60, eval_every=20))
    return list(net.state_dict().values())


def test_same_seed_same_weights() -> None:
    before = torch.get_rng_state()
    first, again, other = fit_net(1), fit_net(1), fit_net(2)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    assert torch.equal(torch.get_rng_state(), before)
