"""The store of a run: a folder that the client and all workers see. It holds what must outlive a worker.

Every file is written aside and renamed, and every byte is checked when it is read. A file that is written twice gets the same
bytes, so that it does not matter which of two workers was last.
"""

import contextlib
import hashlib
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from structpred.core.types import Floats
from structpred.errors import CheckpointError, ClusterError
from structpred.storage.atomic import storage_error, write_atomic
from structpred.storage.bundles import Bundle, read_bundle, write_bundle
from structpred.storage.locks import exclusive
from structpred.trainers.shards.rounds import Common
from structpred.trainers.states import Arrays

#: bytes that this process has read from stores and written to them
TRAFFIC: Counter[str] = Counter()


class Store:
    """The files of one run.

    `common.t` is what all shards know before round t, `state.k.t` what shard k keeps for itself, written where t is a multiple of
    `every`. The last two states of a shard stay, and `common` of every + 1 rounds: what leads from a state to the present round.
    `rows.k` says which weights occur in shard k, `whole` which occur in any, `holders` in how many. `weights.n` are those that
    the client asks about, `sum.n.j.start` what shards said of vector j, from weight `start` on; both are for the moment.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def write(self, name: str, arrays: Arrays) -> None:
        """Write the arrays as one file."""
        path = self.folder / name
        write_bundle(path, Bundle({}, arrays), kind="checkpoint")
        TRAFFIC["written"] += path.stat().st_size

    def read(self, name: str) -> Arrays:
        """The arrays of a file; CheckpointError where it is damaged or not there."""
        path = self.folder / name
        arrays = read_bundle(path, kind="checkpoint").arrays
        TRAFFIC["read"] += path.stat().st_size
        return arrays

    def remove(self, *names: str) -> None:
        """Remove files; those that are not there are no error."""
        for name in names:
            (self.folder / name).unlink(missing_ok=True)

    def write_common(self, name: str, common: Common) -> str:
        """Write what all shards know; returns its digest."""
        self.write(name, _arrays_of(common))
        return digest_of_common(common)

    def read_common(self, name: str) -> Common:
        """The inverse of write_common."""
        arrays = self.read(name)
        return Common(tuple(arrays[key] for key in sorted(arrays) if key != "numbers"), arrays["numbers"])

    def read_sum(self, name: str, ends: Sequence[int]) -> Floats:
        """The sum of this name, which was written in slices that end there. Errors as those of read."""
        return np.concatenate([self.read(f"sum.{name}.{start}")["vector"] for start in [0, *ends[:-1]]])

    def write_object(self, value: Any) -> str:
        """Write a Python object as a file that is called by its digest, which is returned."""
        from distributed.protocol.pickle import dumps

        data = dumps(value)
        digest = hashlib.sha256(data).hexdigest()
        write_atomic(self.folder / f"spec.{digest}", data)
        return digest


@lru_cache(maxsize=2)  # it may hold vectors of words
def read_object(folder: str, digest: str) -> Any:
    """The object of a digest, read once a process. Only bytes of that digest, which the client sent, are unpickled."""
    path = Path(folder) / f"spec.{digest}"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ClusterError(f"{path}: this worker cannot read the store: {error.strerror or error}") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise CheckpointError(f"{path}: the file was changed after the run began; start the run again")
    return unpacked(data)


def unpacked(data: bytes) -> Any:
    """What another process pickled. ClusterError where its modules have what those of this one lack."""
    from distributed.protocol.pickle import loads

    try:
        return loads(data)
    except AttributeError as error:
        raise ClusterError(
            f"a worker has another version of code of yours, which must be the same everywhere: {error}"
        ) from error


@lru_cache(maxsize=1)
def read_once(folder: str, name: str) -> Floats:
    """A vector of a name that is never used again, read once a process, for all of its shards."""
    return Store(folder).read(name)["vector"]


def digest_of_common(common: Common) -> str:
    """SHA-256 of names, types, shapes and bytes."""
    found = hashlib.sha256()
    for name, array in sorted(_arrays_of(common).items()):
        found.update(f"{name} {array.dtype} {array.shape};".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _arrays_of(common: Common) -> Arrays:
    return {**{f"vector{j:02}": vector for j, vector in enumerate(common.vectors)}, "numbers": common.numbers}


@contextlib.contextmanager
def run_folder(place: Path, resume: bool, keep: bool) -> Iterator[Path]:
    """The folder of a run within the store `place`: a new one, or the one that a resumed run wrote to. keep: also afterwards.

    A run that fails before it has closed a round leaves nothing: resume needs nothing of what it wrote, and `place` goes where
    it was made for it. The name of the folder is drawn: a task of an earlier run, that a lost worker still works on, cannot
    touch it. ClusterError where another run uses the store; StorageError where it cannot be written.
    """
    made = not place.exists()
    try:
        with _locked(place), _run_in(place, resume, keep) as folder:
            yield folder
    except BaseException:
        if made:
            with contextlib.suppress(OSError):  # what is kept is in it
                place.rmdir()
        raise


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            place.mkdir(parents=True, exist_ok=True)
            stack.enter_context(exclusive(place / "run.lock"))
        except BlockingIOError as error:
            raise ClusterError(f"{place}: another run uses this store; wait until it ends, or give each run its own") from error
        except OSError as error:
            raise storage_error(place, error) from error
        yield


@contextlib.contextmanager
def _run_in(place: Path, resume: bool, keep: bool) -> Iterator[Path]:
    current = place / "run"
    folder = place / current.read_text() if current.exists() else place / "none"
    if not (resume and folder.is_dir()):
        _clear(place)
        folder = place / f"run-{secrets.token_hex(4)}"
        folder.mkdir()
        write_atomic(current, folder.name.encode())
    try:
        yield folder
    except BaseException:
        # whether a round was closed, in any stage: `common.0` is there before the first
        keep = keep and any(file.name != "common.0" for file in folder.rglob("common.*"))
        raise
    finally:
        if not keep:
            _clear(place)


def _clear(place: Path) -> None:
    (place / "run").unlink(missing_ok=True)
    for old in place.glob("run-????????"):
        shutil.rmtree(old, ignore_errors=True)
