"""Two real processes train together: both end with the same weights, as one process would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from genrecourse.model import processes
from genrecourse.model.processes import backward_together, own_share
from tests.model.together import trained_h

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two processes saved that torchrun started."""
    made = tmp_path_factory.mktemp("together")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--standalone", "-m", "tests.model.together", str(made)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return made


def test_both_processes_end_with_the_same_model(folder: Path) -> None:
    files = [(folder / f"process-{i}" / "model" / "tensors.safetensors") for i in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_h_is_the_one_that_a_single_process_trains(folder: Path) -> None:
    """Both take the gradient of the whole batch, so the weights differ by rounding alone."""
    alone = trained_h()
    for i in range(2):
        with np.load(folder / f"process-{i}" / "h.npz") as found:
            for name, weights in alone.items():
                np.testing.assert_allclose(found[name], weights, atol=1e-3)


# ---- the shares of a batch ---------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_the_shares_of_a_batch_are_the_whole_batch(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = torch.arange(n)
    parts, shares = [], 0.0
    for rank in range(3):
        monkeypatch.setattr(processes, "together", lambda rank=rank: (rank, 3))
        own, share = own_share((whole, 10 * whole))
        assert torch.equal(own[1], 10 * own[0])
        assert torch.equal(own_share(whole)[0], own[0])
        parts.append(own[0])
        shares += share
    assert sorted(torch.cat(parts).tolist()) == whole.tolist()
    assert shares == pytest.approx(1.0)


def test_gradients_of_shares_add_up_to_that_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    line, x = nn.Linear(2, 1), torch.randn(5, 2, generator=torch.Generator().manual_seed(0))

    def loss(rows: Tensor) -> Tensor:
        return (line(rows) ** 2).mean()

    loss(x).backward()
    expected = line.weight.grad
    monkeypatch.setattr(processes.dist, "all_reduce", lambda flat: None)
    total, value = torch.zeros_like(line.weight), 0.0
    for rank in range(2):
        monkeypatch.setattr(processes, "together", lambda rank=rank: (rank, 2))
        line.zero_grad(set_to_none=True)
        value += backward_together(line, loss, x)
        total += line.weight.grad
    torch.testing.assert_close(total, expected)
    assert value == pytest.approx(float(loss(x).detach()))
