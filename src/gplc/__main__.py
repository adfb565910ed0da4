"""Run `python -m gplc`, and the command `gplc`."""

import sys


def main() -> None:
    """Run the command line, or say in one line what it needs."""
    try:
        from gplc.cli import main as run
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("gplc"):
            raise
        sys.exit(
            f"gplc: the command line needs {str(error.name).partition('.')[0]}, which is not "
            "installed; pip install 'gplc[cli]'"
        )
    run()


if __name__ == "__main__":
    main()
