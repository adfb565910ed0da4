"""The kernel of a model some of whose columns hold levels."""

from typing import Any

from gplc._columns import Columns
from gplc.kernels import KERNELS, Category, Constant, Kernel, Leaf, Ordinal, SquaredExponential
from gplc.kernels.base import Product, Sum
from gplc.means import with_mean


def with_levels(
    kernel: Kernel | None, columns: Columns, sees_latent: bool, mean: Any = None
) -> Kernel:
    """A kernel in which functions, and the noise, may differ between levels.

    K = c^2 + K_x(x, x') prod_c r_c(a_c, b_c) + sum_c tau_c^2 1[a_c = b_c]

    Without an order r is 1 if a = b, else exp(-delta); ordered, exp(-delta |a - b|), also in the
    sum. K_x is `kernel`, on columns of numbers (and w); one that has a kernel of levels itself
    gets no other.

    Examples
    --------
    >>> from gplc._columns import Column
    >>> columns = Columns((Column("x"), Column("group", "category", ("a", "b"))))
    >>> with_levels(None, columns, sees_latent=False)  # doctest: +NORMALIZE_WHITESPACE
    Constant(sd=1.0) + SquaredExponential(constant=0.0).on(0) * Category(sd=1.0,
    correlated=True).on(1) + Category().on(1)
    """
    if kernel is not None and any(leaf.of_levels for leaf in kernel.leaves):
        return _placed(with_mean(kernel, mean), columns, sees_latent)
    level = Constant(1.0) if kernel is None else None
    smooth = kernel if kernel is not None else SquaredExponential(constant=0.0)
    between: list[Kernel] = []
    if columns.unordered:
        between.append(Category(sd=1.0, correlated=True).on(*columns.unordered))
    if columns.ordered:
        between.append(Ordinal(sd=1.0).on(*columns.ordered))
    offsets: list[Kernel] = [Category().on(k) for k in columns.unordered]
    offsets += [Ordinal().on(k) for k in columns.ordered]
    parts: list[Kernel] = [] if level is None else [level]
    if columns.numbers or sees_latent or kernel is not None:
        parts.append(Product.of(_placed(smooth, columns, sees_latent), *between))
    elif len(between) + len(offsets) > 2:  # levels of several columns together
        parts.append(Product.of(Constant(), *between))
    found: Kernel = Sum.of(*parts, *offsets)
    if mean is None or mean == "zero":
        return found
    return found + _placed(with_mean(Constant(0.0), mean), columns, sees_latent)


def _placed(kernel: Kernel, columns: Columns, sees_latent: bool) -> Kernel:
    """The kernel with each leaf on the columns that it is made for."""
    if isinstance(kernel, Sum | Product):
        return type(kernel)(tuple(_placed(part, columns, sees_latent) for part in kernel.parts))
    assert isinstance(kernel, Leaf)
    if kernel.blind:
        return kernel
    levels = (*columns.unordered, *columns.ordered)
    own = levels if kernel.of_levels else columns.numbers
    inputs: list[int | str] = []
    for each in kernel.inputs or ("x", "w"):
        inputs += own if each == "x" else [each]
    if not kernel.inputs and (kernel.of_levels or not sees_latent):
        inputs.remove("w")
    wrong = [k for k in inputs if k in levels] if not kernel.of_levels else []
    if wrong and type(kernel) in KERNELS.values():
        raise ValueError(
            f"kernel {type(kernel).__name__} is on column {columns.each[int(wrong[0])].name!r}, "
            "which holds levels; use Category or Ordinal there"
        )
    if not inputs:
        raise ValueError(
            f"kernel {type(kernel).__name__} is of numbers, but all columns hold levels; use "
            "Category or Ordinal, or leave kernel out"
        )
    return kernel.on(*inputs)
