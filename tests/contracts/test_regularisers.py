"""check_regulariser finds each broken regulariser, names the rule with a cause that fits, and passes those that are right."""

import re

import pytest
from broken_regularisers import BROKEN

import structpred
from structpred.errors import RegulariserError
from structpred.objectives.names import regularisers
from structpred.objectives.regularisers.composite import Composite
from structpred.objectives.regularisers.group_lasso import GroupLasso
from structpred.objectives.regularisers.l2 import L2


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", regularisers())
def test_every_regulariser_keeps_its_contract(name: str) -> None:
    """Each one that is found by its name; the report tells what was checked."""
    kind = regularisers()[name]
    report = structpred.check_regulariser(kind())
    assert {"prox", "prox to the domain", "bound", "bound is tight", "bound in pieces"} <= set(report.checked)
    for method, rule in (("dual_map", "dual map"), ("group_prox", "Proposition 1")):
        assert (rule in report.checked) == hasattr(kind, method)
    assert "satisfies its contract on 3 shapes" in str(report)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("kind", "rule", "cause"), BROKEN, ids=[kind.__name__ for kind, *_ in BROKEN])
def test_each_broken_regulariser_is_found_with_a_fitting_cause(kind, rule, cause) -> None:
    """The error names the regulariser, the rule, the case, what was expected, what came, and the cause of the fault."""
    with pytest.raises(RegulariserError) as caught:
        structpred.check_regulariser(kind())
    message = str(caught.value)
    found = [line for line in message.splitlines() if re.match(f"- {rule}, at groups of ", line)]
    assert message.startswith(f"{kind.__name__} breaks ")
    assert found, message
    assert re.search(cause, found[0].split("Likely cause: ")[1]), found[0]


def test_scales_that_never_settle_are_not_judged() -> None:
    """Where scales move on for ever under fixed weights, the rule on where they settle is skipped, with the reason."""

    class Restless(GroupLasso):
        def rescale(self, scale, memory, squares):
            return scale * (1.1 if scale[0] < 4.0 else 0.1), memory

    report = structpred.check_regulariser(Restless(), n_random=1)
    assert "scales that still move after 300 passes" in str(report)


@pytest.mark.slow
def test_sums_are_examined_as_sums_for_all_groups() -> None:
    """Each of the three cases has four checks of the terms: none takes the last term of the case before for the sum."""
    report = structpred.check_regulariser(Composite(L2(), GroupLasso(0.5)))
    assert report.checked["grouped"] == 3
    assert report.checked["terms"] == 12
