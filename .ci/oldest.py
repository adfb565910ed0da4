"""Print the oldest versions that pyproject.toml allows, as constraints for pip.

Those of what users install: dependencies, and extras that add something to the package.
"""

import re
import tomllib
from pathlib import Path

# What we develop with may be as new as it likes.
OURS = ("bench", "dev", "docs", "test")


def constraints(project: dict) -> list[str]:
    """The oldest version of each requirement of a project table, without extras of its own."""
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    wanted += [each for name in extras if name not in OURS for each in extras[name]]
    wanted = [each for each in wanted if not each.startswith("gplc[")]
    oldest = [re.sub(r"\[.*?\]", "", each).replace(">=", "==") for each in wanted]
    return list(dict.fromkeys(oldest))


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "pyproject.toml"
    settings = tomllib.loads(path.read_text(encoding="utf-8"))
    print("\n".join(constraints(settings["project"])))
