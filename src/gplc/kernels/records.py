"""Kernels as plain data, to and from files: names and settings, no code."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from gplc import _check
from gplc.kernels.base import KERNELS, Kernel, Leaf, Product, Sum

PLAIN = (bool, int, float, str, type(None))
JOINED: Mapping[str, type[Sum] | type[Product]] = {"+": Sum, "*": Product}
# Sums of products of sums: nobody writes more of them than this, one into the other.
DEEPEST = 50


def to_record(kernel: Kernel) -> dict[str, Any]:
    """A kernel in JSON's terms.

    Examples
    --------
    >>> from gplc.kernels import Constant
    >>> to_record(Constant(2.0))
    {'kind': 'Constant', 'sd': 2.0, 'inputs': [], 'label': ''}
    """
    for kind, joined in JOINED.items():
        if isinstance(kernel, joined):
            return {"kind": kind, "parts": [to_record(each) for each in kernel.parts]}
    record: dict[str, Any] = {"kind": type(kernel).__name__}
    for field in dataclasses.fields(kernel):  # type: ignore[arg-type]
        value = getattr(kernel, field.name)
        entries = list(value) if isinstance(value, tuple | list) else [value]
        if not all(isinstance(entry, PLAIN) for entry in entries):
            raise ValueError(
                f"kernel {record['kind']} cannot be written to a file: its {field.name} is "
                f"{value!r}; use numbers, texts, or tuples of these as fields"
            )
        record[field.name] = entries if isinstance(value, tuple | list) else value
    # The two that every leaf has come last, as in its constructor.
    for name in ("inputs", "label"):
        record[name] = record.pop(name)
    return record


def from_record(record: Mapping[str, Any], classes: Iterable[type[Leaf]] = ()) -> Kernel:
    """The kernel of a record; a user's own kernels are among `classes`.

    Examples
    --------
    >>> from_record({"kind": "Constant", "sd": 2.0})
    Constant(sd=2.0)
    """
    return _from_record(record, {each.__name__: each for each in classes}, DEEPEST)


def _from_record(record: Any, own: dict[str, type[Leaf]], depth: int) -> Kernel:
    kind = record.get("kind") if isinstance(record, Mapping) else None
    if not isinstance(kind, str):
        raise ValueError(
            f"a kernel's record must name its kind, got {_check.shown(record)}; "
            'try {"kind": "SquaredExponential"}'
        )
    settings = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
        if name != "kind"
    }
    if kind in JOINED:
        parts = settings.get("parts")
        if not (isinstance(parts, tuple) and parts and depth):
            raise ValueError(
                f"a record of the kind {kind!r} must have a list of parts, nested at most "
                f"{DEEPEST} deep, got {_check.shown(parts)}; give the records of its parts"
            )
        return JOINED[kind](tuple(_from_record(each, own, depth - 1) for each in parts))
    known = KERNELS | own
    if kind not in known:
        raise ValueError(
            f"the file was made with a kernel {kind!r} that is not part of gplc; give "
            f"its class, gplc.load(path, kernels=[{kind}])"
        )
    return known[kind](**settings)  # type: ignore[arg-type]
