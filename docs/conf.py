"""Settings of the documentation's site: ``make docs`` builds it in build/docs."""

import re
from typing import Any

from gplc import __version__

project = "gplc"
author = "The gplc developers"
project_copyright = "The gplc developers, MIT licence"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
templates_path = ["_templates"]
exclude_patterns: list[str] = []
default_role = "code"

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = [
    "myst.xref_missing",  # links to files of the checkout beyond the site
    "ref.python",  # words of a type that are names elsewhere too, such as (mean, sd)
]

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings have them in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "pydata_sphinx_theme"
html_title = f"gplc {release}"
html_theme_options: dict[str, Any] = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "navbar_center": [],  # there are too many pages for a line: they are in the sidebar
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars: dict[str, list[str]] = {"**": ["pages.html"]}
html_show_sourcelink = False


def _plain_text(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Let docstrings be read as they stand: bars, stars and y_-i in formulas are no markup."""
    directive: int | None = None  # indentation of the directive that a line may belong to
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.strip() and directive is not None and indent <= directive:
            directive = None
        if line.lstrip().startswith(".. "):
            directive = indent
        if directive is not None or line.lstrip().startswith((">>>", "...")):
            continue
        pieces = re.split(r"(``.*?``|:\w+:`.*?`)", line)
        lines[number] = "".join(
            piece if k % 2 else re.sub(r"(?<!\\)([|*]|(?<=\w)_(?=-))", r"\\\1", piece)
            for k, piece in enumerate(pieces)
        )


def setup(app: Any) -> None:
    """Connect the hook above; it runs before napoleon's, which writes real markup."""
    app.connect("autodoc-process-docstring", _plain_text, priority=100)
