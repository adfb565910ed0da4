"""Files that are whole or refused: written atomically, and netCDF with a digest at the end.

A fit or a checkpoint is netCDF-4 as any reader takes it, followed by a short trailer with the
SHA-256 of all that goes before. The trailer is checked before the netCDF library sees a byte: a
file that was cut, changed or never ours is refused in one sentence. Nothing is ever unpickled.
"""

import hashlib
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray

MAGIC = b"\ngplc-sha256:"
TRAILER = len(MAGIC) + 64


class FileError(ValueError):
    """A file that cannot be used, with the reason and what to do."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` if all goes well.

    On an error nothing is left of it, and `path` is as it was.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as draft:
    ...     _ = draft.write_text("whole")
    >>> [path.name for path in folder.iterdir()]
    ['a.txt']
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        with open(draft, "rb") as file:
            os.fsync(file.fileno())
        # Drafts are private; what takes the place of `path` has the rights any new file has.
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write(path: str | os.PathLike[str], dataset: "xarray.Dataset", kind: str) -> None:
    """Write a data set so that `path` holds either the old or the new file, whole."""
    dataset = dataset.assign_attrs(gplc_kind=kind)
    with replacing(path) as draft:
        dataset.to_netcdf(draft, engine="h5netcdf")
        with open(draft, "r+b") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.write(MAGIC + digest.encode())


def read(path: str | os.PathLike[str], kind: str) -> "xarray.Dataset":
    """The data set in a file that `write` made, or a FileError that says what is wrong."""
    import xarray

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
    with xarray.open_dataset(io.BytesIO(body), engine="h5netcdf") as opened:
        dataset = opened.load()
    found = dataset.attrs.get("gplc_kind")
    if found != kind:
        raise FileError(f"{path} is a gplc {found}, not a {kind}; give the right file")
    return dataset
