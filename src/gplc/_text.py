"""Lines of a text file in whatever encoding, none of them long enough to fill the memory."""

import codecs
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from gplc._files import STREAM, FileError, name_of

LONGEST_LINE = 1_000_000
# Longest first: the mark of UTF-16 is the beginning of that of UTF-32.
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """A file, or standard input, for reading bytes."""
    if path == STREAM:
        yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below, errors of opening told apart)
    except OSError as error:
        raise FileError(
            f"{path} cannot be read ({error.strerror or error}); check the path and permissions"
        ) from error
    with file:
        yield file


def lines(file: IO[bytes], path: str, encoding: str | None = None) -> Iterator[str]:
    r"""The lines of a file.

    Parameters
    ----------
    file : binary file
    path : str
        Its name, for errors.
    encoding : str, optional
        By default what the mark at its beginning says, or else UTF-8.

    Examples
    --------
    >>> import io
    >>> list(lines(io.BytesIO("x\n1\n".encode("utf-16")), "a.csv"))
    ['x\n', '1\n']
    """
    piece = file.readline(LONGEST_LINE)
    marked = next((name for mark, name in MARKS.items() if piece.startswith(mark)), None)
    name = encoding or marked or "utf-8"
    decoder = codecs.getincrementaldecoder(name)()
    number, pending, ended = 0, "", False
    while not ended:
        ended = not piece
        try:
            pending += decoder.decode(piece, final=ended)
        except UnicodeError as error:
            at = f"byte {error.start + 1} " if isinstance(error, UnicodeDecodeError) else "it "
            raise FileError(
                f"{name_of(path)}, line {number + 1}: {at}is not {name.upper()}; give the "
                "--encoding it has, perhaps latin-1 or cp1252"
            ) from error
        # A line ends where its text does: in UTF-16 the last byte comes with the next piece.
        *whole, pending = pending.split("\n")
        for line in [f"{line}\n" for line in whole] + [pending] * (ended and pending != ""):
            number += 1
            _refuse_rubbish(line, path, number)
            yield line
        _refuse_rubbish(pending, path, number + 1)
        piece = file.readline(LONGEST_LINE)


def _refuse_rubbish(line: str, path: str, number: int) -> None:
    if "\0" in line or len(line) >= LONGEST_LINE:
        raise FileError(
            f"{name_of(path)}, line {number}: this is no text table (it has zero bytes or a line "
            "without end); give CSV, or a name that ends in .parquet or .xlsx, or its --encoding"
        )
