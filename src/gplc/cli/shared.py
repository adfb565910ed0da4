"""What all commands share: how they are entered, what they say, and how they end."""

import functools
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from gplc._version import __version__

BAD_INPUT, UNCONVERGED, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141

app = typer.Typer(
    name="gplc",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Regression when the noise depends on the inputs and need not be Gaussian."
        "\n\nStart with: gplc demo, or: gplc fit DATA.csv --target y"
    ),
    epilog=(
        "Exit codes: 0 done, 2 wrong command or file, 3 do not use this fit (diagnose), or "
        "it is not fine (--strict), 130 interrupted."
    ),
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


def command(
    *examples: str, kind: type[TyperCommand] = TyperCommand
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enter a function as a command whose errors are one line and an exit code."""

    def enter(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> None:
            try:
                with warnings.catch_warnings():
                    _choose_warnings()
                    warnings.showwarning = _in_one_line
                    function(*args, **kwargs)
            except KeyboardInterrupt:
                fail("interrupted; nothing was written", INTERRUPTED)
            except BrokenPipeError:
                # Somebody closed our output, as `head` does: not worth a word.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(BROKEN_PIPE) from None
            except (ValueError, OSError) as error:
                if os.environ.get("GPLC_TRACEBACK"):
                    raise
                fail(" ".join(str(error).split()), BAD_INPUT)
            except MemoryError as error:
                fail(
                    f"not enough memory ({str(error) or 'no more can be had'}); give fewer "
                    "rows, or run fewer chains at once with --jobs",
                    BAD_INPUT,
                )

        shown = "".join(f"\n\n  {example}" for example in examples)
        return app.command(cls=kind, epilog=f"Examples:{shown}")(guarded)

    return enter


def _choose_warnings() -> None:
    """Every command tells the verdict itself, and what was done to the data each time."""
    from sklearn.exceptions import ConvergenceWarning

    from gplc.estimators import DataWarning

    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("always", DataWarning)


def _in_one_line(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"Warning: {message}")


def fail(message: str, code: int) -> NoReturn:
    """Say what is wrong in one line, and end with a code."""
    say(f"gplc: {message}")
    raise typer.Exit(code)


def say(message: str) -> None:
    """Tell the user something that is no result."""
    typer.echo(message, err=True)


def warn(message: str) -> None:
    """Tell the user of something that may be a mistake."""
    say(f"Warning: {message}")


def print_json(record: Any) -> None:
    """Print a result for machines."""
    typer.echo(json.dumps(_plain(record), indent=2))


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner where somebody can see it."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function to be told how much is done of how much: a bar where somebody can see it."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain(value: Any) -> Any:
    """A record as strict JSON takes it: no nan, no infinity."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
