"""The oracle protocol: three methods, and a list of optional ones that is true."""

import numpy as np
import pytest

from structpred.core.oracle import OPTIONAL, Oracle, capabilities
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle


def test_an_oracle_lacks_nothing_but_its_three_methods() -> None:
    """A class without one of the four obligatory definitions cannot be made; with them it can."""
    methods = {
        "n_parts": lambda self, shape: shape[0],
        "argmax": lambda self, scores, shape: np.array([scores.argmax()]),
        "parts": lambda self, labels, shape: labels,
        "example_shapes": staticmethod(lambda: [(2,)]),
    }
    assert type("Whole", (Oracle,), methods)().exact is True
    for missing in methods:
        kind = type("Part", (Oracle,), {name: f for name, f in methods.items() if name != missing})
        with pytest.raises(TypeError, match=missing):
            kind()


def test_capabilities_are_the_methods_that_are_there() -> None:
    """An attribute that is None, or a number, is no capability."""

    class Without(MulticlassOracle):
        marginals = None
        kbest = 3

    assert capabilities(MulticlassOracle()) - capabilities(Without()) == {"marginals", "kbest"}
    assert {"argmax", "argmax_batch", "enumerate", "label_grid"} <= capabilities(ChainOracle())
    assert "label_grid" not in capabilities(EnumeratedOracle(list, list, len, example_shapes=[]))
    assert capabilities(object()) == frozenset()


def test_every_optional_method_has_its_call_and_its_promise() -> None:
    """OPTIONAL is what error messages quote: a signature, a colon, a sentence."""
    for text in OPTIONAL.values():
        assert text.startswith("(")
        assert "->" in text
        assert ": " in text
