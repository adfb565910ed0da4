"""Files that are whole or refused: written atomically, and netCDF with a digest at the end.

A fit or a checkpoint is netCDF-4 as any reader takes it, followed by a short trailer with the
SHA-256 of all that goes before. The trailer is checked before the netCDF library sees a byte: a
file that was cut, changed or never ours is refused in one sentence. A forged file with a right
digest can be wrong, but can neither run code (nothing is ever unpickled) nor ask for more memory
than its own size, and whatever the library finds wrong in it is a `FileError` too.
"""

import hashlib
import io
import os
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import h5py
    import xarray

MAGIC = b"\ngplc-sha256:"
TRAILER = len(MAGIC) + 64

# The format that is written. Files from before it had a number are of format 1.
FORMAT = 5

# How netCDF marks a dimension that has no values.
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"


# The name of standard input and output.
STREAM = "-"


class FileError(ValueError):
    """A file that cannot be used, with the reason and what to do."""


class Contents(NamedTuple):
    """What is in a file."""

    format: int
    arrays: dict[str, NDArray[Any]]
    texts: dict[str, str]


def name_of(path: str) -> str:
    """A path as messages show it.

    Examples
    --------
    >>> name_of("-")
    'standard input'
    """
    return "standard input" if path == STREAM else path


def optional(module: str, needed_by: str, extra: str) -> Any:
    """A module that comes with an extra, or an error that says how to get it.

    Examples
    --------
    >>> optional("no_such_module", "a.xlsx: Excel", "excel")
    Traceback (most recent call last):
    gplc._files.FileError: a.xlsx: Excel needs no_such_module, which is not installed; give CSV, \
    or pip install 'gplc[excel]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise FileError(
            f"{needed_by} needs {module.partition('.')[0]}, which is not installed; give CSV, or "
            f"pip install 'gplc[{extra}]'"
        ) from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` if all goes well.

    On an error nothing is left of it, and `path` is as it was. What the disk does not allow is a
    FileError.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as draft:
    ...     _ = draft.write_text("whole")
    >>> [path.name for path in folder.iterdir()]
    ['a.txt']
    """
    with _drafted(Path(path)) as draft:
        yield draft
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        # Drafts are private; what takes the place of `path` has the rights any new file has.
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
        os.replace(draft, path)


@contextmanager
def _drafted(path: Path) -> Iterator[Path]:
    """A file beside `path` that is gone in the end, unless it was given another name."""
    try:
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix
        )
        os.close(handle)
        try:
            yield Path(name)
        finally:
            with suppress(OSError):  # on a disk that is read-only by now, say
                os.unlink(name)
    except OSError as error:
        raise FileError(
            f"{path} cannot be written ({error.strerror or error}); see to its folder, the "
            "permissions and the room on the disk, or give another path"
        ) from error


class Claim:
    """A file that this process writes again and again, until another process does.

    Parameters
    ----------
    path : path
        Refused if it cannot be written, before anything is computed for it.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> claim = Claim(path)
    >>> with claim.held():
    ...     _ = path.write_text("ours")
    >>> _ = path.write_text("another's")
    >>> with claim.held():
    ...     _ = path.write_text("ours again")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    gplc._files.FileError: ...a.txt was written by another process, ...
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise FileError(f"{path} is a folder; give the path of a file")
        with _drafted(self.path):
            self._end = self._present_end()

    def _present_end(self) -> bytes | None:
        """The last bytes, which hold the digest of a file that `write` made; None without one."""
        try:
            with open(self.path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - TRAILER))
                return file.read()
        except OSError:
            return None

    @contextmanager
    def held(self) -> Iterator[None]:
        """The file may be written here. One that was deleted is written anew."""
        if self._present_end() not in (None, self._end):
            raise FileError(
                f"{self.path} was written by another process, whose work is kept; give each run "
                "a path of its own"
            )
        yield
        self._end = self._present_end()


@contextmanager
def refusing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever goes wrong with what a file holds is a FileError of one line.

    Examples
    --------
    >>> with refusing("fit.nc"):
    ...     {}["names"]
    Traceback (most recent call last):
    gplc._files.FileError: fit.nc is damaged (KeyError: 'names'); use another copy, or fit again
    """
    try:
        yield
    except FileError:
        raise
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")
        if isinstance(error, ValueError):  # which says itself what to do, mostly
            raise FileError(f"{path} cannot be used: {reason}") from error
        raise FileError(
            f"{path} is damaged ({type(error).__name__}: {reason}); use another copy, or fit again"
        ) from error


def _without_cluster() -> Any:
    """Locks of this process: xarray would ask a Dask scheduler for one, which may be gone."""
    dask = sys.modules.get("dask")
    return nullcontext() if dask is None else dask.config.set(scheduler="synchronous")


def write(path: str | os.PathLike[str], dataset: "xarray.Dataset", kind: str) -> None:
    """Write a data set so that `path` holds either the old or the new file, whole."""
    dataset = dataset.assign_attrs(gplc_kind=kind, gplc_format=FORMAT)
    # Made in memory: the library does not always tell when a disk is full.
    with _without_cluster():
        body = dataset.to_netcdf(engine="h5netcdf")
    with replacing(path) as draft, open(draft, "wb") as file:
        file.write(body)
        file.write(MAGIC + hashlib.sha256(body).hexdigest().encode())


def read(path: str | os.PathLike[str], kind: str) -> Contents:
    """What is in a file that `write` made, or a FileError that says what is wrong."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileError(
            f"{path} cannot be read ({error.strerror or error}); check the path and permissions"
        ) from error
    body, trailer = content[:-TRAILER], content[-TRAILER:]
    if not trailer.startswith(MAGIC):
        raise FileError(
            f"{path} is not a whole gplc file: it was cut short, or something else wrote it; "
            "use another copy, or fit again"
        )
    if hashlib.sha256(body).hexdigest().encode() != trailer[len(MAGIC) :]:
        raise FileError(
            f"{path} has changed since gplc wrote it (its digest does not match); "
            "use another copy, or fit again"
        )
    with refusing(path):
        contents = _contents(body)
    found = contents.texts.get("gplc_kind")
    if found != kind:
        raise FileError(f"{path} is a gplc {found}, not a {kind}; give the right file")
    if contents.format > FORMAT:
        raise FileError(
            f"{path} is of format {contents.format}, and this version of gplc reads up to "
            f"{FORMAT}; install a newer gplc"
        )
    return contents


# A collection of texts in HDF5, and what comes before each: number, count, nothing, size.
HEAP, HEAP_ENTRY = b"GCOL\x01", struct.Struct("<HHIQ")


def _check_heaps(body: bytes) -> None:
    """Refuse entries of HDF5's collections of texts that end where they begin, or nowhere.

    The library goes through the entries by their sizes, and from one of no size never gets on.
    """
    begin = body.find(HEAP)
    while begin >= 0:
        head = body[begin + 8 : begin + 16]
        end, place = begin + int.from_bytes(head, "little"), begin + 16
        while place + HEAP_ENTRY.size <= min(end, len(body)):
            number, _, _, size = HEAP_ENTRY.unpack_from(body, place)
            # Number 0 is what is free, whose size is with these bytes; texts fill eights.
            step = size if number == 0 else HEAP_ENTRY.size + (size + 7) // 8 * 8
            if not HEAP_ENTRY.size <= step <= end - place:
                raise ValueError("a text in it has an impossible size; use another copy")
            place += step
        begin = body.find(HEAP, begin + 1)


def _contents(body: bytes) -> Contents:
    import h5py

    _check_heaps(body)
    with h5py.File(io.BytesIO(body), "r") as file:
        entries = {name: entry for name, entry in file.items() if not _is_bare_dimension(entry)}
        # Nothing is compressed, so that numbers take no less room in the file than in memory.
        if sum(entry.nbytes for entry in entries.values()) > len(body):
            raise ValueError("it declares more numbers than it has room for; use another copy")
        attributes = {
            name: file.attrs[name]
            for name in file.attrs
            if file.attrs.get_id(name).shape in ((), (1,))
        }
        return Contents(
            int(np.ravel(attributes.pop("gplc_format", 1))[0]),
            {name: np.array(entry[()], order="C") for name, entry in entries.items()},
            {name: value for name, value in attributes.items() if isinstance(value, str)},
        )


def _is_bare_dimension(entry: "h5py.Dataset") -> bool:
    return bytes(entry.attrs.get("NAME", b"")).startswith(NO_VARIABLE)
