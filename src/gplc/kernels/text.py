"""Kernels as people write them: the text that Python shows of a kernel, without running it."""

import ast
import difflib
from typing import Any

from gplc import _check
from gplc.kernels.base import KERNELS, Kernel

LONGEST_TEXT = 1000


def from_text(text: str) -> Kernel:
    """The kernel of a text: names of kernels with settings, ``+``, ``*``, ``on`` and ``named``.

    Parameters
    ----------
    text : str
        Nothing in it is run as code.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from_text("Matern32(ard=False) + 4 * Linear.on('x')")
    Matern32(ard=False) + Constant(sd=2.0) * Linear().on('x')
    >>> from_text("Matern3")
    Traceback (most recent call last):
    ValueError: kernel has no part 'Matern3'; did you mean Matern32?
    """
    try:
        if len(text) > LONGEST_TEXT:
            raise SyntaxError
        found = _made(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(
            f"kernel must be written like 'SquaredExponential + Linear', got {_check.shown(text)}"
            f"; known are {', '.join(KERNELS)}"
        ) from error
    if not isinstance(found, Kernel):
        raise ValueError(
            f"kernel must be more than a number, got {_check.shown(text)}; try SquaredExponential"
        )
    return found


def _made(node: ast.expr) -> Any:
    """A kernel or a number from a piece of the text."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult):
        left, right = _made(node.left), _made(node.right)
        return left + right if isinstance(node.op, ast.Add) else left * right
    if isinstance(node, ast.Name):
        return _known(node.id)()
    if isinstance(node, ast.Call):
        values = [_plain(each) for each in node.args]
        settings = {str(each.arg): _plain(each.value) for each in node.keywords}
        if isinstance(node.func, ast.Name):
            return _known(node.func.id)(*values, **settings)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("on", "named"):
            kernel = _made(node.func.value)
            if isinstance(kernel, Kernel):
                return getattr(kernel, node.func.attr)(*values, **settings)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    raise SyntaxError


def _plain(node: ast.expr) -> Any:
    """A number or text that a kernel is given."""
    if isinstance(node, ast.Constant):
        return node.value
    raise SyntaxError


def _known(name: str) -> Any:
    if name not in KERNELS:
        close = difflib.get_close_matches(name, KERNELS, n=1)
        advice = f"did you mean {close[0]}?" if close else f"choose from {', '.join(KERNELS)}"
        raise ValueError(f"kernel has no part {name!r}; {advice}")
    return KERNELS[name]
