"""Rows that are not in this process, checked and brought to standard units where they are."""

import functools
import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from gplc import _check
from gplc._cells import numbers
from gplc._files import FileError, name_of, optional
from gplc._tables import Reading, delimiter_of, read_chunks, table_format
from gplc._types import Array
from gplc.estimators.scaling import Scaling
from gplc.processes import cluster
from gplc.processes.distant import KEPT_ROWS, DistantRows, FileShards, Shards

# A mean function of the user's.
Mean = Callable[[Array], ArrayLike]
# Numbers beyond this have no squares.
LARGEST = 1e150


class Moments(NamedTuple):
    """What one pass over rows tells of their columns."""

    n: int
    lowest: Array
    highest: Array
    mean: Array
    squares: Array  # sums of squares around the mean

    def with_more(self, other: "Moments") -> "Moments":
        """Of both."""
        n = self.n + other.n
        gap = other.mean - self.mean
        return Moments(
            n,
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            self.mean + gap * (other.n / n),
            self.squares + other.squares + gap**2 * (self.n * (other.n / n)),
        )

    def scaling(self) -> Scaling:
        """As `Scaling.of` all rows."""
        sd = np.sqrt(self.squares / self.n)
        constant = (sd <= 1e-12 * np.abs(self.mean)) | (sd == 0.0)
        return Scaling(self.mean, np.where(constant, np.maximum(sd, 1.0), sd))


class Looked(NamedTuple):
    """What there is in a shard: moments, or the first number that is none."""

    moments: Moments | None
    wrong: tuple[int, int, float] | None = None  # row, column, value


@dataclass(frozen=True, eq=False)
class Look:
    """Moments of a shard, y less the mean that the user knows; or what is wrong with it."""

    mean: Mean | None

    def __call__(self, values: Array, begin: int) -> Looked:
        """What there is."""
        bad = ~(np.abs(values) <= LARGEST)
        if bad.any():
            row, column = (int(each) for each in np.argwhere(bad)[0])
            return Looked(None, (begin + row, column, float(values[row, column])))
        values = less_mean(values, self.mean)
        mean = values.mean(axis=0)
        squares = np.sum((values - mean) ** 2, axis=0)
        ends = values.min(axis=0), values.max(axis=0)
        return Looked(Moments(len(values), *ends, mean, squares))


@dataclass(frozen=True, eq=False)
class Standardized:
    """A shard in standard units, y less the mean that the user knows."""

    x: Scaling
    y: Scaling
    mean: Mean | None

    def __call__(self, values: Array, begin: int) -> Array:
        """Another array."""
        values = less_mean(values, self.mean)
        return np.column_stack([self.x.apply(values[:, :-1]), self.y.apply(values[:, -1])])


def less_mean(values: Array, mean: Mean | None) -> Array:
    """Inputs, and y less the mean that the user knows."""
    if mean is None:
        return values
    known = _check.finite_array("the values of mean", mean(values[:, :-1]), 1)
    return np.column_stack([values[:, :-1], values[:, -1] - known])


def as_it_is(values: Array, begin: int) -> Array:
    """The shard itself."""
    return values


def digest_of(values: Array, begin: int) -> bytes:
    """What tells a shard from another."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()


class Distant(NamedTuple):
    """What `fit` was given, wherever it is."""

    shards: Shards
    features: list[str] | None
    target: str | None
    chunks: list[int] | None  # rows of the chunks that the user has made
    inputs: int
    given: int
    dropped: int = 0


class Prepared(NamedTuple):
    """Rows in standard units, and these."""

    rows: DistantRows
    x_scaling: Scaling
    y_scaling: Scaling
    digest: str


class FileColumns:
    """Columns of a table in a file that is never held as a whole: `gplc.open_rows` makes them."""

    def __init__(self, shards: FileShards, names: list[str], target: str, dropped: int) -> None:
        self.shards, self.names, self.target, self.dropped = shards, names, target, dropped
        self.shape = (shards.n, len(names))

    def __len__(self) -> int:
        return self.shards.n


class FileTarget:
    """The response of `FileColumns`."""

    def __init__(self, columns: FileColumns) -> None:
        self.columns, self.name, self.shape = columns, columns.target, (len(columns),)

    def __len__(self) -> int:
        return len(self.columns)


def open_rows(
    path: str | os.PathLike[str],
    target: str,
    features: Sequence[str] | None = None,
    *,
    reading: Any = None,
    drop_missing: bool = False,
) -> tuple[FileColumns, FileTarget]:
    r"""Inputs and response of a table that may be larger than the memory, for `fit`.

    The table is read once, in parts, and its numbers are kept in a file in the folder for
    temporary files (`TMPDIR`), 8 bytes for each, as long as they are needed.

    Parameters
    ----------
    path : path
        CSV or Parquet.
    target : str
        Column of the response; rows without one are left out.
    features : sequence of str, optional
        Columns that are inputs; all others by default.
    reading : optional
        How a CSV file is to be read, if that cannot be found out.
    drop_missing : bool
        Whether to leave out rows with missing inputs too, which are an error otherwise.

    Returns
    -------
    X, y
        To be given to `fit`, and nothing else.

    Examples
    --------
    >>> import pathlib, tempfile, gplc
    >>> path = pathlib.Path(tempfile.mkdtemp(), "big.csv")
    >>> _ = path.write_text("x,y\n" + "".join(f"{k},{k // 99 + k % 7}\n" for k in range(2000)))
    >>> X, y = gplc.open_rows(path, target="y")
    >>> X.shape
    (2000, 1)
    >>> model = gplc.StandardGP(chains=1, draws=10, warmup=10, random_state=0).fit(X, y)
    >>> model.n_given_
    2000
    """
    place = os.fspath(path)
    names: list[str] = []
    dropped = 0

    def parts() -> Iterator[Array]:
        nonlocal dropped
        how = reading or Reading()
        for frame in read_chunks(place, how):
            if not names:
                chosen = features or [str(name) for name in frame.columns if str(name) != target]
                if target in chosen:
                    raise ValueError(f"features must not hold the target {target!r}")
                names.extend(chosen)
            response = numbers(frame, [target], place, decimal=how.decimal, keep_missing=True)
            usable = ~np.isnan(response[:, 0])
            inputs = numbers(
                frame[usable],
                names,
                place,
                decimal=how.decimal,
                keep_missing=drop_missing,
                optional=names,
            )
            kept = np.isfinite(inputs).all(axis=1)
            dropped += len(frame) - int(kept.sum())
            yield np.column_stack([inputs, response[usable]])[kept]

    shards = FileShards.written(parts())
    if shards.n < 2:
        raise FileError(f"{name_of(place)} has {shards.n} usable rows; 2 are needed")
    columns = FileColumns(shards, names, target, dropped)
    return columns, FileTarget(columns)


def read_on_cluster(
    path: str, target: str, features: list[str], reading: Reading, drop: bool, scheduler: str
) -> tuple[Any, Any]:
    """Inputs and response of a table as data frames of Dask, read by the workers of a cluster.

    They have to find the file under the same path.
    """
    form = table_format(path)
    if form not in ("csv", "tsv", "parquet"):
        raise FileError(f"{path}: workers of a cluster read CSV or Parquet only; convert it")
    cluster.client_at(scheduler)
    frames = optional("dask.dataframe", "a table on a Dask cluster", "dask")
    columns = [*features, target]
    if form == "parquet":
        frame = frames.read_parquet(path, columns=columns)
    else:
        between = reading.delimiter or delimiter_of(path)
        frame = frames.read_csv(
            path,
            usecols=columns,
            sep=between,
            decimal=reading.decimal or ".",
            encoding=reading.encoding or "utf-8",
            dtype=dict.fromkeys(columns, "float64"),
        )
    if drop:
        frame = frame.dropna()
    return frame[features], frame[target]


def is_distant(X: Any, y: Any) -> bool:
    """Whether rows are not in this process."""
    return isinstance(X, FileColumns) or cluster.is_dask(X) or cluster.is_dask(y)


def distant_of(X: Any, y: Any, scheduler: str | None) -> Distant:
    """Where rows are: in a file, on the workers of a cluster, or on their way into a file.

    Without a cluster, chunks of Dask are computed here, one after the other, and kept in a file.
    """
    if isinstance(X, FileColumns):
        if not (isinstance(y, FileTarget) and y.columns is X):
            raise ValueError("y must be the one that gplc.open_rows gave together with X")
        given = X.shards.n + X.dropped
        return Distant(X.shards, X.names, X.target, None, len(X.names), given, X.dropped)
    table, chunks = cluster.table_of(X, y)
    n, columns = table.shape
    if n < 2 or columns < 2:
        raise ValueError(f"X must have 2 rows and an input at least, got shape {X.shape}")
    client = cluster.client_at(scheduler)
    shards: Shards
    if client is None:
        parts = table.to_delayed().ravel()
        shards = FileShards.written(part.compute(scheduler="sync") for part in parts)
    else:
        cluster.check_versions(client)
        shards = cluster.ClusterShards.of(client, table)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    target = getattr(y, "name", None) if hasattr(y, "to_dask_array") else None
    named = None if target is None else str(target)
    return Distant(shards, names, named, chunks, columns - 1, n)


def prepared(distant: Distant, standardize: bool, mean: Mean | None) -> Prepared:
    """Rows in standard units, after one look at all of them."""
    shards = distant.shards
    found = []
    for looked in shards.each(Look(mean)):
        if looked.wrong is not None:
            _refuse(distant, *looked.wrong)
        found.append(looked.moments)
    moments = functools.reduce(Moments.with_more, found)
    x_scaling, y_scaling = Scaling.none((len(moments.mean) - 1,)), Scaling.none(())
    if standardize:
        location, scale = moments.scaling()
        if moments.n <= KEPT_ROWS:  # the same to the last bit as of arrays in memory
            every = less_mean(np.concatenate(list(shards.each(as_it_is))), mean)
            of_inputs, of_response = Scaling.of(every[:, :-1]), Scaling.of(every[:, -1])
            location = np.append(of_inputs.location, of_response.location)
            scale = np.append(of_inputs.scale, of_response.scale)
        x_scaling = Scaling(location[:-1], scale[:-1])
        y_scaling = Scaling(location[-1], scale[-1])
    ends = np.array([moments.lowest[:-1], moments.highest[:-1]])
    lowest, highest = x_scaling.apply(ends).tolist()
    changed = shards.changed(Standardized(x_scaling, y_scaling, mean))
    digest = hashlib.sha256(b"".join(changed.each(digest_of))).hexdigest()[:16]
    rows = DistantRows.of(changed, list(zip(lowest, highest, strict=True)))
    return Prepared(rows, x_scaling, y_scaling, digest)


def _refuse(distant: Distant, row: int, column: int, value: float) -> NoReturn:
    """Refuse a number that is none, and say where it is."""
    place = f"row {row}"
    if distant.chunks is not None:
        ends = np.cumsum(distant.chunks)
        chunk = int(np.searchsorted(ends, row, side="right"))
        within = row - (int(ends[chunk]) - distant.chunks[chunk])
        place = f"row {row} (chunk {chunk}, row {within} of it)"
    name = "y"
    if column < distant.inputs:
        shown = column if distant.features is None else repr(distant.features[column])
        name, place = "X", f"{place}, column {shown}"
    told = "NaN" if math.isnan(value) else f"{value:g}"
    raise ValueError(
        f"{name} contains {told} in {place}; drop such rows, or fill them in first"
        + ("" if math.isnan(value) else f": numbers up to {LARGEST:g} can be used")
    )
