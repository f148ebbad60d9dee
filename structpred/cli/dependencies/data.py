"""Treebanks in the shell: read by the name of their format, whole or in pieces that workers read."""

import os
from typing import TYPE_CHECKING, Any

from structpred.cli.options import Reading
from structpred.errors import ParameterError
from structpred.io.treebanks.formats import TREEBANK_FORMATS, TreebankFormat
from structpred.io.treebanks.reader import read_treebank, stream_treebank
from structpred.io.treebanks.treebank import Treebank

if TYPE_CHECKING:
    from structpred.distributed import Shards


def treebank_format(name: str | None) -> TreebankFormat | None:
    """The treebank format of that name. None means: detect it from the lines. Raises ParameterError for other formats."""
    if name is not None and name not in TREEBANK_FORMATS:
        raise ParameterError(f"a parser reads treebanks: --format must be {', '.join(TREEBANK_FORMATS)}, not {name}")
    return None if name is None else TREEBANK_FORMATS[name]


def read(path: str, reading: Reading, **checks: Any) -> Treebank:
    """The whole treebank; checks: what it may lack, as for `read_treebank`."""
    format = treebank_format(reading.format)
    return read_treebank(path, format, on_error=reading.on_error, encoding=reading.encoding, **checks)


def shards_of(path: str, n: int, reading: Reading) -> tuple["Shards", str]:
    """n byte ranges of a treebank, and its format, which is what the first lines show where none is given."""
    from structpred.distributed import Shards

    format, encoding = treebank_format(reading.format), reading.encoding
    name = next(stream_treebank(path, format, batch_size=1, check_trees=False, encoding=encoding)).format.name
    return Shards.of_file(os.path.abspath(path), n, format=name, encoding=encoding), name
