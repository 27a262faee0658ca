"""Reading files that others made, each with a limit on its size and none of them executed.

A file that is larger than what its reader expects, packed or unpacked, is refused before it fills
the memory: with an :class:`OSError` (``EFBIG``), which readers report as any other file that
cannot be read.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import gzip
import io
import itertools
import json
import lzma
import math
import os
import resource
import stat
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

JSON_LIMIT_BYTES: Final = 1 << 26
"""64 MiB: far more than any description, card or sidecar has."""
LINE_LIMIT_BYTES: Final = 1 << 26
"""64 MiB: far more than any line of a journal or log has."""
_GZIP = b"\x1f\x8b"
_MAX_BESIDE = 10_000
_DAMAGED: Final = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    NotImplementedError,  # an unknown compression
    RuntimeError,  # a password
)
"""What an archive raises that cannot be unpacked."""


def meant_file(path: Path) -> str:
    """A hint for a file that is not there: the one beside it that may have been meant.

    Returns:
        A sentence that follows a message, with a leading ``". "``, or nothing.
    """
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = [file.name for file in itertools.islice(path.parent.iterdir(), _MAX_BESIDE)]
    near = difflib.get_close_matches(path.name, sorted(names), n=1, cutoff=0.7)
    return f". Did you mean {str(path.with_name(near[0]))!r}?" if near else ""


def open_file(path: Path, flags: int, mode: int = 0o777) -> int:
    """As :func:`os.open`; where as many files are open as the soft limit allows, it is raised.

    A process may have a journal open for each of hundreds of datasets, and read a dataset that
    hundreds of others have left.
    """
    try:
        return os.open(path, flags | os.O_CLOEXEC, mode)
    except OSError as error:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if error.errno != errno.EMFILE or soft == hard:
            raise
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return os.open(path, flags | os.O_CLOEXEC, mode)


def opened(path: Path) -> io.BufferedReader:
    """Opens a file for reading; nothing else is waited for, or read without an end.

    Raises:
        OSError: if it cannot be opened, or is a pipe, a device or a folder.
    """
    # A pipe that nobody writes to would block here.
    handle = open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        os.close(handle)
        raise OSError(
            errno.EISDIR if folder else errno.EINVAL,
            "a folder, not a file" if folder else "a pipe or a device, not a file",
            str(path),
        )
    return open(handle, "rb")


def lines_of(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of an open file, each with its end; a file of zeros is not one huge line.

    Args:
        file: is read from where it is.
        path: of it, for messages.

    Raises:
        OSError: if a line is longer than :data:`LINE_LIMIT_BYTES`.
    """
    while line := file.readline(LINE_LIMIT_BYTES + 1):
        if len(line) > LINE_LIMIT_BYTES:
            raise _too_large(path, LINE_LIMIT_BYTES, "a line is longer")
        yield line


def read_bytes(path: Path, limit_bytes: int, *, unpack: bool = False) -> bytes:
    """The bytes of a file.

    Args:
        path: the file.
        limit_bytes: maximum size of the file, unpacked.
        unpack: whether a gzipped file is unpacked.

    Raises:
        OSError: if it cannot be read, is damaged or too large.
    """
    with opened(path) as file:
        packed = unpack and file.read(2) == _GZIP
        if unpack:
            file.seek(0)
        try:
            source: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=file) if packed else file
            data = source.read(limit_bytes + 1)
        except (EOFError, zlib.error) as error:
            raise OSError(errno.EINVAL, f"damaged gzip file: {error}", str(path)) from None
    if len(data) > limit_bytes:
        raise _too_large(path, limit_bytes)
    return data


def read_text(path: Path, limit_bytes: int, *, unpack: bool = False) -> str:
    """The text in a file in UTF-8, with the arguments of :func:`read_bytes`.

    Raises:
        OSError: if it cannot be read or is too large.
        UnicodeDecodeError: if it is no text in UTF-8.
    """
    text = read_bytes(path, limit_bytes, unpack=unpack).decode("utf-8-sig")
    return text.replace("\r\n", "\n") if "\r" in text else text


def read_json(path: Path, limit_bytes: int = JSON_LIMIT_BYTES) -> Any:
    """The JSON in a file.

    Raises:
        OSError: if it cannot be read or is too large.
        ValueError: if it is no JSON (among them UnicodeDecodeError), or nested too deeply.
    """
    text = read_text(path, limit_bytes)
    if not text.strip():
        raise ValueError("it is empty")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_arrays(
    source: Path | bytes, limit_bytes: int, *, limit_arrays: int = 100_000
) -> dict[str, NDArray[Any]]:
    """The arrays of a NumPy archive (``.npz``), by name; objects are never unpickled.

    Sizes are taken from the headers and checked before anything is unpacked.

    Args:
        source: the file, or what is in it.
        limit_bytes: maximum size of the file, and of all arrays together.
        limit_arrays: maximum number of arrays.

    Raises:
        OSError: if it cannot be read or is too large.
        ValueError: if it is no such archive, is damaged, or has an array of objects.
    """
    content = read_bytes(source, limit_bytes) if isinstance(source, Path) else source
    where = source if isinstance(source, Path) else "the archive"
    found: dict[str, NDArray[Any]] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if len(entries) > limit_arrays or sum(e.file_size for e in entries) > limit_bytes:
                raise _too_large(where, limit_bytes)
            for entry in entries:
                with archive.open(entry) as file:
                    found[entry.filename.removesuffix(".npy")] = _array(file, entry.file_size)
    except _DAMAGED as error:
        raise ValueError(f"no NumPy archive, or damaged: {error}") from None
    return found


def _array(file: Any, size: int) -> NDArray[Any]:
    """One array of an archive, once its header fits the size that the archive gives."""
    form: Any = np.lib.format
    version = form.read_magic(file)
    read_header = getattr(form, "read_array_header_{}_{}".format(*version), None)
    if read_header is None:
        raise ValueError(f"version {version} of NumPy's format is not read")
    try:
        shape, fortran, dtype = read_header(file)
    except (LookupError, TypeError, MemoryError, tokenize.TokenError) as error:
        what = f"{type(error).__name__} {error}"
        raise ValueError(f"the header of an array cannot be read: {what:.200}") from None
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"an array cannot have the shape {shape}")
    if dtype.hasobject:
        raise ValueError("an array of objects, which would have to be unpickled")
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} in {size} bytes")
    data = file.read(math.prod(shape) * dtype.itemsize)
    values = np.frombuffer(data, dtype, math.prod(shape)).copy()
    return values.reshape(shape[::-1]).T if fortran else values.reshape(shape)


def _too_large(path: object, limit_bytes: int, what: str = "larger") -> OSError:
    return OSError(errno.EFBIG, f"{what} than the limit of {limit_bytes:,} bytes", str(path))
