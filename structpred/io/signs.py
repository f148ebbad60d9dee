"""Files of signs: which weights must not be negative (+) and which must not be positive (-), a pattern of names a line."""

import os
from collections.abc import Mapping

from structpred.errors import DataError
from structpred.io.text import read_text, source_name, split_lines

_SIGNS: Mapping[str, int] = {"+": 1, "+1": 1, "-": -1, "-1": -1}


class SignPattern(str):
    """A pattern that knows where it was read, for messages."""

    where: str = ""


def read_signs(path: str | os.PathLike[str], encoding: str = "utf-8") -> dict[str, int]:
    """The signs of a file, as estimators take them: {pattern: 1 or -1}.

    A line is a pattern, white space, and + or -. Patterns may contain spaces; * stands for any text. Empty lines, and lines that
    begin with "# ", are left out. Raises DataError, naming the line, for anything else, for a pattern that comes twice, and for a
    file without patterns.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "signs.txt"
    ...     _ = path.write_text("# what a title says\\nword=Mr -> * +\\ntransition B -> I -\\n")
    ...     read_signs(path)
    {'word=Mr -> *': 1, 'transition B -> I': -1}
    """
    name = source_name(path)
    found: dict[str, int] = {}
    for number, line in enumerate(split_lines(read_text(path, encoding)), start=1):
        text = line.strip()
        if not text or text == "#" or text.startswith("# "):
            continue
        where = f"{name}:{number}"
        fields = text.rsplit(maxsplit=1)
        if len(fields) != 2 or fields[1] not in _SIGNS:
            raise DataError(f"{where}: expected the name of a weight or a pattern, a space, and + or -, got {text[:80]!r}")
        pattern = SignPattern(fields[0])
        pattern.where = where
        if pattern in found:
            first = next(key.where for key in found if key == pattern and isinstance(key, SignPattern))
            raise DataError(f"{where}: duplicate pattern {pattern!r}, first given at {first}")
        found[pattern] = _SIGNS[fields[1]]
    if not found:
        raise DataError(f"{name}: expected at least one line such as 'word=Mr -> PERSON +', got none")
    return found
