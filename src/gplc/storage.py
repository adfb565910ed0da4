"""Chains to and from files: checkpoints of runs, and finished fits.

What is in a file is written down once, as a schema, and compared with it at one door. A file
names no classes and holds no code.
"""

import dataclasses
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gplc import _files
from gplc._types import Array
from gplc.chains import Chain, Position
from gplc.models.base import Model, Unknowns, Update
from gplc.models.landmarks import KINDS, TAILS

CHECKPOINT, FIT = "checkpoint", "fit"

# --- the schema: arrays of float64 by their dimensions, and texts of JSON ---------------

RUN_ARRAYS = {
    "theta": ("chain", "draw", "hyperparameter"),
    "latent": ("chain", "draw", "case"),
    "log_density": ("chain", "draw"),
    "judged": ("chain", "draw", "kind", "landmark"),
    "position_theta": ("chain", "hyperparameter"),
    "position_latent": ("chain", "case"),
}
FIT_ARRAYS = {
    "X": ("row", "input"),
    "y": ("row",),
    "x_location": ("input",),
    "x_scale": ("input",),
    "y_location": (),
    "y_scale": (),
}
ARRAYS = {CHECKPOINT: RUN_ARRAYS, FIT: RUN_ARRAYS | FIT_ARRAYS}
# What a fit may have besides, if its data have it.
OPTIONAL_ARRAYS = {
    "known_sd": ("row",),
    # What all rows have told the standard model, if they are not in the file.
    "squares": ("function", "with_function"),
    "products": ("function",),
    "total": (),
}

# JSON by example: [t] is a list of t, {str: t} a mapping, {"name": t, ...} exactly these entries,
# (t, u) either of them, and object anything that is not nested too deeply.
NUMBER = (int, float)
SEED = [[int]]
GENERATOR = {
    "bit_generator": str,
    "state": {"state": int, "inc": int},
    "has_uint32": int,
    "uinteger": int,
}
MODES = {"groups": [[int]], "gap": NUMBER, "worst": str}
RUN_TEXTS = {
    "names": [str],
    "seed": SEED,
    "chains": [
        {
            "acceptance": {str: NUMBER},
            "events": {str: int},
            "seconds": {str: NUMBER},
            "generator": GENERATOR,
            "iteration": int,
            "learned": str,  # JSON, not looked into until a chain goes on
        }
    ],
}
FIT_TEXTS = {
    "version": str,
    "estimator": str,
    "settings": {str: object},
    "features": [str],
    "target": (str, None),
    "data": {
        "given": int,
        "dropped": int,
        "resolution": (int, float, None),
        "transform": ({"name": str, "power": (int, float, None)}, None),
        "columns": (
            [{"name": str, "kind": str, "levels": [str], "unit": str, "origin": str}],
            None,
        ),
    },
    "origin": {str: str},
    "diagnostics": {
        "rows": {str: [NUMBER]},
        "acceptance": {str: NUMBER},
        "events": {str: int},
        "seconds": {str: NUMBER},
        "tuned": {str: str},
        "n_chains": int,
        "n_draws": int,
        "stopped": str,
        "weighed": ([(int, float, bool)], None),
        # R-hats were not always kept.
        "modes": (MODES, MODES | {"within": NUMBER, "overall": NUMBER}, None),
    },
}
TEXTS = {CHECKPOINT: RUN_TEXTS | {"fingerprint": {str: str}}, FIT: RUN_TEXTS | FIT_TEXTS}

# What was done to the data of a fit, before anything was.
NOTHING_DONE = {"given": 0, "dropped": 0, "resolution": None, "transform": None}

# Quantities that were judged up to format 2, and told nothing.
NO_LONGER_JUDGED = ("sum w^2", "sum z", "sum z^2")

# More than anybody has made.
MOST_ITERATIONS = 10**12

# In standard units nothing is beyond this: neither data nor latent values, which are standard
# normal or about as large as logarithms of SDs. Its fourth power is a number still.
LARGEST = 1e50

# JSON may be nested so deeply: kernels are, at most as deeply as somebody wrote brackets.
MOST_DEPTH = 50


class Saved:
    """What a file of some kind holds, as the schema says.

    Attributes
    ----------
    arrays : dict of str to array
    records : dict of str to what the JSON says
    format : int
        The format the file was written in.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self.path = path
        contents = _files.read(path, kind)
        self.format = contents.format
        with _files.refusing(path):
            if self.format < 3:  # which kept nothing that is judged
                none = (*contents.arrays["log_density"].shape, 0, 0)
                contents.arrays.setdefault("judged", np.empty(none))
            _check_arrays(contents.arrays, _with_optional(contents.arrays, kind))
            self.arrays = contents.arrays
            if kind == FIT and self.format < 4:  # which did not tell of its data
                contents.texts.setdefault("data", json.dumps(NOTHING_DONE))
                contents.texts.setdefault("origin", "{}")
            self.records = {name: _parsed(contents.texts, name) for name in TEXTS[kind]}
            if isinstance(self.records.get("data"), dict):
                # Told only where they are not all numbers.
                self.records["data"].setdefault("columns", None)
            _bring_up_to_date(self.records, self.format)
            for name, shape in TEXTS[kind].items():
                if wrong := _misfit(self.records[name], shape, name):
                    raise ValueError(f"its {wrong} is not what gplc writes; use another copy")
            if kind == FIT:
                _check_units(self.arrays, self.records["data"]["transform"] is None)
            self.seed = _seed_from_record(self.records["seed"])

    def chains(self, model: Model) -> list[Chain]:
        """The chains, of this model."""
        with _files.refusing(self.path):
            self._check_chains(model)
        arrays = self.arrays
        return [
            Chain(
                arrays["theta"][number],
                arrays["latent"][number],
                arrays["log_density"][number],
                arrays["judged"][number],
                record["acceptance"],
                Counter(record["events"]),
                record["seconds"],
                Position(
                    Unknowns(arrays["position_theta"][number], arrays["position_latent"][number]),
                    record["generator"],
                    (),
                    record["iteration"],
                    record["learned"],
                ),
                model.names,
            )
            for number, record in enumerate(self.records["chains"])
        ]

    def _check_chains(self, model: Model) -> None:
        count, draws, _ = self.arrays["theta"].shape
        names = tuple(self.records["names"])
        if (names, self.arrays["latent"].shape[2]) != (model.names, model.n_latent):
            raise ValueError(f"its draws are of {names}, the model has {model.names}; fit again")
        if self.arrays["judged"].shape[2:] not in (model.judged_shape, (0, 0)):
            raise ValueError("what is judged of its draws is not what this model keeps; fit again")
        if not all(model.priors.allows(self.arrays[each]) for each in ("theta", "position_theta")):
            raise ValueError("its draws are where the priors allow none; fit again")
        records = self.records["chains"]
        if not 0 < count == len(records):
            raise ValueError(f"it has {count} chains and tells of {len(records)}; fit again")
        for record in records:
            np.random.PCG64().state = record["generator"]
            if not draws <= record["iteration"] == records[0]["iteration"] < MOST_ITERATIONS:
                raise ValueError(
                    f"it has {draws} draws after {record['iteration']} iterations; fit again"
                )


def _with_optional(arrays: Mapping[str, Array], kind: str) -> dict[str, tuple[str, ...]]:
    """The schema of a kind of file, with whatever of the optional arrays there is."""
    more = {name: each for name, each in OPTIONAL_ARRAYS.items() if name in arrays}
    return ARRAYS[kind] | (more if kind == FIT else {})


def _check_arrays(arrays: Mapping[str, Array], schema: Mapping[str, tuple[str, ...]]) -> None:
    if arrays.keys() != schema.keys():
        odd = sorted(arrays.keys() ^ schema.keys())
        raise ValueError(f"{odd} are missing or not of gplc; use another copy")
    sizes: dict[str, int] = {}
    for name, dimensions in schema.items():
        values = arrays[name]
        expected = tuple(map(sizes.setdefault, dimensions, values.shape))
        if values.dtype != np.float64 or len(dimensions) != values.ndim:
            raise ValueError(
                f"its {name} is {values.dtype} of shape {values.shape}, not float64 of "
                f"{len(dimensions)} dimensions; use another copy"
            )
        if values.shape != expected:
            raise ValueError(
                f"its {name} has shape {values.shape}, not {expected} as the others; "
                "use another copy"
            )
        if not _possible(name, values).all():
            raise ValueError(
                f"its {name} is not finite, or not possible; use another copy, or fit again"
            )


def _check_units(arrays: Mapping[str, Array], plain: bool) -> None:
    """Refuse data that their own units make huge; y tells nothing if it was transformed."""
    for name, values in {"x": arrays["X"], "y": arrays["y"]}.items():
        location, scale = arrays[f"{name}_location"], arrays[f"{name}_scale"]
        with np.errstate(all="ignore"):
            huge = ~(np.abs((values - location) / scale) <= LARGEST)
        if not (scale > 0.0).all() or ((name == "x" or plain) and huge.any()):
            raise ValueError(
                f"its {name}, or its units, are no numbers that were fitted; use another copy"
            )


def _possible(name: str, values: Array) -> NDArray[np.bool_]:
    if name == "log_density":  # it is -inf if a chain never left the place where it began
        return values < math.inf
    if name in ("latent", "position_latent"):
        return np.abs(values) <= LARGEST
    if name != "judged":
        return np.isfinite(values)
    # What is judged is nan where it could not be computed.
    tails = values[:, :, [KINDS.index(kind) for kind in TAILS if values.shape[2]]]
    probable = np.isnan(tails) | ((tails >= 0.0) & (tails <= 1.0))
    return ~np.isinf(values) & probable.all()


def _parsed(texts: Mapping[str, str], name: str) -> Any:
    if name not in texts:
        raise ValueError(f"it has no {name}; use another copy")
    try:
        return json.loads(texts[name])
    except RecursionError as error:
        raise ValueError(f"its {name} is nested too deeply; use another copy") from error


def _misfit(value: Any, shape: Any, name: str, depth: int = 0) -> str:
    """Name of the first entry of a value that has not the shape; empty if all have.

    Examples
    --------
    >>> _misfit({"a": [1, "x"]}, {str: [int]}, "record")
    "record['a'][1]"
    >>> _misfit({"a": [1, 2]}, {str: [int]}, "record")
    ''
    """
    if isinstance(shape, tuple):
        found = [_misfit(value, each, name, depth) for each in shape]
        return "" if "" in found else found[0]
    if shape is object:
        if depth > MOST_DEPTH:
            return name
        inside = value.values() if isinstance(value, dict) else value
        nested = (
            _misfit(each, object, name, depth + 1)
            for each in (inside if isinstance(value, dict | list) else ())
        )
    elif isinstance(shape, list) and isinstance(value, list):
        nested = (_misfit(each, shape[0], f"{name}[{k}]") for k, each in enumerate(value))
    elif isinstance(shape, dict) and isinstance(value, dict):
        every = shape.get(str)
        if every is None and shape.keys() != value.keys():
            return name
        nested = (
            _misfit(each, every or shape[key], f"{name}[{key!r}]") for key, each in value.items()
        )
    elif shape is None or isinstance(shape, type):
        # True and False are integers in Python, but not here.
        return "" if type(value) is (type(None) if shape is None else shape) else name
    else:
        return name
    return next((wrong for wrong in nested if wrong), "")


def _bring_up_to_date(records: dict[str, Any], written: int) -> None:
    """What was written otherwise in older formats, in place."""
    if written < 3 and "diagnostics" in records:
        records["diagnostics"]["modes"] = None
        for name in NO_LONGER_JUDGED:
            records["diagnostics"]["rows"].pop(name, None)
    if isinstance(records.get("diagnostics"), dict):
        records["diagnostics"].setdefault("weighed", None)  # files from before the fast method
    if written > 1:
        return
    for record in records["chains"]:
        record["learned"] = json.dumps([{"settings": each} for each in record["learned"]])
    if isinstance(records["seed"], str):
        records["seed"] = json.loads(records["seed"])
    marks = records.get("fingerprint", {})
    marks.pop("sampler", None)  # all settings of all samplers, which say themselves what they are
    if "scale" in marks:
        marks["link"] = marks.pop("scale")


# --- checkpoints and fits ----------------------------------------------------------------------


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


def save_checkpoint(
    path: str | os.PathLike[str],
    chains: Sequence[Chain],
    marks: Mapping[str, str],
    seed: np.random.SeedSequence,
) -> None:
    """Write a checkpoint, atomically: chains, the fingerprint of the run, and its seed."""
    _write(path, CHECKPOINT, chains, {}, {"fingerprint": dict(marks), "seed": seed_record(seed)})


def load_checkpoint(
    path: str | os.PathLike[str],
    model: Model,
    marks: Mapping[str, str],
    chains: int,
    warmup: int,
) -> tuple[list[Chain], np.random.SeedSequence]:
    """Chains and seed of a checkpoint, refused if it is of another run."""
    saved = Saved(path, CHECKPOINT)
    before = saved.records["fingerprint"]
    if saved.format == 1:
        before["sampler"] = marks["sampler"]  # see with_learned, which compares them
    if found := differences(before, marks):
        raise _files.FileError(
            f"checkpoint {path} is of another run: {'; '.join(found)}. Fit with the data and "
            "settings it was made with, or give another path"
        )
    begun = saved.chains(model)
    done, draws = begun[0].position.iteration, begun[0].log_density.size
    if len(begun) != chains or draws != max(0, done - warmup):
        raise _files.FileError(
            f"checkpoint {path} has {len(begun)} chains of {draws} draws after {done} iterations, "
            f"which {chains} chains with a warm-up of {warmup} cannot have; give another path"
        )
    return begun, saved.seed


def save_fit(
    path: str | os.PathLike[str],
    chains: Sequence[Chain],
    arrays: Mapping[str, Array],
    records: Mapping[str, Any],
) -> None:
    """Write a finished fit: chains, and further arrays and records of the schema."""
    _write(path, FIT, chains, arrays, records)


def _write(
    path: str | os.PathLike[str],
    kind: str,
    chains: Sequence[Chain],
    arrays: Mapping[str, Array],
    records: Mapping[str, Any],
) -> None:
    import xarray

    positions = [chain.position for chain in chains]
    arrays = {
        "theta": np.stack([chain.theta for chain in chains]),
        "latent": np.stack([chain.latent for chain in chains]),
        "log_density": np.stack([chain.log_density for chain in chains]),
        "judged": np.stack([chain.judged for chain in chains]),
        "position_theta": np.stack([position.unknowns.theta for position in positions]),
        "position_latent": np.stack([position.unknowns.latent for position in positions]),
        **arrays,
    }
    records = {
        "names": chains[0].names,
        "chains": [
            {
                "acceptance": chain.acceptance,
                "events": dict(chain.events),
                "seconds": chain.seconds,
                "generator": chain.position.generator,
                "iteration": chain.position.iteration,
                "learned": _learned_text(chain.position),
            }
            for chain in chains
        ],
        **records,
    }
    dataset = xarray.Dataset(
        {name: (each, arrays[name]) for name, each in _with_optional(arrays, kind).items()},
        attrs={name: json.dumps(records[name], default=_plain) for name in TEXTS[kind]},
    )
    _files.write(path, dataset, kind)


def _plain(value: Any) -> Any:
    """Numbers and arrays of NumPy in JSON's terms."""
    return np.asarray(value).tolist()


def seed_record(seed: np.random.SeedSequence) -> list[list[int]]:
    """A seed sequence in JSON's terms.

    Examples
    --------
    >>> import numpy as np
    >>> seed_record(np.random.SeedSequence([5, 6], spawn_key=(1,)))
    [[5, 6], [1]]
    """
    entropy = np.atleast_1d(np.asarray(seed.entropy, dtype=object)).tolist()
    return [[int(part) for part in entropy], [int(key) for key in seed.spawn_key]]


def _seed_from_record(record: list[list[int]]) -> np.random.SeedSequence:
    entropy, spawn_key = record
    return np.random.SeedSequence(entropy, spawn_key=tuple(spawn_key))


# --- what samplers have learned ----------------------------------------------------------------


def _learned_text(position: Position) -> str:
    if position.learned is not None:
        return position.learned
    return json.dumps(
        [
            {
                "part": update.part,
                "sampler": type(update.sampler).__name__,
                "settings": _settings(update.sampler),
            }
            for update in position.scheme
        ],
        default=_plain,
    )


def _settings(sampler: Any) -> dict[str, Any]:
    return {field.name: getattr(sampler, field.name) for field in dataclasses.fields(sampler)}


def with_learned(chains: Sequence[Chain], scheme: Sequence[Update]) -> list[Chain]:
    """Chains that can go on with a scheme: samplers from a file have what they had learned."""
    return [
        dataclasses.replace(chain, position=_awake(chain.position, scheme)) for chain in chains
    ]


def _awake(position: Position, scheme: Sequence[Update]) -> Position:
    if position.learned is None:
        return position
    try:
        updates = tuple(
            _with_settings(update, record)
            for update, record in zip(scheme, json.loads(position.learned), strict=True)
        )
        return position._replace(scheme=updates, learned=None)
    except Exception as error:
        raise _files.FileError(
            "these chains cannot go on: their samplers are not those of the scheme in this "
            f"version of gplc ({error}); fit again, or go on with the version that made them"
        ) from error


def _with_settings(update: Update, record: Mapping[str, Any]) -> Update:
    sampler: Any = update.sampler
    kind, settings = type(sampler).__name__, record["settings"]
    then = (record.get("part", update.part), record.get("sampler", kind), sorted(settings))
    if then != (update.part, kind, sorted(_settings(sampler))):
        raise ValueError("{} was sampled by {} with {}".format(*then))
    values = {
        name: np.array(value, dtype=np.float64) if isinstance(value, list) else value
        for name, value in settings.items()
    }
    return update._replace(sampler=dataclasses.replace(sampler, **values))
