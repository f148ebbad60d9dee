"""Checkpoints: the state of a run as it is, written atomically by one run at a time; the one before is kept."""

import contextlib
import errno
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from structpred.core.result import Record
from structpred.errors import CheckpointError, CheckpointWarning
from structpred.runtime.standard_error import callers_level
from structpred.storage import schema
from structpred.storage.atomic import check_target, storage_error
from structpred.storage.bundles import Bundle, read_bundle, remove_leftovers, write_bundle
from structpred.storage.locks import exclusive

Array = Any  # an array of any type


@dataclass
class Progress:
    """All that the loop needs besides the trainer's state. arrays: the state, flattened, and the order of this pass.

    position counts the items of the present pass that are done; rng is the generator's state after the order was drawn.
    """

    arrays: dict[str, Array]
    order: Array
    passes: int
    position: int
    changed: bool
    oracle_calls: int
    seconds: float
    cpu_seconds: float
    best_dev: float | None
    best_weights: Array
    stale: int
    history: list[Record]
    rng: dict[str, Any]
    fingerprint: str


@dataclass(frozen=True)
class _Digits:
    """A whole number below `limit` as text: the generator's state holds 128-bit numbers, which not every JSON reader keeps."""

    limit: int

    def read(self, value: Any, where: str) -> int:
        """The number."""
        if type(value) is str and re.fullmatch("[0-9]{1,39}", value) and int(value) < self.limit:
            return int(value)
        raise ValueError(f"{where}: expected a number below {self.limit} as text")


_COUNT = schema.Whole(0, 2**53 - 1)
_NUMBER = schema.Number()
_NUMBER_OR_NONE = schema.maybe(_NUMBER)
#: a row of the history
_ROW = schema.Record({
    "passes": _COUNT, "seconds": _NUMBER, "cpu_seconds": _NUMBER, "oracle_calls": _COUNT,
    "primal": _NUMBER_OR_NONE, "dual": _NUMBER_OR_NONE, "gap": _NUMBER_OR_NONE, "dev_score": _NUMBER_OR_NONE,
})  # fmt: skip
_PCG64 = schema.OneOf(("PCG64",))
_NUMBERS = schema.Record({"state": _Digits(2**128), "inc": _Digits(2**128)})
_GENERATOR: dict[str, schema.Spec] = {
    "bit_generator": _PCG64, "state": _NUMBERS, "has_uint32": _Digits(2), "uinteger": _Digits(2**32)
}  # fmt: skip
_OF_TYPE: dict[Any, schema.Spec] = {int: _COUNT, bool: schema.Flag(), float: _NUMBER, float | None: _NUMBER_OR_NONE}
_OF_TYPE |= {list[Record]: schema.ListOf(_ROW), str: schema.Text()}
#: the numbers and texts of a checkpoint
_HEADER = {one.name: _OF_TYPE[one.type] for one in fields(Progress) if one.type in _OF_TYPE}
_HEADER["rng"] = schema.Record({"kind": _PCG64, "state": schema.Record(_GENERATOR)})


@contextlib.contextmanager
def claimed(path: Path | None) -> Iterator[None]:
    """Nobody else writes the checkpoint `path` in here; what killed writers left of it is removed. None: there is none.

    Raises CheckpointError where another run has claimed it, and StorageError or DataError where it could never be written.
    Runs that took turns in overwriting one file would each destroy what the other could continue from; at its start the second
    one has nothing to lose.
    """
    if path is None:
        yield
        return
    target = Path(os.path.realpath(path))
    check_target(path)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(exclusive(target.with_name(f".{target.name}.lock")))
            remove_leftovers(path)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EWOULDBLOCK):
                raise CheckpointError(
                    f"{path}: another run is writing this checkpoint; wait until it ends, or give each run a file of its own"
                ) from error
            raise storage_error(path, error) from error
        yield


def save_checkpoint(path: Path, progress: Progress) -> None:
    """Write the newest checkpoint; the present one becomes `path`.previous. A crash at any moment leaves one that is whole.

    Raises StorageError where it cannot be written; one of the earlier ones is then still there.
    """
    header = {name: getattr(progress, name) for name in _HEADER}
    header["rng"] = {"kind": progress.rng["bit_generator"], "state": _numbers_as_text(progress.rng)}
    arrays = {f"state.{name}": array for name, array in progress.arrays.items()}
    arrays["order"] = progress.order
    if progress.best_weights is not None:
        arrays["best_weights"] = progress.best_weights
    write_bundle(path, Bundle(header, arrays), kind="checkpoint", previous=previous(path))


def load_checkpoint(path: Path, fingerprint: str) -> Progress:
    """Read the newest checkpoint that is whole.

    Raises CheckpointError where there is none, or where it belongs to other data or settings. Where the newest is damaged
    or missing, the one before is used, with a CheckpointWarning. The arrays are those of the file: `states.rebuild` checks them.
    """
    try:
        bundle = read_bundle(path, kind="checkpoint")
    except (CheckpointError, OSError) as error:
        if not previous(path).exists():
            raise CheckpointError(f"{path}: cannot resume: {error}") from error
        bundle = read_bundle(previous(path), kind="checkpoint")
        warnings.warn(
            f"{path} could not be read ({error}); continuing from the checkpoint before it",
            CheckpointWarning,
            stacklevel=callers_level(),
        )
    header, arrays = bundle.header, bundle.arrays
    if header.get("fingerprint") != fingerprint:
        raise CheckpointError(
            f"{path} belongs to another run: the data, the settings or the version differ; "
            "resume with the same ones, or start a new run without resuming"
        )
    found: dict[str, Any] = {}
    for name, spec in _HEADER.items():
        try:
            found[name] = spec.read(header[name], name)
        except (KeyError, ValueError) as error:
            raise CheckpointError(f"{path}: cannot resume: {name} is missing, or not what a run could have written") from error
    if "order" not in arrays or ("best_weights" in arrays) != (found["best_dev"] is not None):
        raise CheckpointError(f"{path}: cannot resume: the order of instances or the best weights are missing")
    return Progress(
        arrays={name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")},
        order=arrays["order"],
        best_weights=arrays.get("best_weights"),
        **{**found, "rng": found["rng"]["state"]},
    )


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint, the one before it, and what killed writers left of it."""
    remove_leftovers(path)
    for file in (path, previous(path)):
        file.unlink(missing_ok=True)


def begun(path: Path) -> bool:
    """Whether there is a checkpoint: a run may end before one of its stages begins."""
    return path.exists() or previous(path).exists()


def previous(path: Path) -> Path:
    """Where the checkpoint before the newest one lies: next to the file itself, where `path` is a link."""
    target = Path(os.path.realpath(path))
    return target.with_name(target.name + ".previous")


def _numbers_as_text(state: Any) -> Any:
    """What `_Digits` reads."""
    if isinstance(state, dict):
        return {key: _numbers_as_text(value) for key, value in state.items()}
    return str(int(state)) if isinstance(state, int | np.integer) else state
