"""Column files: one token per line, white space between columns, a blank line between sentences (CoNLL-2000 and similar)."""

from structpred.errors import ParameterError
from structpred.io.column_text import (
    MOST_COLUMNS,
    ColumnCorpus,
    field_count,
    fields_of_lines,
    format_columns,
    parse_columns,
)  # fmt: skip
from structpred.io.ranges import counted_from, read_range
from structpred.io.text import PathLike, decoded, plain_bytes, read_text, source_name

__all__ = ["MOST_COLUMNS", "ColumnCorpus", "field_count", "fields_of_lines", "format_columns", "parse_columns", "read_columns"]


def read_columns(
    path: PathLike, n_columns: int | None = None, name: str | None = None, *, tabs: bool = False, encoding: str = "utf-8",
    start: int = 0, stop: int | None = None,
) -> ColumnCorpus:  # fmt: skip
    """Read a column file: every non-blank line is one token, blank lines (or white space alone) separate sentences.

    Columns are separated by spaces and tabs; with ``tabs=True`` by single tabs only, so that a column may hold spaces.
    n_columns is what every line must have; None takes it from the first token line. name stands for the path in
    messages. encoding: of the file, by Python's name for it. Nothing is skipped: comment lines and ``-DOCSTART-`` lines are
    tokens as any other. start, stop: the bytes of a plain file to read alone, from the start of a line to the end of one; lines
    are then counted from there.

    Raises DataError with file and line: a line with more or fewer columns, an empty column (tabs=True), no token at
    all, and what `read_text` raises.
    """
    if n_columns is not None and n_columns < 1:
        raise ParameterError(f"n_columns must be at least 1, got {n_columns}")
    called = source_name(path) if name is None else name
    if not start and stop is None:
        return parse_columns(read_text(path, encoding), called, n_columns, tabs=tabs)
    with counted_from(called, start):
        text = decoded(plain_bytes(read_range(path, start, stop), called, encoding), called)
        return parse_columns(text, called, n_columns, tabs=tabs)
