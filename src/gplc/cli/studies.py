"""Commands that fit many times or show the others: compare, demo and paper."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gplc.cli import options
from gplc.cli.fitting import fit
from gplc.cli.predicting import predict
from gplc.cli.shared import command, counting, print_json, say
from gplc.cli.showing import plot, report


@command(
    "gplc compare motorcycle.csv --target accel",
    "gplc compare data.csv -y y -x a,b --refit 5 --json",
    "gplc compare data.csv -y y --folds 10",
    "gplc compare data.csv -y y --out stack.nc",
)
def compare(
    data: options.Data,
    target: options.Target,
    features: options.Features = None,
    exclude: options.Exclude = None,
    noise_column: options.NoiseColumn = None,
    folds: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Parts, each left out in turn, with fits of their own; without: single rows.",
        ),
    ] = None,
    refit: Annotated[
        int, typer.Option(min=0, help="Uncertain rows to sample again without, of each model.")
    ] = 0,
    chains: Annotated[int, typer.Option(min=1, help="Chains of each fit.")] = 2,
    draws: Annotated[int, typer.Option(min=1, help="Draws of each chain.")] = 400,
    warmup: Annotated[int, typer.Option(min=0, help="Iterations before them.")] = 300,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    max_rows: options.MaxRows = options.MAX_ROWS,
    drop_missing: options.DropMissing = False,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="File for the weighted mixture of all models."),
    ] = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Does the noise depend on x, and is it Gaussian? All models by leave-one-out."""
    from gplc.comparison import compare, every_model

    if out is not None:
        if folds is not None:
            raise ValueError("--out needs fits to all rows; leave out --folds")
        options.check_out(out, replace=force)
    how = options.reading(delimiter, decimal, encoding, sheet)
    columns = options.Columns(target, features, exclude, noise_column)
    table = options.read_data(data, columns, how, max_rows, drop_missing).with_response()
    models = every_model(chains=chains, draws=draws, warmup=warmup, random_state=seed)
    with counting("fits") as watch:
        result = compare(
            table.X,
            table.y,
            models,
            **table.known(),
            folds=folds,
            refit=refit,
            n_jobs=jobs,
            random_state=seed,
            watch=watch,
        )
    if as_json:
        print_json(result.to_record())
    else:
        typer.echo(str(result))
    if out is not None:
        result.stack().save(out)
        say(f"The mixture of all models is in {out}; predict with it: gplc predict {out} NEW")


@command("gplc demo", "gplc demo --data lidar --out lidar")
def demo(
    data: Annotated[str, typer.Option(help="motorcycle or lidar.")] = "motorcycle",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what it writes.")] = Path(
        "out"
    ),
    max_seconds: Annotated[float, typer.Option(help="Stop sampling after so long.")] = 180.0,
    jobs: options.Jobs = -1,
) -> None:
    """Fit shipped data as you would your own, and show each command as it goes."""
    from gplc import _check, datasets

    loaders = {"motorcycle": datasets.load_motorcycle, "lidar": datasets.load_lidar}
    loaded = loaders[_check.one_of("--data", data, loaders)]()
    out.mkdir(parents=True, exist_ok=True)
    name = os.path.relpath(out / data)
    target = loaded.target_name
    write_demo_data(loaded, f"{name}.csv")
    typer.echo(f"{loaded.description}\n{len(loaded.y)} rows are in {name}.csv.")

    def step(told: str, run: Callable[[], None]) -> None:
        typer.echo(f"\n$ gplc {told}")
        run()

    fitted = f"{name}.fit.nc"
    again = Path(fitted).exists()
    step(
        f"fit {name}.csv --target {target} --out {fitted} "
        f"--max-seconds {max_seconds:g}{' --force' if again else ''}",
        lambda: fit(
            f"{name}.csv",
            target,
            out=fitted,
            force=again,
            max_seconds=max_seconds,
            jobs=jobs,
        ),
    )
    predicted = f"{name}.predicted.csv"
    step(
        f"predict {fitted} {name}.new.csv --out {predicted}",
        lambda: predict(fitted, f"{name}.new.csv", out=predicted),
    )
    typer.echo(Path(predicted).read_text(encoding="utf-8").rstrip())
    step(f"plot {fitted} --out {name}.png", lambda: plot(fitted, out=f"{name}.png"))
    step(f"report {fitted} --out {name}.html", lambda: report(fitted, out=f"{name}.html"))
    typer.echo(f"\nLook at {name}.png, and open {name}.html in a browser.")


@command("gplc paper --quick", "gplc paper --only samplers --out out/paper")
def paper(
    only: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Parts to run, with commas between: performance, samplers, operations, "
                "illustrations, sensitivity; all but the last by default."
            )
        ),
    ] = None,
    sets: Annotated[int | None, typer.Option(min=1, help="Training sets of each kind.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A look in a few minutes.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what it writes.")] = Path(
        "out/paper"
    ),
    jobs: options.Jobs = -1,
    seed: options.Seed = 2012,
) -> None:
    """Reproduce the tables and figures of Wang and Neal (2012)."""
    from gplc import _check
    from gplc.paper import PARTS, reproduce

    parts = options.names_in(only) or None
    for part in parts or []:
        _check.one_of("--only", part, PARTS)
    typer.echo(reproduce(out=out, only=parts, sets=sets, quick=quick, jobs=jobs, seed=seed))


def write_demo_data(loaded: Any, path: str) -> None:
    """The data, and a few rows of inputs to predict at."""
    import numpy as np
    import pandas as pd

    from gplc import _tables

    feature = loaded.feature_names[0]
    ends = loaded.X.min(), loaded.X.max()
    new = pd.DataFrame({feature: np.round(np.linspace(*ends, 7)[1:-1], 3)})
    all_rows = pd.DataFrame({feature: loaded.X[:, 0], loaded.target_name: loaded.y})
    for name, frame in ((path, all_rows), (f"{path.removesuffix('.csv')}.new.csv", new)):
        with _tables.writing(name, "csv") as append:
            append(frame)
