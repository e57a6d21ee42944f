"""Many callers share one method: threads, copies, other processes, forks; and it does not grow."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from torch import nn

from genrecourse import METHODS, Classifier, GenRe, NearestNeighbour
from genrecourse.advice.service import Service
from genrecourse.errors import UserError
from genrecourse.genre.model import NetConfig
from genrecourse.methods.base import Method
from genrecourse.methods.genre import Training
from genrecourse.model.locks import Lock, without_warnings
from genrecourse.model.threads import evaluating, one_blas_thread, seeded
from genrecourse.reports import plots
from tests.hold.cases import OUTCOMES, SCHEMA, TABLE

QUICK: dict[str, Any] = {
    "training": Training(steps=20, batch_size=16),
    "net": NetConfig(8, 2, 8, 1, 1),
    "n_bins": 10,
    "gamma": 0.6,
}
PEOPLE = TABLE[~OUTCOMES]


def score(X: pd.DataFrame) -> np.ndarray:
    """h of the small table."""
    return (X["income"].to_numpy(dtype=float) / 80).clip(0, 1)


ROOT = Path(__file__).parents[2]


def estimator() -> Any:
    return LogisticRegression().fit(TABLE, OUTCOMES)


FITS: dict[str, Callable[[], Any]] = {
    "genre": lambda: GenRe(score, SCHEMA, **QUICK),
    "own network": lambda: GenRe(None, SCHEMA, **{**QUICK, "gamma": 0.5}),
    "estimator": lambda: NearestNeighbour(estimator(), gamma="auto", refine=True),
    "module": lambda: NearestNeighbour(Classifier(Dropped())),
    "nnr": lambda: NearestNeighbour(score),
    "wachter": lambda: METHODS["wachter"](score, steps=20),
}


def fitted(kind: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FITS[kind]().fit(TABLE, OUTCOMES)


class Dropped(nn.Module):
    """In train mode, and with dropout: asked so, every answer is another one."""

    def __init__(self) -> None:
        super().__init__()
        self.drop, self.frozen = nn.Dropout(0.5), nn.Dropout(0.5).eval()

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return (self.frozen(self.drop(X))[:, 0] / 80).clamp(0, 1)


@pytest.fixture(scope="module")
def genre() -> Any:
    return fitted("genre")


def as_bytes(answer: Any) -> bytes:
    """An answer to the bit: cells, dtypes and labels; plans in words and numbers."""
    if isinstance(answer, pd.Series):
        answer = answer.to_frame()
    if isinstance(answer, pd.DataFrame):
        cells = [float.hex(c) if isinstance(c, float) else c for c in answer.to_numpy().flat]
        return repr((cells, answer.dtypes.tolist(), answer.index.tolist())).encode()
    rows = [
        repr((plan.to_text(), plan.score_after, plan.cost, plan.log_likelihood)) for plan in answer
    ]
    return "\n".join(rows).encode()


def questions(method: Any) -> list[Callable[[], Any]]:
    one, few = PEOPLE.iloc[[3]], PEOPLE.iloc[[0, 11, 30]]
    asked: list[Callable[[], Any]] = [
        lambda: method.recourse(few),
        lambda: method.recourse(one),
        lambda: method.plans(one),
        lambda: method.recourse(one, rules={"lock": ["debt"]}),
        lambda: method.assess(few, few + 20),
    ]
    if isinstance(method, GenRe):
        asked += [
            lambda: method.sample(few, 3),
            lambda: method.sample(one, 2, temperature=0.7),
            lambda: method.log_prob(few + 20, given=few),
            lambda: method.plans(one, n=2, rules={"max_changes": 1}),
            lambda: method.draws(one, 4),
        ]
    return asked


def in_threads(n: int, act: Callable[[int], None]) -> None:
    """Run act(0) to act(n - 1) at once; raise the first error."""
    errors: queue.Queue[BaseException] = queue.Queue()
    ready = threading.Barrier(n)

    def run(i: int) -> None:
        try:
            ready.wait(60)
            act(i)
        except BaseException as error:
            errors.put(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads change places as often as they can
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(every)
    if not errors.empty():
        raise errors.get()


QUICKEST = {"genre": (1, 6, 7), "module": (0, 1, 4)}  # of these questions

# ---- threads ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::genrecourse.errors.StillRejected")
@pytest.mark.parametrize(("kind", "calls"), [("genre", 200), ("module", 60)])
def test_threads_get_the_answers_of_one_thread(kind: str, calls: int) -> None:
    method, first = fitted(kind), fitted(kind)
    right = [as_bytes(ask()) for ask in questions(first)]
    asked = questions(method)  # this one is fresh: threads fill what is filled at first use

    def act(i: int) -> None:
        for k in range(calls):
            slow = (i + k) % 20 == 0  # a plan takes as long as many another answer
            j = (7 * i + k // 20) % len(asked) if slow else QUICKEST[kind][(i + k) % 3]
            assert as_bytes(asked[j]()) == right[j], j

    in_threads(10, act)


def test_fits_at_once_learn_what_they_learn_alone() -> None:
    kinds = ["own network", "genre", "own network", "genre"]
    alone = [as_bytes(fitted(kind).recourse(PEOPLE)) for kind in kinds[:2]]
    found: dict[int, bytes] = {}

    def act(i: int) -> None:
        found[i] = as_bytes(FITS[kinds[i]]().fit(TABLE, OUTCOMES).recourse(PEOPLE))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        in_threads(4, act)
    assert [found[i] for i in range(4)] == alone * 2


def test_a_service_answers_many_threads(genre: Any) -> None:
    service = Service(genre)

    def everything() -> list[Any]:
        plans = service.plans(PEOPLE.head(2))
        table = service.plan_table(plans, PEOPLE.head(2))
        letter = service.letter(PEOPLE, 0, recipient="Ann")
        picture = plots.svg(lambda ax: ax.plot([0, 1], [1, 0]))
        return [as_bytes(plans), as_bytes(table.astype(str)), str(letter), picture]

    right = everything()
    filters = list(warnings.filters)

    def act(i: int) -> None:
        for _ in range(3):
            assert everything() == right

    in_threads(8, act)
    assert list(warnings.filters) == filters


# ---- what threads share -----------------------------------------------------------------------


def test_filters_of_warnings_are_put_back_whoever_leaves_last() -> None:
    before = list(warnings.filters)
    step = threading.Barrier(4)

    def act(i: int) -> None:
        step.wait(60)
        for _ in range(40):
            with without_warnings(f"text {i}"):
                time.sleep(0.0002)  # another thread goes on

    in_threads(4, act)
    assert list(warnings.filters) == before


def test_the_first_weights_do_not_depend_on_other_threads() -> None:
    with seeded(3):
        right = torch.rand(4)

    def act(i: int) -> None:
        for _ in range(100):
            with seeded(3):
                assert torch.equal(torch.cat([torch.rand(1) for _ in range(4)]), right)

    in_threads(4, act)


def test_a_part_goes_back_to_train_mode_when_the_last_call_ends() -> None:
    module = Dropped()
    inner, outer = evaluating(module), evaluating(module.drop)
    inner.__enter__()
    outer.__enter__()
    assert not module.training
    inner.__exit__(None, None, None)
    assert module.training
    assert not module.drop.training  # another call still needs it
    outer.__exit__(None, None, None)
    assert module.drop.training
    assert not module.frozen.training  # as its owner left it


def test_the_limit_of_blas_is_lifted_whoever_leaves_last() -> None:
    def limits() -> list[int]:
        return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]

    from threadpoolctl import threadpool_info, threadpool_limits

    with threadpool_limits(2, user_api="blas"):
        before = limits()
        assert max(before) == 2
        one, two = one_blas_thread(), one_blas_thread()
        one.__enter__()
        two.__enter__()
        one.__exit__(None, None, None)
        assert max(limits()) == 1
        two.__exit__(None, None, None)
        assert limits() == before


# ---- pickle -----------------------------------------------------------------------------------


WAYS: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "the oldest protocol": lambda m: pickle.loads(pickle.dumps(m, protocol=2)),
    "cloudpickle": lambda m: pickle.loads(cloudpickle.dumps(m)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def model_files(method: Any) -> dict[str, bytes]:
    files = method.__getstate__()["files"]
    assert sorted(files) == ["model.json", "tensors.safetensors"]
    return dict(files)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["genre", "own network", "estimator", "nnr", "wachter"])
def test_a_pickled_method_answers_alike(kind: str) -> None:
    method = fitted(kind)
    asked = (
        lambda m: as_bytes(m.recourse(PEOPLE)),
        lambda m: as_bytes(m.plans(PEOPLE.head(2), n=2)),
    )
    right = [ask(method) for ask in asked]
    for name, way in WAYS.items() if kind == "nnr" else list(WAYS.items())[:1]:
        again = way(method)
        assert [ask(again) for ask in asked] == right, name
        assert model_files(again) == model_files(method), name
        params, mine = again.get_params(deep=False), method.get_params(deep=False)
        assert params.keys() == mine.keys()
        assert type(params["classifier"]) is type(mine["classifier"])
        assert {k: v for k, v in params.items() if k != "classifier"} == {
            k: v for k, v in mine.items() if k != "classifier"
        }
    if kind in ("nnr", "own network"):
        assert as_bytes(clone(again).fit(TABLE, OUTCOMES).recourse(PEOPLE)) == right[0]


def test_a_pickle_is_the_bytes_of_a_model_file(genre: Any, tmp_path: Path) -> None:
    genre.save(tmp_path / "model")
    for name, data in model_files(genre).items():
        assert (tmp_path / "model" / name).read_bytes() == data


def test_a_damaged_pickle_is_refused(genre: Any) -> None:
    state = genre.__getstate__()
    data = bytearray(state["files"]["tensors.safetensors"])
    data[-1] ^= 1
    state["files"]["tensors.safetensors"] = bytes(data)
    with pytest.raises(UserError, match=r"tensors\.safetensors was damaged"):
        GenRe.__new__(GenRe).__setstate__(state)


def test_a_pickled_method_keeps_a_classifier_that_nobody_could_name() -> None:
    cut = 41
    method = NearestNeighbour(lambda X: X["income"] / 80 + 0 * cut).fit(TABLE, OUTCOMES)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(method)  # pickle stores no function without a name; cloudpickle does
    again = pickle.loads(cloudpickle.dumps(method))
    assert as_bytes(again.recourse(PEOPLE)) == as_bytes(method.recourse(PEOPLE))


def test_an_unfitted_method_is_pickled_by_its_parameters() -> None:
    again = pickle.loads(pickle.dumps(GenRe(score, SCHEMA, lam=2.5, **QUICK)))
    assert again.lam == 2.5
    assert again.training == QUICK["training"]
    with pytest.raises(UserError, match="call fit"):
        again.recourse(PEOPLE)


class Own(Method):
    """A method of a user's, which has no model file."""

    def _fit(self, rows: Any) -> None:
        self.best_ = rows.Z[rows.confidence.argmax()]

    def _recourse(self, Z: Any, noise: Any) -> Any:
        return np.repeat(self.best_[None], len(Z), axis=0)


def test_a_method_without_model_files_is_pickled_as_python_does() -> None:
    method = Own(score).fit(TABLE)
    again = pickle.loads(pickle.dumps(method))
    assert as_bytes(again.recourse(PEOPLE)) == as_bytes(method.recourse(PEOPLE))


def ask(method: Any, X: pd.DataFrame) -> Any:
    return method.recourse(X), method.plans(X)


def test_processes_of_joblib_share_a_method(genre: Any) -> None:
    parts = [PEOPLE.iloc[:2], PEOPLE.iloc[2:4]]
    found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(ask)(genre, X) for X in parts)
    for X, answers in zip(parts, found, strict=True):
        assert [as_bytes(each) for each in answers] == [as_bytes(each) for each in ask(genre, X)]


# ---- fork -------------------------------------------------------------------------------------

FORKING = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd, torch
from threadpoolctl import threadpool_info
from sklearn.ensemble import HistGradientBoostingClassifier
from genrecourse import NearestNeighbour
torch.set_num_threads(2)
X = pd.DataFrame({"income": np.arange(1000.0) % 97, "debt": np.arange(1000.0) % 89})
y = X["income"] >= 48
model = HistGradientBoostingClassifier(max_iter=5).fit(X, y)  # OpenMP of scikit-learn
method = NearestNeighbour(model).fit(X, y)
def ask():
    big = torch.ones(500, 500)
    return method.recourse(X.head(3)), float((big @ big).exp().sum()), method.plans(X.head(1))
ask()
child = os.fork()
if child == 0:
    ask()
    big = NearestNeighbour(HistGradientBoostingClassifier(max_iter=5).fit(X, y)).fit(X, y)
    os._exit(len(big.recourse(X.head(3))) + 40)
status = os.waitpid(child, 0)[1]
ask()  # the parent goes on
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_answers_after_its_parent_has_used_every_thread() -> None:
    surroundings = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", FORKING], env=surroundings, timeout=100)
    assert done.returncode == 43


def test_a_lock_is_free_also_if_a_thread_was_just_behind_acquire() -> None:
    lock = Lock()
    holder = threading.Thread(target=lock._lock.acquire)  # it has not said that it is the owner
    holder.start()
    holder.join()
    lock.renew()
    assert lock._lock.acquire(blocking=False)


def put(method: Any, answers: Any) -> None:
    answers.put(as_bytes(method.recourse(PEOPLE.head(3))))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_locks_that_other_threads_hold_are_free_in_a_forked_process(genre: Any) -> None:
    context = multiprocessing.get_context("fork")
    held, over, module = threading.Event(), threading.Event(), Dropped()
    locks = [Lock()]

    def hold() -> None:
        with locks[0], seeded(1), without_warnings(), one_blas_thread(), evaluating(module):
            held.set()
            over.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    answers = context.Queue()

    def child() -> None:
        with locks[0], seeded(1), without_warnings():
            answers.put((module.drop.training, as_bytes(genre.recourse(PEOPLE.head(3)))))

    process = context.Process(target=child)
    process.start()
    try:
        found = answers.get(timeout=60)
    finally:
        over.set()
        holder.join()
        process.kill()
        process.join()
    assert found == (True, as_bytes(genre.recourse(PEOPLE.head(3))))


# ---- memory -----------------------------------------------------------------------------------


SWINGS = 150_000  # bytes by which the memory goes up and down, whatever the number of calls


@pytest.mark.filterwarnings("ignore::genrecourse.errors.StillRejected")
@pytest.mark.parametrize(("kind", "calls"), [("nnr", 1000), ("genre", 100)])
def test_many_calls_do_not_grow_memory(kind: str, calls: int) -> None:
    """Every call is about another person, so that everything that is remembered shows."""
    method = fitted(kind)

    def call(i: int) -> None:
        person = PEOPLE.iloc[[i % 40]] + i / 7000
        method.recourse(person)
        if i % 20 == 0:
            method.plans(person, rules={"max_cost": 2 + i / 1000})

    def held_after(calls: range) -> int:
        for i in calls:
            call(i)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:  # what the first calls replace was there before tracing, so they count for nothing
        before = held_after(range(calls // 4))
        grown = held_after(range(calls // 4, calls // 4 + calls)) - before
    finally:
        tracemalloc.stop()
    assert grown < SWINGS, f"{grown:,} bytes in {calls:,} calls"


def test_tests_of_promises_are_forgotten_when_there_are_many(genre: Any) -> None:
    data = copy.deepcopy(genre).planning_
    for i in range(500):
        data.remember(f"rules {i}", [])
    assert len(data.tests) < 100
    assert "rules 499" in data.tests
