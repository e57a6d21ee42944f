"""The same answers from Ray, from Spark and from MLflow's Spark function as from this process.

Ray and Spark are started once, on this machine. Without Java, the tests of Spark are skipped.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from genrecourse.advice.batch import BatchPlanner
from genrecourse.advice.request import PlanRequest
from genrecourse.apps.batch import local, run
from tests.support.batches import PEOPLE, contents, kill, one_by_one, write_example

# Ray, Spark and MLflow warn about their own affairs
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.slow]
ROWS = 8


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engines")
    write_example(folder)
    return folder


@pytest.fixture(scope="module")
def planner(files: Path) -> BatchPlanner:
    return BatchPlanner.of(files / "model", PlanRequest(n=2), key="id")


@pytest.fixture(scope="module")
def expected(files: Path, planner: BatchPlanner) -> dict[str, bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "engine", one_by_one)
        run.run_batch(planner, files / "people.parquet", files / "out", rows_per_part=ROWS)
    return contents(files / "out")


@pytest.fixture(scope="module")
def by_key(files: Path, planner: BatchPlanner) -> pd.DataFrame:
    return planner.answers(pd.read_parquet(files / "people.parquet")).to_pandas()


def in_order(answers: pd.DataFrame) -> pd.DataFrame:
    return answers.sort_values("key", ignore_index=True)


# ---- Ray ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
        ray.init(
            num_cpus=2,
            object_store_memory=80 * 2**20,
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
        )
        yield ray
        ray.shutdown()


def ray_workers() -> list[int]:
    """The processes of Ray's actors that make parts."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            name = (entry / "cmdline").read_text()
        except (OSError, NotADirectoryError):
            continue
        if "ray::" in name and "_Parts" in name:
            found.append(int(entry.name))
    return found


def test_ray_writes_the_same_parts_although_a_worker_is_killed(
    ray: Any, files: Path, planner: BatchPlanner, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out, killed = tmp_path / "out", []

    def progress(made: int, rows: int) -> None:
        if not killed and (workers := ray_workers()) and made < rows:
            killed.append(made)
            kill(workers[0])

    run.run_batch(
        planner,
        files / "people.parquet",
        out,
        rows_per_part=ROWS,
        engine="ray",
        processes=2,
        progress=progress,
    )
    assert killed
    assert contents(out) == expected


@pytest.mark.parametrize(("blocks", "rows"), [(1, 120), (7, 5)])
def test_a_dataset_of_your_own_may_be_divided_in_any_way(
    ray: Any, files: Path, planner: BatchPlanner, by_key: pd.DataFrame, blocks: int, rows: int
) -> None:
    from genrecourse.apps.batch.on_ray import plan_dataset

    dataset = ray.data.read_parquet(str(files / "people.parquet")).repartition(blocks)
    found = plan_dataset(dataset.random_shuffle(seed=1), planner, processes=1, rows=rows)
    tables = [ray.get(each) for each in found.to_arrow_refs()]
    answers = pd.concat([table.to_pandas() for table in tables if len(table)])
    pd.testing.assert_frame_equal(in_order(answers), by_key, check_exact=True)


# ---- Spark --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pyspark = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none on this machine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            pyspark.SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.memory", "512m")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


def test_spark_writes_the_same_parts(
    spark: Any, files: Path, planner: BatchPlanner, expected: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run.run_batch(planner, files / "people.parquet", out, rows_per_part=ROWS, engine="spark")
    assert contents(out) == expected


def test_a_frame_of_your_own_may_be_divided_in_any_way(
    spark: Any, files: Path, planner: BatchPlanner, by_key: pd.DataFrame, tmp_path: Path
) -> None:
    from genrecourse.apps.batch.on_spark import plan_frame

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "17")
    people = spark.read.parquet(str(files / "people.parquet")).repartition(3)
    plan_frame(people, planner).write.parquet(str(tmp_path / "plans"))
    found = in_order(pd.read_parquet(tmp_path / "plans"))
    pd.testing.assert_frame_equal(found, by_key, check_exact=True, check_dtype=False)


def test_mlflow_makes_a_function_of_spark(
    spark: Any, files: Path, by_key: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    from pyspark.sql.functions import struct

    import genrecourse.mlflow

    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    genrecourse.mlflow.save_model(files / "model", tmp_path / "saved", key="id", n=2)
    people = spark.read.parquet(str(files / "people.parquet")).repartition(2)
    advice = mlflow.pyfunc.spark_udf(
        spark,
        str(tmp_path / "saved"),
        env_manager="local",
        result_type="key string, status string, n_plans long, cost_2 double, words_1 string",
    )
    asked = people.select(advice(struct(*people.columns)).alias("plans")).select("plans.*")
    asked.write.parquet(str(tmp_path / "plans"))
    found = in_order(pd.read_parquet(tmp_path / "plans"))
    wanted = by_key[["key", "status", "n_plans", "cost_2", "words_1"]]
    wanted["words_1"] = wanted["words_1"].fillna("None")  # so MLflow writes a missing text
    pd.testing.assert_frame_equal(found, wanted, check_exact=True, check_dtype=False)
    assert len(found) == PEOPLE
    assert np.isfinite(found["cost_2"]).any()
