"""The last bit of compiled functions depends on their arguments and on nothing else."""

import ast
import importlib
import inspect
import itertools
import pkgutil
import textwrap

import numpy as np
import pytest
from numba import njit
from numba.core.dispatcher import Dispatcher

from gplc import _compiled

COMPILED = {
    f"{module.name}.{name}": function
    for module in pkgutil.iter_modules(_compiled.__path__)
    for name, function in vars(importlib.import_module(f"gplc._compiled.{module.name}")).items()
    if isinstance(function, Dispatcher) and function.__module__.endswith(module.name)
}


def loose(function: Dispatcher) -> bool:
    """Whether it may add in any order."""
    return "reassoc" in function.targetoptions.get("fastmath", ())


def called(function: Dispatcher) -> list[Dispatcher]:
    names = inspect.getclosurevars(function.py_func).globals.values()
    return [each for each in names if isinstance(each, Dispatcher)]


def reaches_loose(function: Dispatcher) -> bool:
    return loose(function) or any(reaches_loose(each) for each in called(function))


def writes(function: Dispatcher) -> bool:
    """Whether it sets entries of arrays."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function.py_func)))
    return any(
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        for node in ast.walk(tree)
    )


@njit(fastmath={"reassoc"})
def product_and_total(result, a, b):
    total = 0.0
    for j in range(result.size):
        result[j] = a[j] * b[j]
        total += result[j]
    return total


def test_what_adds_in_any_order_writes_nothing():
    assert [name for name, each in COMPILED.items() if loose(each) and writes(each)] == []
    assert any(map(loose, COMPILED.values()))
    assert loose(product_and_total)
    assert writes(product_and_total)


def test_what_adds_in_any_order_has_no_second_copy():
    shared = {each for function in COMPILED.values() for each in called(function)}
    assert any(map(reaches_loose, shared))
    for each in shared:
        assert not reaches_loose(each) or each.targetoptions.get("forceinline"), each


# Arrays of these functions, and of tuples they take, that are not vectors of one length n.
OF_FUNCTION = {
    "data.y": "3", "data.known": "3", "basis.roots": "43", "basis.on_grid": "2n",
    "basis.shapes": "12",
}  # fmt: skip
WHITENED = {
    "by_flat": "6", "push": "6", "chosen": "3", "places": "3", "inverse": "33",
    "whitening.places": "3", "whitening.inverse": "33",
}  # fmt: skip
SHAPES = {
    "cells.slopes_of": {"values": "3n"},
    "cells.gradient": {
        "flat": "6", "y": "3", "variances": "3", "by_flat": "6",
        "basis.roots": "43", "basis.on_grid": "2n", "basis.shapes": "12",
    },
    "cells.log_density": {"values": "3n", "y": "3", "variances": "3"},
    "cells.log_likelihood": {
        "values": "3n", "y": "3", "variances": "3", "scores": "3n", "by_variance": "3",
    },
    "cells.draw": {
        "values": "3n", "y": "3", "variances": "3", "uniforms": "3", "normals": "3", "w": "3",
        "log_shares": "3",
    },
    "latent_terms.covariances": {
        "rows": "3n", "values": "3", "amplitudes": "1n", "offsets": "0n", "scratch": "2n",
        "forms.decays": "1", "forms.powers": "13", "forms.curves": "04", "forms.numbers": "05",
    },
    "pools.fill": {"w": "3", "starts": "3", "jitters": "3n", "candidates": "3n", "weights": "3n"},
    "pools.add_function": {
        "values": "3n", "candidates": "3n", "drawn.nodes": "4", "drawn.coefficients": "34",
    },
    "regrowth._cell_shares": {"middles": "4n", "mean": "4", "block": "44"},
    "regrowth._observe": {"feature": "2", "covariance": "nn"},
    "regrowth.run": {
        "table": "41", "window.covariance": "nn", "random.cells": "3n", "random.within": "3n",
        "random.resampling": "3n",
    },
    "sines.products_of_sines": {
        "X": "n2", "lowest": "2", "rates": "2", "numbers": "32", "out": "n3",
    },
    "trajectory._evaluate": {"flat": "6", "by_flat": "6"} | OF_FUNCTION,
    "trajectory._pull": WHITENED,
    "trajectory.leapfrog": {
        "position": "6", "momentum": "6", "flat": "6", **WHITENED, **OF_FUNCTION,
    },
    "triangular._add_four_to_two": {"weights": "24"},
    "triangular.drop_leading": {"upper": "nn", "rows": "4n"},
    "triangular.solve_lower_rows": {"upper": "nn", "right": "3n"},
}  # fmt: skip
NUMBERS = {"x": -0.7, "data.lowest": -9.0, "data.highest": 9.0, "size": 0.01, "diverged": 1e3}
WHOLE = {"count": 3, "drawn.power": 1, "drawn.side": 0, "code": 0, "i": 0, "held": 1}


def parameters(function: Dispatcher) -> dict[str, type]:
    """Kinds of the arguments by name; for one that is a NamedTuple, of its entries."""
    result = {}
    for each in inspect.signature(function.py_func).parameters.values():
        entries = getattr(each.annotation, "__annotations__", {})
        if not hasattr(each.annotation, "_fields"):
            entries = {}
        result |= {f"{each.name}.{field}": kind for field, kind in entries.items()}
        if not entries:
            result[each.name] = each.annotation
    return result


def gathered(function: Dispatcher, values: dict) -> list:
    """The arguments, with tuples put together from their entries."""
    return [
        each.annotation(*(values[f"{each.name}.{field}"] for field in each.annotation._fields))
        if hasattr(each.annotation, "_fields")
        else values[each.name]
        for each in inspect.signature(function.py_func).parameters.values()
    ]


def bits(function: Dispatcher, shapes: dict, n: int, gap: int, turn: int, step: int) -> bytes:
    """All that a function returns and leaves in arrays that lie `gap` apart.

    Their order in memory is that of the arguments, turned round and, with `step` -1, reversed.
    """
    rng = np.random.default_rng(n)
    values = {}
    for name, kind in parameters(function).items():
        if kind in (int, bool):
            values[name] = WHOLE.get(name, n)
        elif kind is float:
            values[name] = NUMBERS.get(name, 0.7)
        else:
            shape = shapes.get(name, "n")
            value = 0.1 + rng.random([n if size == "n" else int(size) for size in shape])
            if name == "upper":
                value = np.triu(value) + n * np.eye(n)
            whole = "int" in str(kind)
            values[name] = np.zeros(value.shape, np.int64) if whole else value
    arrays = [key for key, value in values.items() if isinstance(value, np.ndarray)]
    room = np.empty(sum(values[key].size + gap for key in arrays))
    used = 0
    for key in (arrays[turn:] + arrays[:turn])[::step]:
        value = values[key]
        place = room[used : used + value.size].view(value.dtype).reshape(value.shape)
        place[...] = value
        values[key] = place
        used += value.size + gap
    result = function(*gathered(function, values))
    left = [values[key].tobytes() for key in arrays]
    return b"".join([repr(result).encode(), *left])


def places_matter(function: Dispatcher, shapes: dict) -> bool:
    return any(
        bits(function, shapes, n, gap, turn, step) != bits(function, shapes, n, 200, 0, 1)
        for n, gap, turn, step in itertools.product(range(5, 33), (0, 3), range(4), (1, -1))
    )


@pytest.mark.parametrize(
    "name", [name for name, each in COMPILED.items() if each.targetoptions.get("fastmath")]
)
def test_it_does_not_matter_where_arrays_lie(name):
    assert not places_matter(COMPILED[name], SHAPES.get(name, {}))
