"""The engine Spark: parts for the executors of a cluster, and plans for a DataFrame of your own.

    planner = BatchPlanner.of("model", PlanRequest(n=3), key="id")
    plan_frame(spark.read.parquet("people"), planner).write.parquet("plans")

A Python process of an executor loads the model once and keeps it for all its partitions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from genrecourse.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from genrecourse.advice.batch import BatchPlanner
    from genrecourse.apps.batch.inputs import Part
    from genrecourse.apps.batch.run import Work


def engine(
    work: Work, parts: Sequence[Part], processes: int, address: str | None = None
) -> Iterator[Part]:
    """Yield the parts when the executors have written the answers to all of them.

    address: of a cluster, such as "spark://head:7077"; None: on this machine. Every executor must
    find the input, the model and the output under the same paths.
    """
    _spark()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if address is None:  # else Spark starts whatever Python is called python3 here
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("genrecourse batch")
    spark = running or builder.master(address or f"local[{processes or '*'}]").getOrCreate()
    try:
        by_number = {part.number: part for part in parts}
        numbers = spark.createDataFrame([(number,) for number in by_number], "number long")
        cut = numbers.repartitionByRange(len(parts), "number")
        done = cut.mapInPandas(partial(_parts, work, by_number), "number long")
        yield from (by_number[row["number"]] for row in done.collect())
    finally:
        if running is None:
            spark.stop()


def plan_frame(frame: Any, planner: BatchPlanner) -> Any:
    """Return a Spark DataFrame with one row for each row of a DataFrame.

    How many rows are answered at once is `spark.sql.execution.arrow.maxRecordsPerBatch`.
    """
    _spark()
    from pyspark.sql.pandas.types import from_arrow_schema

    return frame.mapInPandas(partial(_answers, planner), from_arrow_schema(planner.schema))


def _parts(
    work: Work, by_number: dict[int, Part], batches: Iterable[pd.DataFrame]
) -> Iterator[pd.DataFrame]:
    _one_thread()
    for batch in batches:
        for number in batch["number"]:
            work(by_number[int(number)])
        yield batch


def _answers(planner: BatchPlanner, batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    _one_thread()
    for batch in batches:
        if len(batch):
            yield planner(batch)


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _spark() -> Any:
    try:
        import pyspark
    except ImportError:
        raise UserError(
            "the engine 'spark' needs Spark; run pip install 'genrecourse[spark]'"
        ) from None
    return pyspark
