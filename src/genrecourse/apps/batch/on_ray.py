"""The engine Ray: parts for the workers of a cluster, and plans for a Ray Dataset of your own.

    planner = BatchPlanner.of("model", PlanRequest(n=3), key="id")
    plan_dataset(ray.data.read_parquet("people"), planner, processes=8).write_parquet("plans")

Ray loads the model once for each worker, and asks another worker if one dies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from genrecourse.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from genrecourse.advice.batch import BatchPlanner
    from genrecourse.apps.batch.inputs import Part
    from genrecourse.apps.batch.run import Work


def engine(
    work: Work, parts: Sequence[Part], processes: int, address: str | None = None
) -> Iterator[Part]:
    """Yield the parts, each when a worker has written its answers.

    address: of a cluster, such as "auto" or "ray://head:10001"; None: on this machine. Every worker
    must find the input, the model and the output under the same paths.
    """
    ray = _ray()
    begun = not ray.is_initialized()
    if begun:
        ray.init(address, log_to_driver=False, **({} if address else {"include_dashboard": False}))
    try:
        by_number = {part.number: part for part in parts}
        tasks = ray.data.from_items(
            [{"number": number} for number in by_number], override_num_blocks=len(by_number)
        )
        done = tasks.map_batches(
            _Parts,
            fn_constructor_args=(work, by_number),
            batch_size=1,
            batch_format="numpy",
            num_cpus=1,
            compute=_workers(min(processes or int(ray.cluster_resources()["CPU"]), len(parts))),
        )
        for row in done.iter_rows():
            yield by_number[int(row["number"])]
    finally:
        if begun:
            ray.shutdown()


def plan_dataset(dataset: Any, planner: BatchPlanner, processes: int = 2, rows: int = 1_000) -> Any:
    """Return a Ray Dataset with one row for each row of a Dataset.

    processes: how many workers load the model. rows: how many are answered at once.
    """
    return dataset.map_batches(
        _Answers,
        fn_constructor_args=(planner,),
        batch_size=rows,
        batch_format="pyarrow",
        num_cpus=1,
        compute=_workers(processes),
    )


class _Parts:
    """A worker that makes parts."""

    def __init__(self, work: Work, by_number: dict[int, Part]):
        self.work, self.by_number = work, by_number
        _one_thread()

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        for number in batch["number"]:
            self.work(self.by_number[int(number)])
        return batch


class _Answers:
    """A worker that answers batches."""

    def __init__(self, planner: BatchPlanner):
        self.planner = planner
        _one_thread()

    def __call__(self, batch: pa.Table) -> pa.Table:
        return self.planner(batch)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _workers(n: int) -> Any:
    return _ray().data.ActorPoolStrategy(size=n)


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError:
        raise UserError("the engine 'ray' needs Ray; run pip install 'genrecourse[ray]'") from None
    return ray
