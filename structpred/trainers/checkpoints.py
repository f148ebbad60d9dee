"""Checkpoints: the state of a run as it is, written atomically; the one before is kept."""

import logging
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structpred.core.result import Record
from structpred.core.storage import Bundle, read_bundle, remove_leftovers, write_bundle
from structpred.errors import CheckpointError, CheckpointWarning, StorageError

log = logging.getLogger("structpred.trainers")
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


_SCALARS = (
    "passes",
    "position",
    "changed",
    "oracle_calls",
    "seconds",
    "cpu_seconds",
    "best_dev",
    "stale",
    "history",
    "fingerprint",
)


def save_checkpoint(path: Path, progress: Progress) -> None:
    """Write the newest checkpoint; the present one becomes `path`.previous. A crash at any moment leaves one that is whole.

    Raises StorageError where it cannot be written; one of the earlier ones is then still there. (The last two renames are not
    synced: a power cut may undo them, which leaves the earlier checkpoints as they were.)
    """
    header = {name: getattr(progress, name) for name in _SCALARS}
    header["rng"] = {"kind": progress.rng["bit_generator"], "state": _numbers_as_text(progress.rng)}
    arrays = {f"state.{name}": array for name, array in progress.arrays.items()}
    arrays["order"] = progress.order
    if progress.best_weights is not None:
        arrays["best_weights"] = progress.best_weights
    staged = _staged(path)
    write_bundle(staged, Bundle(header, arrays), kind="checkpoint")
    try:
        if path.exists():
            os.replace(path, previous(path))
        os.replace(staged, path)
    except OSError as error:
        raise StorageError(
            f"{path}: the new checkpoint could not be put into its place: {error.strerror or error}; the earlier one is kept"
        ) from error


def load_checkpoint(path: Path, fingerprint: str) -> Progress:
    """Read the newest checkpoint that is whole.

    Raises CheckpointError where there is none, or where it belongs to other data or settings. Where the newest is damaged
    or missing, the one before is used, with a CheckpointWarning.
    """
    remove_leftovers(_staged(path))  # of a writer that was killed
    try:
        bundle = read_bundle(path, kind="checkpoint")
    except (CheckpointError, OSError) as error:
        if not previous(path).exists():
            raise CheckpointError(f"{path}: cannot resume: {error}") from error
        bundle = read_bundle(previous(path), kind="checkpoint")
        warnings.warn(
            f"{path} could not be read ({error}); going on from the checkpoint before it", CheckpointWarning, stacklevel=2
        )
    header = bundle.header
    if header.get("fingerprint") != fingerprint:
        raise CheckpointError(
            f"{path} belongs to another run: the data, the settings or the version differ; "
            "resume with the same ones, or start anew without resuming"
        )
    arrays = {name.removeprefix("state."): array for name, array in bundle.arrays.items() if name.startswith("state.")}
    return Progress(
        arrays=arrays,
        order=bundle.arrays["order"],
        best_weights=bundle.arrays.get("best_weights"),
        rng=_text_as_numbers(header["rng"]["state"]),
        **{name: header[name] for name in _SCALARS},
    )


def _staged(path: Path) -> Path:
    return path.with_name(path.name + ".next")


def previous(path: Path) -> Path:
    """Where the checkpoint before the newest one lies."""
    return path.with_name(path.name + ".previous")


def _numbers_as_text(state: Any) -> Any:
    """The generator's state holds 128-bit numbers, which not every JSON reader keeps."""
    if isinstance(state, dict):
        return {key: _numbers_as_text(value) for key, value in state.items()}
    return str(int(state)) if isinstance(state, int | np.integer) else state


def _text_as_numbers(state: Any) -> Any:
    if isinstance(state, dict):
        return {key: _text_as_numbers(value) for key, value in state.items()}
    return int(state) if isinstance(state, str) and state.lstrip("-").isdigit() else state
