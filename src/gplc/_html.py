"""What a notebook shows: small tables and sentences, escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A table; floats are shown with four digits.

    Examples
    --------
    >>> table(["", "mean"], [["a < b", 2 / 3]])
    '<table><tr><th></th><th>mean</th></tr><tr><td>a &lt; b</td><td>0.6667</td></tr></table>'
    """
    lines = [_line("th", head), *(_line("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[object]) -> str:
    shown = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells)
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in shown)}</tr>"


def sentences(*lines: str) -> str:
    """Paragraphs of text.

    Examples
    --------
    >>> sentences("R-hat < 1.01", "fine")
    '<p>R-hat &lt; 1.01</p><p>fine</p>'
    """
    return "".join(f"<p>{escape(line)}</p>" for line in lines)
