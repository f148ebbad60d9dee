"""Data in pieces that load themselves where they are used, also row groups of Parquet: a shard travels as a few words."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from structpred.distributed.reading import Loaded, Reading, Shard, cuts_of, size_of
from structpred.errors import DataError, DependencyError, ParameterError, StructpredError
from structpred.io.multilabel.by_format import LABEL_FORMATS, Source
from structpred.io.text import PathLike, counted_from, source_name


@dataclass(frozen=True)
class FileShard(Shard):
    """The bytes start..stop of a file; stop None: the whole file, which may be packed."""

    path: str
    reading: Reading
    start: int
    stop: int | None
    size: int

    def load(self) -> Loaded:
        """What the file holds there."""
        return self.reading.read(self.path, self.start, self.stop)

    def __str__(self) -> str:
        """File and bytes."""
        return self.path if self.stop is None else f"{self.path}, bytes {self.start:,} to {self.stop:,}"


@dataclass(frozen=True)
class FunctionShard(Shard):
    """What a function without arguments returns."""

    function: Callable[[], Any]

    def load(self) -> Loaded:
        """Call the function."""
        return loaded(self.function(), str(self))

    def __str__(self) -> str:
        """The name of the function."""
        return f"function {getattr(self.function, '__qualname__', type(self.function).__qualname__)}"


@dataclass(frozen=True)
class DelayedShard(Shard):
    """What a dask Delayed object gives; it is computed where the shard is used, in one thread."""

    delayed: Any

    def load(self) -> Loaded:
        """Compute it: what a function returns, or the samples of a bag: (x, its y), perhaps with its weight and its tokens'."""
        found = self.delayed.compute(scheduler="synchronous")
        if isinstance(found, tuple) or not isinstance(found, Iterable):
            return loaded(found, str(self))
        samples = list(found)
        for i, sample in enumerate(samples):
            if not isinstance(sample, tuple | list) or len(sample) not in (2, 3, 4) or len(sample) != len(samples[0]):
                raise DataError(
                    f"{self}: sample {i}: expected a pair (x, its y), or (x, its y, its weight), or also the weights of its "
                    f"tokens, as in all, got {_kind_of(sample)}"
                )
        X, y, *weights = map(list, zip(*samples, strict=True)) if samples else ([], [])
        return Loaded(X, y, "", *weights)

    def __str__(self) -> str:
        """Its key."""
        return f"delayed {self.delayed.key}"


def loaded(found: Any, name: str) -> Loaded:
    """What a function of the user returned; DataError unless it is (X, y), perhaps with one or both kinds of weights."""
    if not isinstance(found, tuple | list) or len(found) not in (2, 3, 4):
        raise DataError(
            f"{name}: expected a pair (X, y), (X, y, sample_weight) or (X, y, sample_weight, token_weight), got {_kind_of(found)}"
        )
    X, y, *weights = found
    return Loaded(X, y, "", *weights)


def _kind_of(value: Any) -> str:
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, tuple | list) else type(value).__name__


class Shards(Sequence[Shard]):
    """The data in pieces, in order.

    The number of shards is part of a model that is trained on them: other cuts give other sums. Where they are loaded is not.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "train.txt"
    ...     _ = path.write_text("a DT\\nb NN\\n\\nc DT\\n\\nd NN\\n")
    ...     shards = Shards.of_file(path, 2)
    ...     [shard.load().y for shard in shards]
    [[['DT', 'NN']], [['DT'], ['NN']]]
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = tuple(shards)
        if not self._shards:
            raise ParameterError("shards: expected at least one, got none")

    def __len__(self) -> int:
        """The number of shards."""
        return len(self._shards)

    def __getitem__(self, k: Any) -> Any:
        """Shard k, or the Shards of a slice."""
        return Shards(self._shards[k]) if isinstance(k, slice) else self._shards[k]

    def __repr__(self) -> str:
        """How many there are, and the first."""
        return f"<{len(self)} shards, the first: {self._shards[0]}>"

    @classmethod
    def of_file(
        cls, path: PathLike, n: int, *, format: str = "columns", label_column: int = -1, n_columns: int | None = None,
        tabs: bool = False, encoding: str = "utf-8",
    ) -> "Shards":  # fmt: skip
        """n byte ranges of about the same size of a plain file, cut at blank lines.

        format: "columns", "conll2000", "crfsuite", or a treebank's ("conllu", ...), as the shell's. label_column: of "columns",
        from 0, or from the end. n_columns, tabs, encoding: as in `read_columns`.

        Raises ParameterError where a shard would be empty, for gzip files with n > 1, and for encodings that cannot be cut;
        DataError where there is no such file.
        """
        if format in LABEL_FORMATS:
            raise ParameterError(f"format: {format} files hold sets of labels: give this one to Shards.of_label_sets")
        reading = Reading.checked(format, label_column=label_column, n_columns=n_columns, tabs=tabs, encoding=encoding)
        return cls._cut(path, n, reading)

    @classmethod
    def of_label_sets(
        cls, path: PathLike, n: int, *, format: str, labels: str | None = None, hierarchy: str | None = None,
        label_names: Sequence[str] | None = None, n_features: int | None = None, zero_based: bool = False,
        encoding: str = "utf-8",
    ) -> "Shards":  # fmt: skip
        """n ranges of the lines of a plain file of examples with sets of labels; each is read with the header of the file.

        format: "arff", "libsvm", "clus" or "clus-dag"; "npz" is for n = 1. labels: of "arff", as for `of_files`. hierarchy: a
        file of the hierarchy of the labels, an edge a line. Only all lines of a LIBSVM file show which labels and features there
        are: for training give label_names, in their order, and n_features. zero_based: whether its features are counted from 0.

        Raises ParameterError and DataError as `of_file` does.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "train.svm"
        ...     _ = path.write_text("0 1:0.5\\n0,1 2:1\\n1 1:2\\n")
        ...     shards = Shards.of_label_sets(path, 2, format="libsvm", label_names=["0", "1"], n_features=2)
        ...     [shard.load().X.Y.tolist() for shard in shards]
        [[[1, 0], [1, 1]], [[0, 1]]]
        """
        if format not in LABEL_FORMATS:
            raise ParameterError(f"format: expected one of {', '.join(LABEL_FORMATS)}, got {format!r}")
        names = None if label_names is None else tuple(label_names)
        table = Source(format, labels, hierarchy, zero_based, encoding, names, n_features)
        return cls._cut(path, n, Reading.checked(format, encoding=encoding, table=table))

    @classmethod
    def _cut(cls, path: PathLike, n: int, reading: Reading) -> "Shards":
        """n byte ranges."""
        bounds, head = cuts_of(path, n, reading)
        name = source_name(path)
        if len(bounds) == 2:
            return cls([FileShard(name, reading, 0, None, bounds[-1])])
        return cls([FileShard(name, replace(reading, head=head), a, b, b - a) for a, b in pairwise(bounds)])

    @classmethod
    def of_files(
        cls, paths: Sequence[PathLike], *, format: str = "columns", label_column: int = -1, n_columns: int | None = None,
        tabs: bool = False, encoding: str = "utf-8", labels: str | None = None,
    ) -> "Shards":  # fmt: skip
        """One shard a file, gzip or plain.

        format: as for `of_file`, or "arff", "clus", "clus-dag" or "npz": examples with sets of labels; for prediction also
        "libsvm". labels: of "arff", a label XML, or how many of the last attributes are labels, as text; None: the XML next to
        each file. The other arguments are those of `of_file`. Raises DataError where a file is missing or empty.
        """
        if isinstance(paths, str | bytes | os.PathLike):
            raise ParameterError(f"paths: expected a list of files, got {paths!r}; Shards.of_file cuts a single one")
        table = Source(format, labels, encoding=encoding) if format in LABEL_FORMATS else None
        reading = Reading.checked(
            format, label_column=label_column, n_columns=n_columns, tabs=tabs, encoding=encoding, table=table
        )
        return cls([FileShard(source_name(path), reading, 0, None, size_of(path)) for path in paths])

    @classmethod
    def of_parquet(
        cls, path: PathLike, n: int | None = None, *, tokens: str | Sequence[str] = "tokens", labels: str = "labels",
        weights: str | None = None, token_weights: str | None = None,
    ) -> "Shards":  # fmt: skip
        """Row groups of a Parquet file, a row a sequence; needs pyarrow.

        n: how many shards, each of some row groups that follow each other; None: one a row group. tokens: the column that holds
        the list of each sequence; or several, which make rows of columns, as templates read them. labels: that of the labels.
        weights: that of the sample weights; None: all count alike. token_weights: that of the lists of the weights of tokens.

        Raises ParameterError for more shards than row groups, and columns that are not there; DependencyError without pyarrow.
        """
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
        made: list[Shard] = []
        for k in range(n):
            first, last = bounds[k], bounds[k + 1]
            if not (size := sum(sizes[first:last])):
                raise ParameterError(f"{name}: shard {k} of {n} would be empty: row groups {first} to {last - 1} have no rows")
            rows = not isinstance(tokens, str)
            made.append(ParquetShard(name, first, last, columns, labels, weights, token_weights, rows, size))
        return cls(made)

    @classmethod
    def of_functions(cls, functions: Sequence[Callable[[], Any]]) -> "Shards":
        """One shard for each function, which takes nothing and returns the same at each call: (X, y), (X, y, sample_weight), or
        (X, y, sample_weight, token_weight), as `fit` takes them; weights may be None. DataError where a later call differs.
        """
        for k, function in enumerate(functions):
            if not callable(function):
                raise ParameterError(f"functions: expected functions, got {type(function).__name__} as number {k}")
        return cls([FunctionShard(function) for function in functions])

    @classmethod
    def of_delayed(cls, delayed: Sequence[Any]) -> "Shards":
        """One shard for each dask Delayed object that gives a tuple (X, y), or a list of pairs (x, its y).

        So `bag.to_delayed()` will do, for a bag of pairs. Weights may follow, as in `of_functions`: (X, y, sample_weight), or
        (x, its y, its weight) of a bag.
        """
        for k, one in enumerate(delayed):
            if not hasattr(one, "compute") or not hasattr(one, "key"):
                raise ParameterError(f"delayed: expected dask Delayed objects, got {type(one).__name__} as number {k}")
        return cls([DelayedShard(one) for one in delayed])


@contextmanager
def about_shard(k: int, shard: Shard) -> Iterator[None]:
    """Errors of ours say which shard they are about; lines are counted from its first byte."""
    try:
        # examples with sets of labels do not know their lines, and their reader says what is wrong with these
        lines = isinstance(shard, FileShard) and shard.reading.table is None and counted_from(shard.path, shard.start)
        with lines or nullcontext():
            yield
    except StructpredError as error:
        raise in_shard(error, k, shard) from error


def in_shard(error: StructpredError, k: int, shard: Shard) -> StructpredError:
    """The error with its shard. What code of a user's own raised stays behind: it may not go from one process to another."""
    error.__cause__ = error.__context__ = None
    return type(error)(f"shard {k} ({shard}): {error}")


@dataclass(frozen=True)
class ParquetShard(Shard):
    """The row groups first..last - 1 of a file. tokens: the columns of the tokens; one: X holds what it holds. weights: that of
    the sample weights, where there is one; token_weights: the same for tokens. size: of the row groups, packed.
    """

    path: str
    first: int
    last: int
    tokens: tuple[str, ...]
    labels: str
    weights: str | None
    token_weights: str | None
    rows: bool
    size: int

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

    def __str__(self) -> str:
        """File and row groups."""
        return f"{self.path}, row groups {self.first} to {self.last - 1}"


def _opened(path: str) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise DependencyError(f"Parquet files need pyarrow, which cannot be imported: {error}; pip install pyarrow") from error
    try:
        return ParquetFile(path)
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise DataError(f"{path}: cannot be read as Parquet: {error}") from None
