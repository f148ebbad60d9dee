"""What is said of an exception of a user's own code: one line, and the place in that code."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from structpred.core.own_code import raised
from structpred.core.packing import argmax_batch, marginals_batch
from structpred.errors import OracleError
from structpred.oracles.multiclass import MulticlassOracle


def deep(text: str) -> Any:
    """Fails in the standard library, which this line calls."""
    return json.loads(text)


def shallow() -> Any:
    """Calls another line that fails."""
    return deep("{")


def told(call: Callable[..., Any], *arguments: Any) -> str:
    """What is said of what the call raises."""
    try:
        call(*arguments)
    except Exception as error:
        return raised(error)
    raise AssertionError


def test_the_place_is_the_deepest_line_of_that_code() -> None:
    """Neither the library that it calls, nor who called it; lines of a message become one."""
    assert told(shallow).endswith(f"({__file__}, line {deep.__code__.co_firstlineno + 2})")
    assert told(exec, "raise ValueError('two\\n  lines')").startswith("ValueError: two lines (<string>, line 1)")
    assert told(shallow, "more").startswith("TypeError: shallow() takes 0 positional arguments but 1 was given")
    assert "line" not in told(shallow, "more")
    assert raised(ValueError("never raised")) == "ValueError: never raised"


@pytest.mark.parametrize("method", ["argmax", "argmax_batch", "marginals_batch"])
def test_exceptions_of_oracles_name_the_line(method: str) -> None:
    """Of each method, one by one or in batches; out of memory stays what it is."""
    error: Exception = ValueError("the solver gave up")

    def fail(*arguments: Any) -> Any:
        raise error

    oracle: Any = type("Failing", (MulticlassOracle,), {method: fail})()
    batch = marginals_batch if method.startswith("marginals") else argmax_batch
    line = fail.__code__.co_firstlineno + 1
    with pytest.raises(OracleError, match=rf"Failing\.{method} raised ValueError: the solver gave up \(.*\.py, line {line}\)$"):
        batch(oracle, np.zeros(2), np.array([0, 2]), [(2,)])
    error = MemoryError()
    with pytest.raises(MemoryError):
        batch(oracle, np.zeros(2), np.array([0, 2]), [(2,)])
