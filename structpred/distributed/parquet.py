"""Shards that are row groups of a Parquet file."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from structpred.distributed.reading import Loaded, Shard
from structpred.errors import DataError, DependencyError, ParameterError
from structpred.io.text import PathLike, source_name


@dataclass(frozen=True)
class ParquetShard(Shard):
    """The row groups first..last - 1 of a file. tokens: the columns of the tokens; one: X holds what it holds. weights: that of
    the sample weights, where there is one; token_weights: the same for tokens.
    """

    path: str
    first: int
    last: int
    tokens: tuple[str, ...]
    labels: str
    weights: str | None
    token_weights: str | None
    rows: bool
    bytes: int

    def load(self) -> Loaded:
        """Sequences of tokens, or of rows of columns, and their labels."""
        groups, given = list(range(self.first, self.last)), (self.weights, self.token_weights)
        with _opened(self.path) as file:
            table = file.read_row_groups(groups, columns=[*self.tokens, self.labels, *filter(None, given)])
        *columns, y = (self._lists(table, name) for name in (*self.tokens, self.labels))
        X = [self._rows(i, lists) for i, lists in enumerate(zip(*columns, strict=True))] if self.rows else columns[0]
        weights = [None if name is None else table.column(name).to_pylist() for name in given]
        return Loaded(X, y, hashlib.sha256(repr((groups, X, y, weights)).encode()).hexdigest(), *weights)

    def _lists(self, table: Any, name: str) -> list[list[Any]]:
        found: list[list[Any]] = table.column(name).to_pylist()
        for i, value in enumerate(found):
            if not isinstance(value, list):
                raise DataError(f"{self}: row {i}: expected a list in column {name!r}, got {type(value).__name__}")
        return found

    def _rows(self, i: int, lists: Sequence[list[Any]]) -> list[tuple[Any, ...]]:
        if len({len(values) for values in lists}) > 1:
            raise DataError(
                f"{self}: row {i}: expected lists of one length in {', '.join(self.tokens)}, got {[*map(len, lists)]}"
            )
        return list(zip(*lists, strict=True))

    @property
    def size(self) -> int:
        """Bytes of the row groups, packed."""
        return self.bytes

    def __str__(self) -> str:
        """File and row groups."""
        return f"{self.path}, row groups {self.first} to {self.last - 1}"


def parquet_shards(
    path: PathLike, n: int | None, tokens: str | Sequence[str], labels: str, weights: str | None, token_weights: str | None
) -> list[ParquetShard]:
    """See `Shards.of_parquet`."""
    name, columns = source_name(path), (tokens,) if isinstance(tokens, str) else tuple(tokens)
    with _opened(name) as file:
        known, meta = file.schema_arrow.names, file.metadata
        for column in (*columns, labels, *filter(None, (weights, token_weights))):
            if column not in known:
                raise ParameterError(f"{name}: there is no column {column!r}; the file has {', '.join(known)}")
        sizes = [meta.row_group(k).total_byte_size if meta.row_group(k).num_rows else 0 for k in range(meta.num_row_groups)]
    n = len(sizes) if n is None else n
    if not 1 <= n <= len(sizes):
        raise ParameterError(f"{name}: expected 1 to {len(sizes)} shards, one a row group at most, got n={n}")
    bounds = [k * len(sizes) // n for k in range(n + 1)]
    made = []
    for k in range(n):
        first, last = bounds[k], bounds[k + 1]
        if not (size := sum(sizes[first:last])):
            raise ParameterError(f"{name}: shard {k} of {n} would be empty: row groups {first} to {last - 1} have no rows")
        rows = not isinstance(tokens, str)
        made.append(ParquetShard(name, first, last, columns, labels, weights, token_weights, rows, size))
    return made


def _opened(path: str) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise DependencyError(f"Parquet files need pyarrow, which cannot be imported: {error}; pip install pyarrow") from error
    try:
        return ParquetFile(path)
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise DataError(f"{path}: cannot be read as Parquet: {error}") from None
