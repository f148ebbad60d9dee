"""Checkpoints: the state of a run as it is, written atomically by one run at a time; the one before is kept."""

import contextlib
import errno
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structpred.core.result import Record
from structpred.errors import CheckpointError, CheckpointWarning
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


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _number_or_none(value: Any) -> bool:
    return value is None or _number(value)


#: what a row of the history holds, and what each value must be
_ROW: dict[str, Callable[[Any], bool]] = {
    "passes": _whole,
    "seconds": _number,
    "cpu_seconds": _number,
    "oracle_calls": _whole,
    "primal": _number_or_none,
    "dual": _number_or_none,
    "gap": _number_or_none,
    "dev_score": _number_or_none,
}


def _history(value: Any) -> bool:
    rows = type(value) is list and all(type(row) is dict and row.keys() == _ROW.keys() for row in value)
    return rows and all(_ROW[name](row[name]) for row in value for name in _ROW)


def _generator(value: Any) -> bool:
    """The state of PCG64, its numbers as text."""
    if type(value) is not dict or value.keys() != {"kind", "state"} or value["kind"] != "PCG64":
        return False
    state = value["state"]
    if type(state) is not dict or state.keys() != {"bit_generator", "state", "has_uint32", "uinteger"}:
        return False
    inner = state["state"]
    if state["bit_generator"] != "PCG64" or type(inner) is not dict or inner.keys() != {"state", "inc"}:
        return False
    limits = ((inner["state"], 2**128), (inner["inc"], 2**128), (state["has_uint32"], 2), (state["uinteger"], 2**32))
    return all(type(text) is str and re.fullmatch("[0-9]{1,39}", text) and int(text) < limit for text, limit in limits)


#: the numbers and texts of a checkpoint, and what each must be
_SCALARS: dict[str, Callable[[Any], bool]] = {
    "passes": _whole,
    "position": _whole,
    "changed": lambda value: type(value) is bool,
    "oracle_calls": _whole,
    "seconds": _number,
    "cpu_seconds": _number,
    "best_dev": _number_or_none,
    "stale": _whole,
    "history": _history,
    "fingerprint": lambda value: type(value) is str,
}


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
    header = {name: getattr(progress, name) for name in _SCALARS}
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
            f"{path} could not be read ({error}); continuing from the checkpoint before it", CheckpointWarning, stacklevel=2
        )
    header, arrays = bundle.header, bundle.arrays
    if header.get("fingerprint") != fingerprint:
        raise CheckpointError(
            f"{path} belongs to another run: the data, the settings or the version differ; "
            "resume with the same ones, or start a new run without resuming"
        )
    for name, fits in {**_SCALARS, "rng": _generator}.items():
        if name not in header or not fits(header[name]):
            raise CheckpointError(f"{path}: cannot resume: {name} is missing, or not what a run could have written")
    if "order" not in arrays or ("best_weights" in arrays) != (header["best_dev"] is not None):
        raise CheckpointError(f"{path}: cannot resume: the order of visits or the best weights are missing")
    return Progress(
        arrays={name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")},
        order=arrays["order"],
        best_weights=arrays.get("best_weights"),
        rng=_text_as_numbers(header["rng"]["state"]),
        **{name: header[name] for name in _SCALARS},
    )


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint, the one before it, and what killed writers left of it."""
    remove_leftovers(path)
    for file in (path, previous(path)):
        file.unlink(missing_ok=True)


def previous(path: Path) -> Path:
    """Where the checkpoint before the newest one lies: next to the file itself, where `path` is a link."""
    target = Path(os.path.realpath(path))
    return target.with_name(target.name + ".previous")


def _numbers_as_text(state: Any) -> Any:
    """The generator's state holds 128-bit numbers, which not every JSON reader keeps."""
    if isinstance(state, dict):
        return {key: _numbers_as_text(value) for key, value in state.items()}
    return str(int(state)) if isinstance(state, int | np.integer) else state


def _text_as_numbers(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _text_as_numbers(value) for key, value in state.items()}
    return int(state) if state.isdigit() else state
