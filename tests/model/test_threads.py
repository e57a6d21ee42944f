"""Threads: small products use one torch thread, and everything is set back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from genrecourse.model.classifier import _run_module
from genrecourse.model.threads import SMALL, torch_threads
from genrecourse.trust.retrained import RetrainedModels


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_only_little_work_has_one_thread() -> None:
    with torch_threads(SMALL - 1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with torch_threads(SMALL):
        assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_threads_are_set_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), torch_threads(1):
        _ = 1 / 0
    assert torch.get_num_threads() == 2


class Seen(nn.Module):
    """Notes how many threads it runs with, and which of its parts are in train mode."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.drop = nn.Linear(2, 1), nn.Dropout(0.5)
        self.threads: list[int] = []
        self.modes: list[bool] = []

    def forward(self, Z: torch.Tensor) -> torch.Tensor:
        self.threads.append(torch.get_num_threads())
        self.modes += [part.training for part in self.modules()]
        return torch.sigmoid(self.drop(self.linear(Z)))[:, 0]


@pytest.mark.usefixtures("two_threads")
def test_h_is_asked_with_one_thread() -> None:
    module = Seen()
    _run_module(module, np.zeros((5, 2)))
    assert module.threads == [1]


@pytest.mark.usefixtures("two_threads")
def test_retrained_models_are_asked_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    models, threads = RetrainedModels(n_inputs=2), []
    logits = models.logits

    def noted(Z: torch.Tensor) -> torch.Tensor:
        threads.append(torch.get_num_threads())
        return logits(Z)

    monkeypatch.setattr(models, "logits", noted)
    models(np.zeros((5, 2)))
    assert threads == [1]


def test_each_part_of_a_module_gets_its_own_mode_back() -> None:
    """A user may have frozen a part in eval mode, or forgotten one in train mode."""
    module = Seen()
    module.linear.eval()
    _run_module(module, np.zeros((5, 2)))
    assert not any(module.modes)
    assert module.training
    assert not module.linear.training
    assert module.drop.training
    module.training = False  # and only itself
    _run_module(module, np.zeros((5, 2)))
    assert not any(module.modes)
    assert not module.training
    assert module.drop.training
