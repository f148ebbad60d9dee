"""The formats of treebanks by name, and treebanks in pieces that workers read."""

import os
from typing import TYPE_CHECKING

from structpred.errors import ParameterError
from structpred.io.treebanks.formats import TREEBANK_FORMATS, TreebankFormat
from structpred.io.treebanks.reader import stream_treebank

if TYPE_CHECKING:
    from structpred.distributed import Shards


def treebank_format(name: str | None) -> TreebankFormat | None:
    """The treebank format of that name. None means: detect it from the lines. Raises ParameterError for other formats."""
    if name is not None and name not in TREEBANK_FORMATS:
        raise ParameterError(f"a parser reads treebanks: --format must be {', '.join(TREEBANK_FORMATS)}, not {name}")
    return None if name is None else TREEBANK_FORMATS[name]


def shards_of(path: str, n: int, format: str | None, encoding: str) -> tuple["Shards", str]:
    """n byte ranges of a treebank, and its format, which is what the first lines show where none is given."""
    from structpred.distributed import Shards

    first = next(stream_treebank(path, treebank_format(format), batch_size=1, check_trees=False, encoding=encoding))
    name = first.format.name
    return Shards.of_file(os.path.abspath(path), n, format=name, encoding=encoding), name
