"""Data of structures and of decisions, which a function of the user's own reads."""

from collections.abc import Callable
from typing import Any

import click

from structpred.cli.facts import model_facts
from structpred.cli.kinds.kind import Asked
from structpred.cli.own_code import made
from structpred.core.own_code import raised
from structpred.errors import DataError, StructpredError

Reader = Callable[[str], tuple[Any, Any]]


def reader_of(name: str) -> Reader:
    """The user's reader."""
    found: Reader = made(name, Callable, "my_module:read")  # type: ignore[arg-type]
    return found


def read(reader: Reader, name: str, path: str) -> tuple[list[Any], Any]:
    """What the reader gives for a file; DataError where it fails, or where that is no pair (X, y)."""
    try:
        found = reader(path)
    except (StructpredError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"{path}: --reader {name} failed: {raised(error)}") from error
    if not isinstance(found, tuple) or len(found) != 2:
        raise DataError(f"--reader {name}: expected a pair (X, y), y None where labels are not known, got {type(found).__name__}")
    return found


def read_labelled(reader: Reader, name: str, path: str) -> tuple[list[Any], Any]:
    """The same; DataError where there are no labels."""
    X, y = read(reader, name, path)
    if y is None:
        raise DataError(f"{path}: --reader {name} gives no labels (y is None), which are needed here")
    return X, y


def asked_reader(asked: Asked) -> tuple[Reader, str]:
    """The user's reader, and its name; a usage error where it is not named."""
    name = asked.own["reader"]
    if name is None:
        known = model_facts(asked.model)["reader"] or {}
        raise click.UsageError(f"name what reads DATA with --reader {known.get('reader', 'MODULE:FUNCTION')}: its code is run")
    return reader_of(name), name
