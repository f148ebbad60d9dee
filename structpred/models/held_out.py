"""Held-out data, as `fit` takes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from structpred.errors import DataError, ParameterError


def dev_parts(dev: Any, names: str) -> tuple[Any, ...]:
    """The held-out data as a tuple of as many parts as there are names; ParameterError for anything else."""
    if not isinstance(dev, tuple | list) or len(dev) != len(names.split(",")):
        came = f"{len(dev)} of them" if isinstance(dev, tuple | list) else type(dev).__name__
        raise ParameterError(f"dev: expected a tuple ({names}), got {came}")
    return tuple(dev)


@contextmanager
def about_dev() -> Iterator[None]:
    """Errors in the held-out data say that they are in the held-out data."""
    try:
        yield
    except DataError as error:
        raise DataError(f"dev: {error}") from error
