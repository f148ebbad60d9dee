"""Lines of a text that is in memory. Exported programs carry this file (`export/programs.py`)."""

from collections.abc import Callable, Iterable, Iterator

from structpred.errors import DataError

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
