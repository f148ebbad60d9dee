"""The rules of treebank files: every problem of a file at once, each with its line."""

from typing import NamedTuple

ERROR, WARNING = "error", "warning"


class Problem(NamedTuple):
    """One problem of a treebank file.

    line: from 1; 0 where the whole file is meant. sentence: its number in the file, from 1; 0 outside sentences.
    severity: "error" (the sentence cannot be used) or "warning". kind: one word for problems of the same sort.
    """

    path: str
    line: int
    sentence: int
    severity: str
    kind: str
    message: str

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.message}"
