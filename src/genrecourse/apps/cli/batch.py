"""Plans for millions of people, on one machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from genrecourse.apps.cli.application import app, err, out, print_error
from genrecourse.apps.cli.options import (
    Delta,
    Fewest,
    HowMany,
    Language,
    MinRobust,
    ModelFolder,
    MostChanges,
    OwnModel,
    PolicyFile,
    Promised,
    RulesFile,
    plan_request,
)

if TYPE_CHECKING:
    from rich.progress import Task

    from genrecourse.advice.batch import BatchPlanner


@app.command(epilog="Example: genrecourse batch model german.csv many -n 3 --processes 2")
def batch(
    model: ModelFolder,
    people: Annotated[
        Path, typer.Argument(help="People: a .csv, a .parquet, or a folder of .parquet files.")
    ],
    output: Annotated[Path, typer.Argument(help="Folder for the plans; a new one, or one begun.")],
    n: HowMany = 1,
    key: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that names a person.")
    ] = None,
    fewest_changes: Fewest = False,
    policy: PolicyFile = None,
    rules: RulesFile = None,
    promise: Promised = None,
    delta: Delta = None,
    min_robust: MinRobust = None,
    most_changes: MostChanges = None,
    effort: Annotated[
        str | None, typer.Option(help="'search' searches for everybody, if the method can.")
    ] = None,
    language: Language = "en",
    classifier: OwnModel = None,
    rows_per_part: Annotated[
        int, typer.Option(min=1, help="Rows of one file of the output; more need more memory.")
    ] = 1_000,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many work at once. Default: one for each core.")
    ] = None,
    engine: Annotated[str, typer.Option(help="What runs them: local, ray or spark.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Address of a Ray or Spark cluster. Default: this machine.")
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Then check every plan again; end with 1 if one is wrong."),
    ] = False,
) -> None:
    """Make plans for more people than fit in memory, and continue where a run was stopped.

    The folder gets one .parquet file for each part of the input, with one line for each person, and
    _manifest.json. If the command is started again after Ctrl-C, a kill or a power cut, it makes
    the parts that are missing, and the folder ends up the same to the byte. A row that cannot be
    read or answered has a line that says why.
    """
    from genrecourse.advice.outputs import check_batch

    check_batch(output, reads=[model, people])
    from genrecourse.advice.batch import BatchPlanner
    from genrecourse.apps.batch.run import run_batch

    request = plan_request(
        rules,
        n=n,
        fewest_changes=fewest_changes,
        promise=promise,
        delta=delta,
        language=language,
        min_robust=min_robust,
        most_changes=most_changes,
        options={} if effort is None else {"effort": effort},
    )
    planner = BatchPlanner.of(model, request, key=key, classifier=classifier, policy=policy)
    if policy is None and planner.service.policy is not None:
        name = planner.service.policy.name
        note = f"note: under {name}, the policy that the model was fitted under"
        err.print(Text(note), soft_wrap=True)
    try:
        with _bar() as progress:
            manifest = run_batch(
                planner,
                people,
                output,
                rows_per_part=rows_per_part,
                engine=engine,
                processes=processes,
                address=address,
                progress=progress,
            )
    except KeyboardInterrupt:
        text = f"interrupted: what is done is in {output}; the same command continues there"
        err.print(Text(text), soft_wrap=True)
        raise typer.Exit(130) from None
    counts = sorted(manifest["counts"].items(), key=lambda item: -item[1])
    shown = ", ".join(f"{count:,} {status}" for status, count in counts)
    rows, plans = manifest["input"]["rows"], manifest["plans"]
    out.print(Text(f"{rows:,} people: {shown}; {plans:,} plans in {output}"), soft_wrap=True)
    if verify:
        _verify(planner, people, output)


def _verify(planner: BatchPlanner, people: Path, output: Path) -> None:
    from genrecourse.apps.batch.verify import verify

    found = verify(planner, people, output)
    for finding in found.findings:
        print_error(finding)
    out.print(f"{found.plans:,} plans of {found.rows:,} people checked again: {found.wrong} wrong")
    if found.wrong:
        raise typer.Exit(1)


class _Rate(ProgressColumn):
    """Rows a second, over the last minute or so."""

    def render(self, task: Task) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} rows/s")


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error, and give the function that moves it."""
    columns = (
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,} rows"),
        _Rate(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, speed_estimate_period=60) as bar:
        task = bar.add_task("plans", total=1, visible=False)

        def moved(made: int, rows: int) -> None:
            bar.update(task, completed=made, total=rows, visible=True)

        yield moved
