"""Which part files are complete: a line for each in a file beside them, so that a run that was stopped does only the rest."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import structpred
from structpred.errors import ParameterError
from structpred.storage.atomic import exclusive


class Part(NamedTuple):
    """A part file that is complete: how many samples it is about, what its file system says of it, and what it cost."""

    samples: int
    bytes: int
    mtime_ns: int
    cpu_seconds: float

    def is_there(self, path: str) -> bool:
        """Whether the file is as it was written."""
        with suppress(OSError):
            found = os.stat(path)
            return (found.st_size, found.st_mtime_ns) == (self.bytes, self.mtime_ns)
        return False


class Journal:
    """The complete parts by the digest of what made them: model, shard, version; a file that is as it was then is kept."""

    def __init__(self, path: Path, parts: dict[str, Part]) -> None:
        self.path, self.parts = path, parts

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[Self]:
        """The journal of a run, with what an earlier run left there. ParameterError while another run writes these parts."""
        try:
            with exclusive(path.with_name(f"{path.name}.lock")):
                yield cls(path, dict(_lines(path)))
        except BlockingIOError:
            raise ParameterError(
                f"{path.parent}: another run writes these parts; wait until it ends, or give another output"
            ) from None

    def add(self, key: str, part: Part) -> None:
        """Keep a part that is complete."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps([key, *part]) + "\n")

    def close(self) -> None:
        """All parts are complete: the next run is a new one."""
        self.path.unlink(missing_ok=True)


def _lines(path: Path) -> Iterator[tuple[str, Part]]:
    """The lines that are whole: a kill may have cut the last one."""
    with suppress(FileNotFoundError):
        for line in path.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, TypeError):
                key, *numbers = json.loads(line)
                yield key, Part(*numbers)


def key_of(digest: str, shard: Any) -> str:
    """A digest of model file, shard, size and time of its data file, and version of this package."""
    import cloudpickle

    found = hashlib.sha256(f"{structpred.__version__} {digest} ".encode())
    found.update(cloudpickle.dumps(shard))
    if (path := getattr(shard, "path", None)) is not None:
        status = os.stat(path)
        found.update(f" {status.st_size} {status.st_mtime_ns}".encode())
    return found.hexdigest()
