"""Text of files and of standard input: lines, ranges of bytes, and errors that name the file and the line; labels as lines."""

import codecs
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from structpred.errors import DataError, ParameterError, StructpredError
from structpred.io.opening import PathLike as PathLike
from structpred.io.opening import Source, open_bytes, opened_file

_SPLIT = 1 << 20


def split_lines(text: str) -> Iterator[str]:
    """The lines of a text: split at ``\\n`` only, less one trailing ``\\r`` each; a last ``\\n`` opens no further line.

    Other characters that Unicode calls line breaks belong to the line (they do occur inside word forms). Not all lines are in
    memory at once: short ones would take many times what the text does.

    >>> list(split_lines("a\\r\\nb\\u2028c\\n"))
    ['a', 'b\\u2028c']
    """
    start = 0
    while start < len(text):
        end = text.find("\n", start + _SPLIT)
        end = len(text) if end < 0 else end + 1
        for line in text[start:end].removesuffix("\n").split("\n"):
            yield line.removesuffix("\r")
        start = end


def numbered_pieces(text: str, size: int) -> Iterator[tuple[int, str]]:
    """Pieces of whole lines, of `size` characters or a few more, without their last line end; each with its first line's number.

    >>> list(numbered_pieces("a\\nb\\n\\nc", 2))
    [(1, 'a\\nb'), (3, '\\nc')]
    """
    start, number = 0, 1
    while start < len(text):
        stop = text.find("\n", start + size)
        stop = len(text) if stop < 0 else stop
        piece = text[start:stop]
        yield number, piece
        number += piece.count("\n") + 1
        start = stop + 1


def first_error(lines: Iterable[tuple[int, str]], problem_of: Callable[[str], str | None], name: str) -> DataError:
    """The slow way through numbered lines of which one is known to be bad, to name it. problem_of: None for a good line."""
    found = ((number, problem) for number, line in lines if (problem := problem_of(line)) is not None)
    return next((DataError(f"{name}:{number}: {problem}") for number, problem in found), DataError(f"{name}: cannot be read"))


def quoted(line: str, limit: int = 60) -> str:
    """A line as a message shows it: quoted, cut to ``limit`` characters.

    >>> quoted("word  NN"), quoted("x" * 99, limit=3)
    ("'word  NN'", "'xxx...'")
    """
    return repr(line if len(line) <= limit else line[:limit] + "...")


#: a longer line is not a line of any format that is read here, and would take much memory to be taken apart
LONGEST_LINE = 16 << 20
#: what to do about bytes that are not UTF-8
ENCODING_HINT = "name the encoding if it is another one: --encoding latin-1, or encoding='latin-1' in Python"


def source_name(path: PathLike) -> str:
    """The name of a source in messages: the path as given, or ``<stdin>`` for ``-``.

    >>> source_name("-"), source_name("train.conll")
    ('<stdin>', 'train.conll')
    """
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"expected a path (str or pathlib.Path) or '-', got {type(path).__name__}")
    name = os.fspath(path)
    if not isinstance(name, str):
        raise ParameterError(f"expected a path of type str, got {type(name).__name__}")
    return "<stdin>" if name == "-" else name


def stream_name(source: Source) -> str:
    """The name of a source in messages, also of an open file: its own, if it has one.

    Raises ParameterError for what is neither a path nor an open file.
    """
    if isinstance(source, str | os.PathLike):
        return source_name(source)
    if not hasattr(source, "read"):
        raise ParameterError(f"expected a path, '-' or an open binary file, got {type(source).__name__}")
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def read_text(path: Source, encoding: str = "utf-8") -> str:
    """The whole text of a file; ``-`` is standard input, gzip is unpacked, a byte order mark is removed.

    path: or an open binary file. Line ends are left as they are.

    Raises DataError, naming the file and where possible the line: a missing or unreadable file,
    a folder, damaged gzip data or such that unpack to too much, bytes that are not in the encoding, NUL bytes, a line of more
    than 16 MiB. Raises ParameterError for an encoding that Python does not know.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.txt"
    ...     _ = path.write_bytes(b"caf\\xe9 NN\\n")
    ...     read_text(path, "latin-1")
    'café NN\\n'
    """
    return decoded(read_bytes(path, encoding), stream_name(path))


def decoded(data: bytes, name: str) -> str:
    """The text of bytes that were read already; raises as `read_text` does."""
    check_lines(data, name)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"got the byte 0x{data[error.start]:02x} ({error.reason})"
        hint = "this is no text file" if b"\0" in data else ENCODING_HINT
        hint = "it looks like UTF-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else hint
        raise DataError(f"{name}:{line}: expected UTF-8 text, {byte}; {hint}") from None
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise DataError(f"{name}:{line}: expected text, got a NUL byte; the file is binary, damaged, or UTF-16")
    return text


def read_bytes(path: Source, encoding: str = "utf-8") -> bytes:
    """The bytes of a text file, as `read_text` decodes them: gzip unpacked, in UTF-8, a byte order mark removed.

    Raises DataError, naming the file: missing, unreadable, a folder, damaged gzip data or such that unpack to too much;
    ParameterError for what is neither a path nor an open file.
    """
    with open_bytes(path, stream_name(path), encoding) as stream:
        return stream.read().removeprefix(codecs.BOM_UTF8)


class HeldBytes(io.BytesIO):
    """Bytes under the name of the file that they come from."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


def check_lines(data: bytes, name: str, longest: int = LONGEST_LINE) -> None:
    """Raise DataError, naming the line, where one has more than `longest` bytes."""
    start = 0
    while start + longest < len(data):
        end = data.rfind(b"\n", start, start + longest + 1)
        if end < 0:
            number = data.count(b"\n", 0, start) + 1
            raise DataError(f"{name}:{number}: expected lines of at most {longest >> 20} MiB, got a longer one; other format?")
        start = end + 1


#: (a number of lines, the bytes that they must have on average)
_MANY_LINES, _SHORT_LINES = 1 << 16, 5


def check_mean(data: bytes, where: str) -> None:
    """Raise DataError for very many lines of one or two letters: what is kept of a line is many times as long as these are."""
    n = data.count(b"\n")
    if n > _MANY_LINES and _SHORT_LINES * n > len(data):
        mean = f"{n:,} of {len(data) / n:.1f}; are most of them blank?"
        raise DataError(f"{where}: expected lines of {_SHORT_LINES} bytes or more on average, got {mean}")


def read_range(path: PathLike, start: int = 0, stop: int | None = None) -> bytes:
    """The bytes start..stop of a file as they are; stop None: to its end.

    Raises DataError, naming the file: missing, unreadable, a folder, shorter than `stop`. ParameterError for numbers that are no
    range, and for standard input.
    """
    name = source_name(path)
    if name == "<stdin>":
        raise ParameterError("start, stop: standard input has no byte ranges")
    if start < 0 or (stop is not None and stop < start):
        raise ParameterError(f"start, stop: expected 0 <= start <= stop, got {start:,} and {stop}")
    with opened_file(path, name) as file:
        size = os.fstat(file.fileno()).st_size
        if max(start, stop or 0) > size:
            raise DataError(f"{name}: expected at least {max(start, stop or 0):,} bytes, got {size:,}; was the file changed?")
        file.seek(start)
        return file.read(-1 if stop is None else stop - start)


@contextmanager
def counted_from(name: str, start: int, head: int = 0) -> Iterator[None]:
    """Line numbers of errors are counted from byte `start` of the file, and say so. head: lines of a header in front of these.

    >>> with counted_from("train.txt", 1048576):
    ...     raise DataError("train.txt:17: expected 3 columns")
    Traceback (most recent call last):
    structpred.errors.DataError: train.txt: byte 1,048,576 + line 17: expected 3 columns
    """
    try:
        yield
    except StructpredError as error:
        found = re.compile(re.escape(name) + r":(\d+)(?=: )").search(str(error)) if start else None
        if found is None or int(found[1]) <= head:
            raise
        message, line = str(error), int(found[1]) - head
        placed = f"{message[: found.start()]}{name}: byte {start:,} + line {line}{message[found.end() :]}"
        raise type(error)(placed) from error


def label_lines(sequences: Iterable[Iterable[object]]) -> str:
    """One label a line, a blank line between sequences: what CRFsuite prints.

    >>> label_lines([["DT", "NN"], ["RB"]])
    'DT\\nNN\\n\\nRB\\n'
    """
    return "\n".join("".join(f"{label}\n" for label in labels) for labels in sequences)


def label_sets(rows: Iterable[Iterable[int]], names: Sequence[str]) -> str:
    """A line for each example: the names of the labels that are on, separated by tabs.

    >>> label_sets([[1, 0, 1], [0, 0, 0]], ["red", "green", "blue"])
    'red\\tblue\\n\\n'
    """
    return "".join("\t".join(name for name, on in zip(names, row, strict=True) if on) + "\n" for row in rows)


def label_rows(instances: Iterable[Iterable[object]]) -> str:
    """A line for each instance: its labels, separated by spaces.

    >>> label_rows([[0, 2], [1]])
    '0 2\\n1\\n'
    """
    return "".join(f"{' '.join(map(str, labels))}\n" for labels in instances)
