"""Who needs what: one sentence that says what is missing, who has it, and where to add it."""

import numpy as np
import pytest

from structpred.core.requirements import require
from structpred.errors import MissingCapabilityError, StructpredError
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.multiclass import MulticlassOracle


def test_nothing_happens_where_all_is_there() -> None:
    """One of several alternatives is enough."""
    require(("argmax", "marginals", ("project", "kbest")), MulticlassOracle(), "trainer X")
    require((), object(), "trainer X")


def test_the_message_says_all_that_helps() -> None:
    """Who, what, whose, what is there, which oracles have it, the file and the signature."""
    with pytest.raises(MissingCapabilityError) as caught:
        require(("argmax", ("marginals", "kbest")), AssignmentOracle(), "trainer OEG")
    message = str(caught.value)
    for part in (
        "trainer OEG needs marginals or kbest, which AssignmentOracle does not have",
        "It has: argmax, argmax_batch, enumerate, label_grid",
        "MulticlassOracle",
        "assignment.py",
        "(scores, shape) -> (log_z, mu)",
    ):
        assert part in message
    assert isinstance(caught.value, StructpredError)
    assert isinstance(caught.value, TypeError)


def test_a_list_given_replaces_the_oracles_own() -> None:
    """A task may give up what its oracle has."""
    with pytest.raises(MissingCapabilityError, match="It has: argmax"):
        require(("marginals",), MulticlassOracle(), "trainer X", frozenset({"argmax"}))


def test_classes_typed_at_a_prompt_have_no_file() -> None:
    """The class is named instead."""
    kind = type("Typed", (), {"__module__": "__main__", "argmax": lambda self: np.zeros(1)})
    with pytest.raises(MissingCapabilityError, match=r"write in class Typed|write in .*:"):
        require(("marginals",), kind(), "trainer X")


def test_what_no_oracle_can_offer_is_not_asked_of_oracles() -> None:
    """Some trainers are for rows alone: the message says so, and names no file to add a method to."""
    with pytest.raises(MissingCapabilityError, match=r"X is for rows with two classes .* alone, not for MulticlassOracle$"):
        require(("signed_rows",), MulticlassOracle(), "trainer X")
