"""Data of structures and of decisions, which a function of the user's own reads."""

from collections.abc import Callable
from typing import Any

import click

from structpred.cli.facts import model_facts
from structpred.cli.kinds.kind import Asked
from structpred.cli.own_code import made
from structpred.core.own_code import raised
from structpred.errors import DataError, StructpredError


def read(name: str, path: str, *, labelled: bool = True) -> tuple[list[Any], Any]:
    """What the reader MODULE:FUNCTION gives for a file. DataError where it fails, where that is no pair (X, y), and where labels
    are needed and there are none.
    """
    reader = made(name, Callable, "my_module:read")  # type: ignore[arg-type]
    try:
        found = reader(path)
    except (StructpredError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"{path}: --reader {name} failed: {raised(error)}") from error
    if not isinstance(found, tuple) or len(found) != 2:
        raise DataError(f"--reader {name}: expected a pair (X, y), y None where labels are not known, got {type(found).__name__}")
    if labelled and found[1] is None:
        raise DataError(f"{path}: --reader {name} gives no labels (y is None), which are needed here")
    return found


def reader_asked(asked: Asked) -> str:
    """The name of the user's reader; a usage error where it is not named."""
    name: str | None = asked.own["reader"]
    if name is None:
        known = model_facts(asked.model)["reader"] or {}
        raise click.UsageError(f"name what reads DATA with --reader {known.get('reader', 'MODULE:FUNCTION')}: its code is run")
    return name


def read_asked(asked: Asked, *, labelled: bool = True) -> tuple[list[Any], Any]:
    """What it gives for DATA."""
    return read(reader_asked(asked), asked.data, labelled=labelled)
