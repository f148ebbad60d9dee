"""What `--shards` does for parsers: a look at the first sentence, and a treebank in pieces that workers read."""

import os
from typing import TYPE_CHECKING

from structpred.cli.dependencies.parsing import treebank_format
from structpred.cli.kinds.kind import Predicting
from structpred.errors import ParameterError
from structpred.io.treebanks.reader import stream_treebank

if TYPE_CHECKING:
    from structpred.distributed import Shards


def shards_of(path: str, n: int, format: str | None, encoding: str) -> tuple["Shards", str]:
    """n byte ranges of a treebank, and its format, which is what the first lines show where none is given."""
    from structpred.distributed import Shards

    first = next(stream_treebank(path, treebank_format(format), batch_size=1, check_trees=False, encoding=encoding))
    name = first.format.name
    return Shards.of_file(os.path.abspath(path), n, format=name, encoding=encoding), name


def shards_to_parse(asked: Predicting, n: int) -> "Shards":
    """Those of `structpred predict`. Raises ParameterError for trees of another kind than in training."""
    if asked.own["projective"] is not None or asked.own["multi_root"]:
        raise ParameterError("--shards parses as the model was trained: leave --projective and --multi-root out")
    return shards_of(asked.data, n, asked.reading.format, asked.reading.encoding)[0]
