"""What `--shards` does for sequence labellers: a look at the first lines, and a file in pieces that workers read."""

import os
from typing import TYPE_CHECKING

from structpred.cli.kinds.kind import Predicting
from structpred.cli.sequences.data import Data, Reader, parse_data, refuse_running_text
from structpred.cli.sequences.results import reader_for
from structpred.errors import ParameterError
from structpred.models import ChainLabeler

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


def shards_to_label(model: ChainLabeler, asked: Predicting, n: int) -> "Shards":
    """Those of `structpred predict`; there may be no labels."""
    if asked.own["folds"] is not None:
        raise ParameterError("--folds is for OCR data, which --shards does not cut")
    reader = reader_for(model, asked)
    if reader.format == "ocr":
        raise ParameterError("--shards is for column files and CRFsuite text, not for pixels")
    head = head_of(asked.data, reader, asked.reading.encoding)
    refuse_running_text(head, [str(label) for label in model.classes_.tolist()])
    width = getattr(head.corpus, "n_columns", None)
    return shards_of(asked.data, n, Reader(reader.format, None, width), asked.reading.encoding)
