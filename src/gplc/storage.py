"""Chains as labelled arrays, to and from files: checkpoints of runs, and finished fits."""

import dataclasses
import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gplc import _files
from gplc.chains import Chain, Position
from gplc.models.base import Unknowns, Update

if TYPE_CHECKING:
    import xarray

Array = NDArray[np.float64]

CHECKPOINT, FIT = "checkpoint", "fit"


def fingerprint(**settings: Any) -> dict[str, str]:
    """Settings and data as short texts that can be compared and shown.

    Examples
    --------
    >>> fingerprint(chains=4, draws="auto")
    {'chains': '4', 'draws': "'auto'"}
    """
    return {name: _text(value) for name, value in settings.items()}


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        return f"array of shape {value.shape}, digest {digest}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_text(value[key])}" for key in sorted(value)) + "}"
    return repr(value)


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """What differs between two fingerprints, in words.

    Examples
    --------
    >>> differences({"chains": "4"}, {"chains": "2"})
    ['chains was 4 and is now 2']
    """
    return [
        f"{name} was {old.get(name, 'absent')} and is now {new.get(name, 'absent')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def to_dataset(chains: Sequence[Chain]) -> "xarray.Dataset":
    """Draws and positions of chains, all that is needed to go on with them."""
    import xarray

    def stack(name: str) -> Array:
        return np.stack([getattr(chain, name) for chain in chains])

    positions = [chain.position for chain in chains]
    return xarray.Dataset(
        {
            "theta": (("chain", "draw", "hyperparameter"), stack("theta")),
            "latent": (("chain", "draw", "case"), stack("latent")),
            "log_density": (("chain", "draw"), stack("log_density")),
            "position_theta": (
                ("chain", "hyperparameter"),
                np.stack([position.unknowns.theta for position in positions]),
            ),
            "position_latent": (
                ("chain", "case"),
                np.stack([position.unknowns.latent for position in positions]),
            ),
        },
        attrs={
            "names": json.dumps(chains[0].names),
            "chains": json.dumps(
                [
                    {
                        "acceptance": chain.acceptance,
                        "events": dict(chain.events),
                        "seconds": chain.seconds,
                        "generator": _plain(chain.position.generator),
                        "iteration": chain.position.iteration,
                        "learned": [_fields(u.sampler) for u in chain.position.scheme],
                    }
                    for chain in chains
                ]
            ),
        },
    )


def from_dataset(dataset: "xarray.Dataset", scheme: Sequence[Update]) -> list[Chain]:
    """Chains from a data set that `to_dataset` made, for a model with this scheme.

    Samplers are those of the scheme, with the settings they had learned: a file
    names no classes, so that it cannot make anything but numbers.
    """
    names = tuple(json.loads(dataset.attrs["names"]))
    result = []
    for number, record in enumerate(json.loads(dataset.attrs["chains"])):
        learned = tuple(
            update._replace(sampler=_with_fields(update.sampler, fields))
            for update, fields in zip(scheme, record["learned"], strict=True)
        )
        position = Position(
            Unknowns(
                dataset["position_theta"].values[number],
                dataset["position_latent"].values[number],
            ),
            record["generator"],
            learned,
            record["iteration"],
        )
        result.append(
            Chain(
                dataset["theta"].values[number],
                dataset["latent"].values[number],
                dataset["log_density"].values[number],
                record["acceptance"],
                Counter(record["events"]),
                record["seconds"],
                position,
                names,
            )
        )
    return result


def _plain(value: Any) -> Any:
    """The state of a generator in JSON's terms; its integers may have any size."""
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return value if isinstance(value, str) else int(value)


def _fields(sampler: Any) -> dict[str, Any]:
    return {
        field.name: np.asarray(getattr(sampler, field.name)).tolist()
        for field in dataclasses.fields(sampler)
    }


def _with_fields(sampler: Any, fields: Mapping[str, Any]) -> Any:
    return dataclasses.replace(
        sampler,
        **{
            name: np.array(value) if isinstance(value, list) else value
            for name, value in fields.items()
        },
    )


def save_checkpoint(
    path: str | os.PathLike[str], chains: Sequence[Chain], marks: Mapping[str, str], seed: str
) -> None:
    """Write a checkpoint, atomically: chains, the fingerprint of the run, and its seed."""
    dataset = to_dataset(chains).assign_attrs(fingerprint=json.dumps(dict(marks)), seed=seed)
    _files.write(path, dataset, CHECKPOINT)


def load_checkpoint(
    path: str | os.PathLike[str], scheme: Sequence[Update], marks: Mapping[str, str]
) -> tuple[list[Chain], str]:
    """Chains and seed of a checkpoint, refused if it is of another run."""
    dataset = _files.read(path, CHECKPOINT)
    found = differences(json.loads(dataset.attrs["fingerprint"]), marks)
    if found:
        raise _files.FileError(
            f"checkpoint {path} is of another run: {'; '.join(found)}. Fit with the data and "
            "settings it was made with, or give another path"
        )
    return from_dataset(dataset, scheme), str(dataset.attrs["seed"])


def save_fit(
    path: str | os.PathLike[str],
    chains: Sequence[Chain],
    arrays: Mapping[str, tuple[tuple[str, ...], Array]],
    records: Mapping[str, Any],
) -> None:
    """Write a finished fit: chains, further arrays with their dimensions, and JSON records."""
    dataset = to_dataset(chains)
    for name, (dimensions, values) in arrays.items():
        dataset[name] = (dimensions, values)
    texts = {name: json.dumps(record) for name, record in records.items()}
    _files.write(path, dataset.assign_attrs(texts), FIT)


class SavedFit:
    """A finished fit as it is in a file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._dataset = _files.read(path, FIT)

    def record(self, name: str) -> Any:
        """One of the JSON records."""
        return json.loads(self._dataset.attrs[name])

    def array(self, name: str) -> Array:
        """One of the further arrays."""
        return np.array(self._dataset[name].values, order="C")

    def chains(self, scheme: Sequence[Update]) -> list[Chain]:
        """The chains, for a model with this scheme."""
        return from_dataset(self._dataset, scheme)
