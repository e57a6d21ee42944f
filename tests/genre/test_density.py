"""R_theta, on a toy whose values can be enumerated."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from genrecourse.genre.sample import sample
from genrecourse.table.cost import Cost
from genrecourse.table.noise import KeyedNoise
from tests.support.equations import (
    LEVELS,
    PEOPLE,
    RULES,
    SMALL_NET,
    Toy,
    assert_frequencies,
    fit,
    forbidden,
    make_density,
    random_case,
    total_variation,
    toy,
)


@pytest.mark.parametrize("trained", [False, True], ids=["untrained", "trained"])
@pytest.mark.parametrize("keep", [True, False], ids=["keep", "plain-bins"])
@pytest.mark.parametrize("rules", RULES)
def test_r_theta_enumerates_to_one(rules: str, keep: bool, trained: bool) -> None:
    it = toy(rules, keep=keep)
    if trained:
        fit(it.density, it.case, it.case.pairs(1.0, 50), steps=15)
    features, dead_ends = list(it.schema), 0
    for person in PEOPLE:
        x = it.x(*person)
        probability = it.probability(x)
        if not keep and not it.density.allowed(x)[0, :, :-1].any(-1).all():
            dead_ends += 1  # of plain bins: keep stands in, see the next test
            continue
        assert probability.sum() == pytest.approx(1.0, abs=1e-5)
        for (a, c), p in zip(it.values(x), probability, strict=True):
            raw = it.encoder.blocks[0].low + a * it.encoder.blocks[0].span
            broken = raw != pytest.approx(person[0]) and forbidden(
                features[0], person[0], round(raw, 6)
            )
            level = LEVELS[int(c)]
            broken |= level != person[2] and forbidden(features[2], person[2], level)
            # the level that no accepted row has is open to those who have it, if they may keep it
            broken |= level == "unseen" and not (keep and person[2] == "unseen")
            assert (p == 0) == broken
    assert dead_ends <= 1


def test_plain_logits_hold_no_cost() -> None:
    """With the cost in the logits they fall by lam * C_j; the paper's do not depend on the cost."""
    case = random_case(3, n_sources=40, n_targets=80)
    with_cost = make_density(case, n_bins=8, lam=2.0)
    plain = make_density(case, n_bins=8, lam=2.0, config=replace(SMALL_NET, cost_in_logits=False))
    x = torch.as_tensor(case.F[:20])
    x_plus = torch.as_tensor(case.targets.F[:20][:, plain.decoded.numpy()])
    cost = plain.choice_cost(x)
    assert (cost > 0).any()
    with torch.no_grad():
        logits = plain.net(x, x_plus, cost)
        assert torch.equal(logits, plain.net(x, x_plus, 0 * cost))
        torch.testing.assert_close(with_cost.net(x, x_plus, cost), logits - 2.0 * cost)
    assert "cost_scale" not in dict(plain.net.named_parameters())  # so training leaves it at zero
    draws = sample(plain, case.F[:20], 4, temperature=1.0, noise=KeyedNoise(1))  # decodes alike
    for i in range(4):
        mass = plain.log_prob(torch.as_tensor(draws.F[:, i]), x)
        np.testing.assert_allclose(mass, draws.log_prob[:, i], atol=1e-4)


def test_plain_bins_leave_no_dead_end() -> None:
    it = toy("directed", keep=False)
    x = it.x(10.0, "u", "unseen")  # nothing above: only staying is open
    assert (it.case.targets.F[:, 0] < 1.0).all()
    allowed = it.density.allowed(x)[0]
    assert allowed[0].tolist() == [False] * (allowed.shape[1] - 1) + [True]
    assert float(it.density.log_prob(x, x)) == pytest.approx(0.0, abs=1e-6)


def test_keep_is_always_open_and_offered_once() -> None:
    for rules in RULES:
        it = toy(rules)
        for person in PEOPLE:
            x = it.x(*person)
            allowed, choices = it.density.allowed(x)[0], it.density.choices(x)[0]
            assert allowed[:, -1].all()
            for j, own in enumerate(x[0, it.density.decoded].tolist()):
                assert choices[j][allowed[j]].tolist().count(own) == 1


def test_what_a_rule_forbids_has_no_probability() -> None:
    it = toy("directed")
    x = it.x(5.0, "u", "q")
    for a, g, c in [(4.0, "u", "q"), (6.0, "v", "q"), (6.0, "u", "p"), (6.0, "u", "unseen")]:
        assert it.density.log_prob(it.x(a, g, c), x).item() == -math.inf
    assert math.isfinite(it.density.log_prob(it.x(6.0, "u", "r"), x).item())


def test_choice_costs_add_up_to_c() -> None:
    """The known part of the logits, exp(-lam C_j), is the cost of the library's C."""
    case = random_case(0)
    density = make_density(case, n_bins=8)
    x = torch.as_tensor(case.F[:30])
    choices, cost = density.choices(x), density.choice_cost(x)
    rng = np.random.default_rng(0)
    for _ in range(20):
        pick = torch.as_tensor(rng.integers(0, choices.shape[-1], choices.shape[:2]))[..., None]
        pick = torch.where(choices.gather(-1, pick).isnan(), choices.shape[-1] - 1, pick)
        x_plus = x.clone()
        x_plus[:, density.decoded] = choices.gather(-1, pick)[..., 0]
        Z, Z_plus = (case.encoder.from_features(f.numpy()) for f in (x, x_plus))
        total = cost.gather(-1, pick)[..., 0].sum(-1)
        np.testing.assert_allclose(total, Cost(case.encoder)(Z, Z_plus), atol=1e-5)


@pytest.mark.parametrize(("rules", "keep"), [("free", True), ("directed", True), ("free", False)])
def test_frequencies_of_draws_match_log_prob(rules: str, keep: bool) -> None:
    it = toy(rules, keep=keep)
    for person in PEOPLE[:2]:
        x = it.x(*person)
        draws = sample(it.density, x.numpy(), 20_000, temperature=1.0, noise=KeyedNoise(1))
        probability = it.probability(x)
        assert_frequencies(it.counts(x, draws.F[0]), probability)
        # each draw also knows its own probability, and nothing was masked beyond the schema
        found = it.density.log_prob(torch.as_tensor(draws.F[0, :500]), x.expand(500, -1))
        np.testing.assert_allclose(draws.log_prob[0, :500], found, atol=1e-5)
        assert (draws.log_weight == 0).all()


def stepwise(it: Toy, x: torch.Tensor, temperature: float) -> np.ndarray:
    """Algorithm 2, line 4 by enumeration: softmax(logits / temperature), number first."""
    density = it.density
    allowed, choices, cost = density.allowed(x), density.choices(x), density.choice_cost(x)
    place = {pair: i for i, pair in enumerate(it.values(x))}
    table = np.zeros(len(place))
    with torch.no_grad():
        for i in torch.nonzero(allowed[0, 0])[:, 0].tolist():
            fed = torch.stack([choices[0, 0, i], choices[0, 1, -1]])[None]
            logits = density.net(x, fed, cost).double().masked_fill(~allowed, -torch.inf)[0]
            p = (logits / temperature).softmax(-1).numpy()
            for k in torch.nonzero(allowed[0, 1])[:, 0].tolist():
                pair = round(float(choices[0, 0, i]), 9), int(choices[0, 1, k])
                table[place[pair]] += p[0, i] * p[1, k]
    return table


@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_temperature_divides_the_logits(temperature: float) -> None:
    it = toy()
    x = it.x(*PEOPLE[1])
    np.testing.assert_allclose(stepwise(it, x, 1.0), it.probability(x), atol=1e-6)
    draws = sample(it.density, x.numpy(), 20_000, temperature=temperature, noise=KeyedNoise(2))
    assert_frequencies(it.counts(x, draws.F[0]), stepwise(it, x, temperature))
    # log_prob stays that of temperature 1
    found = it.density.log_prob(torch.as_tensor(draws.F[0, :500]), x.expand(500, -1))
    np.testing.assert_allclose(draws.log_prob[0, :500], found, atol=1e-5)


def test_a_small_temperature_gives_the_mode() -> None:
    it = toy()
    for person in PEOPLE:
        x = it.x(*person)
        draws = sample(it.density, x.numpy(), 200, temperature=1e-4, noise=KeyedNoise(3))
        counts = it.counts(x, draws.F[0])
        assert counts.max() == 200
        assert counts.argmax() == stepwise(it, x, 0.02).argmax()


# ---- masks beyond the schema, and their weight ---------------------------------------------------


def _mask(it: Toy, x: torch.Tensor) -> np.ndarray:
    """Somebody's own wish: not the lowest values of a, and only some levels of c."""
    mask = np.ones((1, 2, it.density.bins.n_choices), dtype=bool)
    mask[0, 0, :2] = False
    mask[0, 1] = False
    mask[0, 1, [0, 1]] = True
    mask[0, 1, -1] = LEVELS[int(x[0, 2])] != "r"
    return mask


def test_log_weight_is_the_mass_that_a_mask_leaves() -> None:
    it, spread = toy(sharp=8.0), []
    density = it.density
    for person in PEOPLE:
        x = it.x(*person)
        mask = _mask(it, x)
        n = 300
        draws = sample(
            density, x.numpy(), n, temperature=1.0, noise=KeyedNoise(4), also_allowed=mask
        )
        # by hand: at each position, the probability of what the mask leaves, given the prefix
        xs, chosen = x.expand(n, -1), torch.as_tensor(draws.F[0][:, [0, 2]])
        with torch.no_grad():
            logits = density.net(xs, chosen, density.choice_cost(xs)).double()
        p = logits.masked_fill(~density.allowed(xs), -torch.inf).softmax(-1).numpy()
        left = np.log((p * mask).sum(-1)).sum(-1)
        spread.append(np.ptp(left))
        np.testing.assert_allclose(draws.log_weight[0], left, atol=1e-5)
        # log_prob is under all masks, so with the weight it is R_theta itself again
        whole = density.log_prob(torch.as_tensor(draws.F[0]), xs)
        np.testing.assert_allclose(draws.log_prob[0] + draws.log_weight[0], whole, atol=1e-5)
    assert max(spread) > 0.3  # draws of one person differ in weight


def test_weighted_draws_under_a_mask_follow_r_given_the_mask() -> None:
    """A mask on c does not condition a, which is drawn before it; the weights do."""
    it = toy(sharp=8.0)
    x = it.x(*PEOPLE[3])
    mask = _mask(it, x)
    choices = it.density.choices(x)[0].numpy()
    open_ = it.density.allowed(x)[0].numpy() & mask[0]
    wanted = [
        a in np.round(choices[0][open_[0]], 9) and c in choices[1][open_[1]]
        for a, c in it.values(x)
    ]
    conditional = it.probability(x) * wanted
    conditional /= conditional.sum()
    draws = sample(
        it.density, x.numpy(), 40_000, temperature=1.0, noise=KeyedNoise(5), also_allowed=mask
    )
    plain = it.counts(x, draws.F[0]) / 40_000
    weighted = it.counts(x, draws.F[0], np.exp(draws.log_weight[0]))
    assert total_variation(weighted / weighted.sum(), conditional) < 0.015
    assert total_variation(plain, conditional) > 0.06
