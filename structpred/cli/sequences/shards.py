"""What `--shards` does for sequence labellers: a look at the first lines, and a file in pieces that workers read."""

import os
from typing import TYPE_CHECKING

from structpred.cli.sequences.data import Data, Reader, parse_data

if TYPE_CHECKING:
    from structpred.distributed import Shards


def head_of(path: str, reader: Reader, encoding: str) -> Data:
    """The first sentences of a file. Raises DataError and ParameterError as for the whole."""
    from structpred.distributed.cutting import read_head

    return parse_data(read_head(path, encoding), path, reader)


def shards_of(path: str, n: int, reader: Reader, encoding: str) -> "Shards":
    """n byte ranges of a file, each read as the reader says."""
    from structpred.distributed import Shards

    format = "columns" if reader.n_columns is not None else reader.format
    column = -1 if reader.label_column is None else reader.label_column
    return Shards.of_file(
        os.path.abspath(path), n, format=format, label_column=column, n_columns=reader.n_columns, encoding=encoding
    )
