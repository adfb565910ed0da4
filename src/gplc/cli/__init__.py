"""The command line: from a table to an answer without writing Python.

Exit codes: 0 done; 2 something is wrong with the command or a file, told in one line on standard
error; 3 the verdict is "do not use" (`gplc diagnose`), or not "fine" (`--strict`); 130
interrupted. 1 is a fault of the program. Results go to standard output, everything else to
standard error.

Modules that take long to import are imported by the commands that need them.
"""

# Commands are entered as their modules are imported, and listed in that order.
from gplc.cli import fitting, predicting, showing, studies
from gplc.cli.shared import app

__all__ = ["app", "fitting", "main", "predicting", "showing", "studies"]


def main() -> None:
    """Run the command line."""
    app()
