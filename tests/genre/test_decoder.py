"""The decoder of plain arrays gives the logits of the net, to rounding in double precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from genrecourse.genre.decoder import Decoder
from genrecourse.genre.density import RecourseDensity
from genrecourse.genre.model import NetConfig, RecourseNet
from tests.support.equations import Case, make_density, random_case

DEEP = NetConfig(width=24, heads=3, feedforward=20, encoder_layers=1, decoder_layers=3)


def _case(lam: float | str) -> tuple[Case, RecourseDensity]:
    """A table with missing values, and a net of three layers whose weights are all random."""
    case = random_case(3, n_sources=60, n_targets=150)
    density = make_density(case, n_bins=8, seed=1, lam=lam)
    old = density.net
    torch.manual_seed(5)
    net = RecourseNet(DEEP, old.embed_x.knots, old.decoded, density.bins.n_choices, lam=lam)
    with torch.no_grad():
        for part in net.parameters():
            part += 0.3 * torch.randn_like(part)  # norms and biases start at 1 and 0
    return case, replace(density, net=net)


@pytest.mark.parametrize("lam", [5.0, "any"])
def test_the_logits_are_the_net_s(lam: float | str) -> None:
    case, density = _case(lam)
    decoder, x = Decoder(density.net), torch.as_tensor(case.F[:40])
    asked = 2.5 if lam == "any" else None
    fed = density.choices(x)[:, :, 1].nan_to_num(0.5)
    fed[::3] = x[::3][:, density.decoded]  # some stay as x has them, some of these are missing
    assert fed.isnan().any()
    cost = density.choice_cost(x)
    lams = None if asked is None else torch.full((len(x),), asked, dtype=torch.float64)
    with torch.no_grad():
        want = decoder.net(x, fed, cost, lams).numpy()
    state = decoder.start(x.numpy(), 1, asked)
    for t in range(want.shape[1]):
        before = fed[:, t - 1].numpy() if t else None
        got = decoder.step(state, t, before, cost[:, t].numpy())
        np.testing.assert_allclose(got, want[:, t], rtol=1e-9, atol=1e-9)


def test_sequences_of_a_row_and_chosen_columns() -> None:
    case, density = _case(5.0)
    decoder, x = Decoder(density.net), case.F[:6]
    cost = density.choice_cost(torch.as_tensor(x)).numpy()
    own, some = x[:, density.decoded.numpy()], np.array([0, 2, cost.shape[-1] - 1])
    one, three = decoder.start(x, 1), decoder.start(x, 3)
    for t in range(2):
        before = own[:, 0] if t else None
        spread = np.repeat(own[:, 0], 3) if t else None
        alone = decoder.step(one, t, before, cost[:, t])
        each = decoder.step(three, t, spread, cost[:, t][:, some], some)
        np.testing.assert_allclose(each, np.repeat(alone[:, some], 3, axis=0), rtol=1e-12)


def test_a_sequence_can_go_on_from_another() -> None:
    """Resampling: after `follow`, sequence 0 has the past of sequence 1."""
    case, density = _case(5.0)
    decoder, x = Decoder(density.net), case.F[:1]
    cost = density.choice_cost(torch.as_tensor(x)).numpy()
    values = density.choices(torch.as_tensor(x))[0, 0].numpy()[:2]
    state, other = decoder.start(x, 2), decoder.start(x, 2)
    for each, first in ((state, values), (other, values[[1, 1]])):
        decoder.step(each, 0, None, cost[:, 0])
        decoder.step(each, 1, first, cost[:, 1])
    second = density.choices(torch.as_tensor(x))[0, 1].numpy()[[0, 0]]
    apart = decoder.step(state, 2, second, cost[:, 2])
    assert not np.allclose(apart[0], apart[1])
    state.follow(np.array([1, 1]), 2)
    np.testing.assert_allclose(
        decoder.step(state, 2, second, cost[:, 2]), decoder.step(other, 2, second, cost[:, 2])
    )
