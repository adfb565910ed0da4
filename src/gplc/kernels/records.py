"""Kernels as plain data, to and from files: names and settings, no code."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from gplc.kernels.base import KERNELS, Kernel, Leaf, Product, Sum

PLAIN = (bool, int, float, str, type(None))


def to_record(kernel: Kernel) -> dict[str, Any]:
    """A kernel in JSON's terms.

    Examples
    --------
    >>> from gplc.kernels import Constant
    >>> to_record(Constant(2.0))
    {'kind': 'Constant', 'sd': 2.0, 'inputs': [], 'label': ''}
    """
    if isinstance(kernel, Sum):
        return {"kind": "+", "parts": [to_record(each) for each in kernel.parts]}
    if isinstance(kernel, Product):
        return {"kind": "*", "parts": [to_record(each) for each in kernel.parts]}
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
    if record["kind"] in ("+", "*"):
        parts = tuple(from_record(each, classes) for each in record["parts"])
        return Sum(parts) if record["kind"] == "+" else Product(parts)
    known = KERNELS | {each.__name__: each for each in classes}
    settings = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
        if name != "kind"
    }
    if record["kind"] not in known:
        raise ValueError(
            f"the file was made with a kernel {record['kind']!r} that is not part of gplc; give "
            f"its class, gplc.load(path, kernels=[{record['kind']}])"
        )
    return known[record["kind"]](**settings)  # type: ignore[arg-type]
