"""Training sets for the tests of the estimators."""

from pathlib import Path

import pytest
from labeler_cases import CASE_NAMES, Case, all_cases


@pytest.fixture(params=CASE_NAMES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """One form of input after the other."""
    return next(one for one in all_cases(tmp_path) if one.name == request.param)
