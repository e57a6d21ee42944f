"""Step 5 under a request's rules: sequential Monte Carlo on R_theta, without training again.

    pi(x+ | x)  ∝  R_theta(x+ | x) [x+ keeps the rules]

A mask alone is biased: a rule on a later feature does not affect the earlier ones, so most draws
reach a locked feature with a prefix that the lock makes unlikely. Each draw is therefore a
particle, weighted by the mass that the rules leave at every position. If the weights of a row's
particles become uneven, the particles are resampled: prefixes that suit the rules are continued
several times, and the others are dropped. A prefix that cannot be completed is dropped at once:
every step checks the number and cost of its changes, and the relations on features that are still
open (`relations.py`). The decoding order is the fixed one of training (docs/decisions/0011).

As in `sample`, the noise depends on the row's own content and chunks have one shape, so a person's
draws depend only on the person and their rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from genrecourse.genre.sample import CHUNK_SEQUENCES, Draws
from genrecourse.rules.relations import Possible, Relation
from genrecourse.table.encoding import TOLERANCE, Array

if TYPE_CHECKING:
    from genrecourse.genre.decoder import DecodingState
    from genrecourse.genre.density import RecourseDensity
    from genrecourse.rules.book import RuleBook
    from genrecourse.table.noise import KeyedNoise

PARTICLES = 64  # at least so many a row, whatever number of draws is asked for
MANY = 1024  # for a row whose particles were hardly worth anything ...
SPARSE = 0.25  # ... on the way: an effective sample size below this share of them
RESAMPLE_BELOW = 0.5  # of the particles: an effective sample size below this is resampled


@torch.inference_mode()
def sample_constrained(
    density: RecourseDensity,
    F: Array,
    n: int,
    request: RuleBook,
    *,
    temperature: float,
    noise: KeyedNoise,
    sigma: float = 0.0,
    lam: float | None = None,
    all_found: bool = False,
    particles: int = PARTICLES,
) -> Draws:
    """Return n draws for each row of F (N, d) that keep the rules of the request.

    The draws follow R_theta at this temperature, restricted to the rules, as far as a finite number
    of particles allows: rows with a small effective sample size are drawn again with more
    particles. If all particles of a row died, return x at log_prob -inf.

    all_found: return all that n particles found, whatever their weight, for a selection that weighs
    them itself.

    >>> from genrecourse.evaluation.example_tables import example_density, example_rows
    >>> from genrecourse.table.noise import KeyedNoise
    >>> problem, _ = example_rows()
    >>> person = problem.read(problem.probe.head(1))
    >>> request = problem.compile({"lock": ["pets"]}, person)
    >>> how = {"temperature": 1.0, "noise": KeyedNoise(0)}
    >>> sample_constrained(example_density(), person.F, 3, request, **how).F[0, :, 1]
    array([0., 0., 0.])
    """
    how = (temperature, noise, lam)
    if all_found:
        parts = _swarms(density, F, n, request, *how, n_particles=n, all_found=True)
    else:
        parts = _swarms(density, F, n, request, *how, n_particles=max(particles, n))
        hard = np.flatnonzero(parts[3] < SPARSE * max(particles, n))
        if len(hard):
            many = max(MANY, n)
            again = _swarms(density, F[hard], n, request.take(hard), *how, n_particles=many)
            for part, better in zip(parts, again, strict=True):
                part[hard] = better
    chosen, log_prob, log_weight, ess = parts
    F_plus = np.repeat(F[:, None, :], n, axis=1)
    F_plus[:, :, density.decoded.numpy()] = chosen
    if sigma > 0:
        eps = sigma * noise.normal(noise.keys(F), (n, len(density.decoded)), offset=2**40)
        F_plus = _jittered(density, F, F_plus, eps, request)
    return Draws(F_plus, log_prob, log_weight, ess)


def _swarms(
    density: RecourseDensity,
    F: Array,
    n: int,
    request: RuleBook,
    temperature: float,
    noise: KeyedNoise,
    lam: float | None,
    *,
    n_particles: int,
    all_found: bool = False,
) -> tuple[Array, Array, Array, Array]:
    """All rows in chunks: values (N, n, m), log_prob, log_weight, ess."""
    rows = max(1, CHUNK_SEQUENCES // n_particles)
    keys, m = noise.keys(F), len(density.decoded)
    parts = [(np.zeros((0, n, m)), np.zeros((0, n)), np.zeros((0, n)), np.zeros(0))]
    for i in range(0, len(F), rows):
        some = np.arange(i, min(i + rows, len(F)))
        u = noise.uniform(keys[some], (n_particles, m))
        turns = noise.uniform(keys[some], (m + 1,), offset=2**41)
        swarm = _Swarm(density, F[some], request.take(some), n_particles, temperature, u, lam)
        swarm.run(turns)
        if all_found:
            part = swarm.everything()
        else:  # resampling sorts, and a draw must not be known by its number
            order = noise.uniform(keys[some], (n,), offset=2**42).argsort(axis=1)
            part = swarm.draws(n, turns[:, -1], order)
        parts.append(part)
    values, log_prob, log_weight, ess = (np.concatenate(p) for p in zip(*parts, strict=True))
    return values, log_prob, log_weight, ess


class _Swarm:
    """The particles of one chunk: B rows with n each, S = B * n."""

    def __init__(
        self,
        density: RecourseDensity,
        F: Array,
        request: RuleBook,
        n: int,
        temperature: float,
        u: Array,
        lam: float | None,
    ):
        self.density, self.request, self.n, self.temperature = density, request, n, temperature
        self.x, self.lam = torch.as_tensor(F), lam
        self.u = torch.as_tensor(u).flatten(0, 1)  # (S, m)
        self.values = density.choices(self.x)
        self.cost, self.base = density.cost_and_allowed(self.x)
        self.open = self._within_rules()
        self.moved = _moves(self.values, self.x[:, density.decoded])
        self.price = _price(density, self.values, self.x)
        self.budget = _Budget(request, self.price, self.open & self.moved, n)
        self.relations = _Relations(self)
        self.foresight = _Foresight(self)
        S, m = self.u.shape
        self.chosen = torch.empty(S, m, dtype=torch.float64)
        self.changed = torch.zeros(S, m, dtype=torch.bool)
        self.log_prob = torch.zeros(S, dtype=torch.float64)  # under all masks, temperature 1
        self.log_mass = torch.zeros(S, dtype=torch.float64)  # what the rules left, temperature 1
        self.weight = torch.zeros(S, dtype=torch.float64)  # log, since the last resampling
        self.ess = np.full(len(F), float(n))

    def _within_rules(self) -> Tensor:
        """(B, m, K + 1) choices that the rules on single features leave open."""
        open_, rows, values = self.base.clone(), self.x.numpy(), self.density.bins.value.numpy()
        for i, j in enumerate(self.density.decoded.tolist()):
            ok = self.request.allowed(j, rows[:, j][:, None], values[i][None, :])
            open_[:, i, :-1] &= torch.as_tensor(ok)
        if not self.density.keep:
            # plain bins know no keep: it is the way out of a dead end, and says nothing there
            stuck = ~open_.any(-1)
            open_[..., -1] |= stuck
            self.base[stuck] = open_[stuck]
        return open_

    # ---- forward ------------------------------------------------------------------------------

    def run(self, turns: Array) -> None:
        """All positions; turns (B, m + 1) are the random numbers of resampling."""
        decoder, m, cost = self.density.decoder, len(self.density.decoded), self.cost.numpy()
        state = decoder.start(self.x.numpy(), self.n, self.lam)
        before = None
        for t in range(m):
            self._choose(t, torch.as_tensor(decoder.step(state, t, before, cost[:, t])))
            if t < m - 1:
                self._resample(t, turns[:, t], state)
            before = self.chosen[:, t].numpy()
        self.ess = np.minimum(self.ess, self._effective())

    def _choose(self, t: int, logits: Tensor) -> None:
        logits = logits.float().double().masked_fill(~self._each(self.base[:, t]), -torch.inf)
        moved, cost = self._each(self.moved[:, t]), self._each(self.price[:, t])
        meets = self.budget.within(moved, cost) & self.relations.can_be_met(t, moved, cost)
        ok = self._each(self.open[:, t]) & meets
        if not self.density.keep:
            stuck = ~(ok & logits.isfinite()).any(-1)
            logits[stuck, -1], ok[stuck, -1] = 0.0, meets[stuck, -1]
        log_p, log_q = logits.log_softmax(-1), (logits / self.temperature).log_softmax(-1)
        closed = ~ok
        left_p = log_p.masked_fill(closed, -torch.inf).logsumexp(-1)
        log_q = log_q.masked_fill(closed, -torch.inf)
        log_q = log_q + self.foresight(t + 1, self.budget.changes_left(moved))
        left_q = log_q.logsumexp(-1)
        cdf = log_q.sub(left_q.nan_to_num(neginf=0.0)[:, None]).exp().cumsum(-1)
        place = (cdf < self.u[:, t : t + 1] * cdf[:, -1:]).sum(-1, keepdim=True)
        place = torch.where(left_q[:, None].isfinite(), place, ok.shape[-1] - 1)  # dead: x's own
        self.log_prob += log_p.gather(-1, place)[:, 0] - left_p.nan_to_num(neginf=0.0)
        self.log_mass += left_p
        self.weight += left_q - self.foresight(t, self.budget.changes_left())[:, 0]
        self.chosen[:, t] = self._each(self.values[:, t]).gather(-1, place)[:, 0]
        self.changed[:, t] = moved.gather(-1, place)[:, 0]
        self.budget.spend(self.changed[:, t], cost.gather(-1, place)[:, 0])

    def _each(self, per_row: Tensor) -> Tensor:
        """(B, ...) -> (S, ...)."""
        return per_row.repeat_interleave(self.n, dim=0)

    # ---- weights ------------------------------------------------------------------------------

    def _weights(self) -> Array:
        """(B, n) summing to 1; all equal where every particle has died."""
        log_w = self.weight.view(-1, self.n).numpy()
        top = log_w.max(axis=1, keepdims=True)
        w = np.where(np.isfinite(top), np.exp(log_w - np.where(np.isfinite(top), top, 0.0)), 1.0)
        return np.asarray(w / w.sum(axis=1, keepdims=True))

    def _effective(self) -> Array:
        """(B,) the effective number of particles."""
        return np.asarray(1.0 / (self._weights() ** 2).sum(axis=1))

    def _resample(self, t: int, u: Array, state: DecodingState) -> None:
        """Rows whose particles have become uneven go on with likelier ones, equally weighted."""
        effective = self._effective()
        self.ess = np.minimum(self.ess, effective)
        uneven = effective < RESAMPLE_BELOW * self.n
        if not uneven.any():
            return
        stay = np.arange(self.n)[None, :]
        ancestors = np.where(uneven[:, None], systematic(self._weights(), self.n, u), stay)
        flat = torch.as_tensor((ancestors + self.n * np.arange(len(ancestors))[:, None]).ravel())
        for values in (self.chosen, self.changed, self.log_prob, self.log_mass, *self.budget.spent):
            values[:] = values[flat]
        state.follow(flat.numpy(), t + 1)
        evened = torch.as_tensor(uneven).repeat_interleave(self.n)
        self.weight = self.weight.masked_fill(evened, 0.0)

    # ---- results ------------------------------------------------------------------------------

    def everything(self) -> tuple[Array, Array, Array, Array]:
        """Values (B, n, m), log_prob (B, n), log_weight (B, n), ess (B,); the dead as x is."""
        dead = self.weight.isinf()
        own = self._each(self.x[:, self.density.decoded])
        chosen = torch.where(dead[:, None], own, self.chosen)
        log_prob = torch.where(dead, -torch.inf, self.log_prob)
        shape = (len(self.x), self.n)
        return (
            chosen.view(*shape, -1).numpy(),
            log_prob.view(shape).numpy(),
            torch.where(dead, 0.0, self.log_mass).view(shape).numpy(),
            self.ess,
        )

    def draws(self, n: int, u: Array, order: np.ndarray) -> tuple[Array, Array, Array, Array]:
        """The same for n draws of equal weight, put in an order."""
        chosen, log_prob, log_mass, ess = self.everything()
        i = _reorder(systematic(self._weights(), n, u), order)
        return _reorder(chosen, i), _reorder(log_prob, i), _reorder(log_mass, i), ess


def systematic(weights: Array, n: int, u: Array) -> np.ndarray:
    """Return (B, n) indices; index i appears about n * weights[:, i] times.

    u (B,): one uniform random number per row. Systematic resampling (Kitagawa 1996) takes n equally
    spaced points on the line of cumulated weights.

    >>> systematic(np.array([[0.5, 0.0, 0.5]]), n=4, u=np.array([0.3]))
    array([[0, 0, 2, 2]])
    """
    ends = weights.cumsum(axis=1)
    places = (u[:, None] + np.arange(n)[None, :]) / n * ends[:, -1:]
    return np.asarray((ends[:, None, :] < places[:, :, None]).sum(axis=2))


def _reorder(values: Array, order: np.ndarray) -> Array:
    """(B, n, ...) by indices (B, k)."""
    return np.asarray(values[np.arange(len(values))[:, None], order])


def _moves(values: Tensor, own: Tensor) -> Tensor:
    """(B, m, K + 1) choices that differ from x."""
    gap = (values - own[..., None]).abs()
    return ~((gap <= TOLERANCE) | (values.isnan() & own.isnan()[..., None]))


def _price(density: RecourseDensity, values: Tensor, x: Tensor) -> Tensor:
    """(B, m, K + 1) the cost of each choice to the last digit: a limit may be met exactly."""
    own = x[:, density.decoded][..., None]
    gap = (values - own).abs()
    for t, j in enumerate(density.decoded.tolist()):
        if density.bins.is_number[t]:
            standing = [density.standing(j, part[:, t]) for part in (values, own)]
            gap[:, t] = (standing[0] - standing[1]).abs()
    is_far = density.bins.is_number[:, None] & ~gap.isnan()
    moved = _moves(values, own[..., 0]).double()
    return density.weights.double()[:, None] * torch.where(is_far, gap, moved)


class _Budget:
    """The number of changes and their price, so far and at most."""

    def __init__(self, request: RuleBook, cost: Tensor, open_moves: Tensor, n: int):
        self.max_changes = torch.as_tensor(request.max_changes).repeat_interleave(n)[:, None]
        self.max_cost = torch.as_tensor(request.max_cost).repeat_interleave(n)[:, None] + TOLERANCE
        zeros = torch.zeros(len(self.max_cost), dtype=torch.float64)
        self.spent = (zeros, zeros.clone())  # changes, cost
        self.binds = bool(
            torch.isfinite(self.max_cost).any() | torch.isfinite(self.max_changes).any()
        )
        # the cheapest change after each position: less left than that, and all the rest must stay
        cheapest = cost.masked_fill(~open_moves, torch.inf).amin(-1)  # (B, m)
        later = cheapest.flip(1).cummin(1).values.flip(1)
        end = torch.full_like(later[:, :1], torch.inf)
        self.cheapest = torch.cat([later[:, 1:], end], dim=1).repeat_interleave(n, dim=0)

    def _after(self, moved: Tensor, cost: Tensor) -> tuple[Tensor, Tensor]:
        return self.spent[0][:, None] + moved, self.spent[1][:, None] + cost

    def within(self, moved: Tensor, cost: Tensor) -> Tensor:
        """(S, K + 1) choices after which neither limit is passed."""
        if not self.binds:
            return torch.ones_like(moved)
        changes, spent = self._after(moved, cost)
        return (changes <= self.max_changes) & (spent <= self.max_cost)

    def is_used_up(self, t: int, moved: Tensor, cost: Tensor) -> Tensor:
        """(S, K + 1) choices after which all that comes later must stay as x has it."""
        changes, spent = self._after(moved, cost)
        return (changes >= self.max_changes) | (spent + self.cheapest[:, t : t + 1] > self.max_cost)

    def changes_left(self, moved: Tensor | None = None) -> Tensor:
        """(S, 1) how many changes are left, or (S, K + 1) after each choice; below 0: too many."""
        left = self.max_changes - self.spent[0][:, None]
        return left if moved is None else left - moved.double()

    def spend(self, moved: Tensor, cost: Tensor) -> None:
        self.spent[0].add_(moved)
        self.spent[1].add_(cost)


class _Foresight:
    """How likely a prefix with so many changes left is to get by with them: log psi_t.

    A limit on the number of changes is felt at the end only, when most particles have spent theirs.
    psi is what R would say if the later features hung on x alone, read off one pass in which
    everything stays as it is. It need not be right: choosing by p * psi and weighing by what
    that changed leaves the target what it was, and makes the weights even.
    """

    def __init__(self, swarm: _Swarm):
        self.n, m = swarm.n, len(swarm.density.decoded)
        self.log_psi: Tensor | None = None
        if not bool(swarm.budget.max_changes.isfinite().any()):
            return
        density, x = swarm.density, swarm.x
        logits = density.logits(x, x[:, density.decoded], swarm.lam)
        logits = logits.masked_fill(~swarm.base, -torch.inf) / swarm.temperature
        p = logits.softmax(-1) * swarm.open
        change, stay = (p * swarm.moved).sum(-1), (p * ~swarm.moved).sum(-1)  # (B, m)
        enough = torch.zeros(len(x), m + 1, m + 1, dtype=torch.float64)  # row, position, left
        enough[:, m] = 1.0
        for t in reversed(range(m)):
            enough[:, t] = stay[:, t, None] * enough[:, t + 1]
            enough[:, t, 1:] += change[:, t, None] * enough[:, t + 1, :-1]
        # against no limit at all, so that whom none binds is not bothered
        psi = enough / enough[:, :, -1:].clamp_min(1e-300)
        self.log_psi = psi.clamp_min(1e-12).log()

    def __call__(self, t: int, left: Tensor) -> Tensor:
        """log psi_t for each number of changes left (S, c); of too many it does not speak."""
        if self.log_psi is None:
            return torch.zeros_like(left)
        table = self.log_psi[:, t].repeat_interleave(self.n, dim=0)
        return table.gather(1, left.clamp(0, table.shape[1] - 1).long())


class _Relations:
    """Which choices leave every relation a way to be met."""

    def __init__(self, swarm: _Swarm):
        self.swarm, self.request = swarm, swarm.request
        self.position = {j: i for i, j in enumerate(swarm.density.decoded.tolist())}
        self.x = swarm.x.numpy().repeat(swarm.n, axis=0)
        used = {j for relation in self.request.relations for j in relation.features}
        self.later = {j: self._open(j) for j in used if j in self.position}

    def _open(self, j: int) -> Possible:
        """What feature j may still become: (S, 1), and (S, 1, L + 1) for the levels."""
        i, feature = self.position[j], self.request.features[j]
        values = np.where(self.swarm.open[:, i], self.swarm.values[:, i], np.nan)
        missing = (np.isnan(self.swarm.values[:, i].numpy()) & self.swarm.open[:, i].numpy()).any(1)
        low = np.where(np.isnan(values), np.inf, values).min(axis=1)
        high = np.where(np.isnan(values), -np.inf, values).max(axis=1)
        # a value that may stay missing has no bounds
        low, high = np.where(missing, -np.inf, low), np.where(missing, np.inf, high)
        levels = None
        if feature.is_category:
            found = (values[..., None] == np.arange(len(feature.categories))).any(1)
            levels = np.concatenate([found, missing[:, None]], axis=1)
            levels = levels.repeat(self.swarm.n, axis=0)[:, None, :]
        n = self.swarm.n
        return Possible(low.repeat(n)[:, None], high.repeat(n)[:, None], levels)

    def can_be_met(self, t: int, moved: Tensor, cost: Tensor) -> Tensor:
        """(S, K + 1) choices of position t after which no relation is broken for good."""
        ok = torch.ones_like(moved)
        here = int(self.swarm.density.decoded[t])
        for r, relation in enumerate(self.request.relations):
            binds = self.request.applies[:, r]
            if here not in relation.features or not binds.any():
                continue
            touched = self._touched(relation, t)[:, None] | moved.numpy()
            lost = self._truth(relation, t, self.later) < 0
            if any(self.position.get(j, -1) > t for j in relation.features):
                as_x = {j: Possible.known(self.x[:, j][:, None]) for j in relation.features}
                full = self.swarm.budget.is_used_up(t, moved, cost).numpy()
                lost = np.where(full, self._truth(relation, t, as_x) < 0, lost)
            broken = lost & touched & binds.repeat(self.swarm.n)[:, None]
            ok &= ~torch.as_tensor(broken)
        return ok

    def _touched(self, relation: Relation, t: int) -> np.ndarray:
        """(S,) whether a feature of the relation was changed before position t."""
        before = [self.position[j] for j in relation.features if self.position.get(j, t) < t]
        return self.swarm.changed[:, before].any(1).numpy()

    def _truth(self, relation: Relation, t: int, later: dict[int, Possible]) -> np.ndarray:
        """(S, K + 1) or broadcastable: the relation on what is chosen, chosen here, and open."""
        view = {}
        for j in relation.features:
            i = self.position.get(j)
            if self.request.derived.mask[j]:
                view[j] = self.request.derived.possible(j, self.x[:, j][:, None])
            elif i is None:
                view[j] = Possible.known(self.x[:, j][:, None])
            elif i < t:
                view[j] = Possible.known(self.swarm.chosen[:, i].numpy()[:, None])
            elif i == t:
                view[j] = Possible.known(self.swarm._each(self.swarm.values[:, t]).numpy())
            else:
                view[j] = later[j]
        return relation(view)


def _jittered(
    density: RecourseDensity, F: Array, F_plus: Array, eps: Array, request: RuleBook
) -> Array:
    """The noise of Algorithm 2 on numbers that changed, where the rules let them; a row that would
    break one stays as it was."""
    moved = F_plus.copy()
    for i, j in enumerate(density.decoded.tolist()):
        if not bool(density.bins.is_number[i]):
            continue
        own = F[:, j][:, None]
        value = F_plus[:, :, j] + eps[:, :, i]
        with np.errstate(invalid="ignore"):
            changed = np.abs(F_plus[:, :, j] - own) > TOLERANCE
        ok = changed & request.allowed(j, own, value)
        moved[:, :, j] = np.where(ok, value, F_plus[:, :, j])
    fine = request.feasible(F[:, None, :], request.with_derived(F[:, None, :], moved))
    return np.where(fine[..., None], moved, F_plus)
