"""What `--shards` does for structures of a user's own: each worker calls the reader, and keeps its part of the instances."""

import os
from dataclasses import dataclass

import click

from structpred.cli.structures.data import read
from structpred.distributed import Shards
from structpred.distributed.reading import Loaded, Shard
from structpred.errors import ClusterError, DataError


@dataclass(frozen=True)
class ReadShard(Shard):
    """Part k of n of what a reader gives for a file. reader: MODULE:FUNCTION. labelled: whether labels are needed."""

    reader: str
    path: str
    k: int
    n: int
    labelled: bool

    def load(self) -> Loaded:
        """Call the reader. Raises ClusterError where it is not, DataError where it fails."""
        try:
            X, y = read(self.reader, self.path, labelled=self.labelled)
        except click.UsageError as error:  # the shell found it
            raise ClusterError(
                f"--reader {self.reader}, on this worker: {error.format_message()}; code of yours must be installed there, or on "
                "its PYTHONPATH"
            ) from None
        if len(X) < self.n:
            raise DataError(f"{self.path}: {len(X)} instances do not make {self.n} shards; ask for fewer")
        part = slice(self.k * len(X) // self.n, (self.k + 1) * len(X) // self.n)
        return Loaded(X[part], None if y is None else y[part])

    def __str__(self) -> str:
        """File and part."""
        return f"{self.path}, part {self.k + 1} of {self.n}"


def shards_of(path: str, n: int, reader: str, *, labelled: bool) -> Shards:
    """n parts of a file with about as many instances each."""
    return Shards([ReadShard(reader, os.path.abspath(path), k, n, labelled) for k in range(n)])
