"""The how-to on understanding a model runs as it stands."""

from pathlib import Path

import pytest
from test_documents import python_of, run


@pytest.mark.slow
def test_the_how_to_runs(tmp_path: Path) -> None:
    """Its Python blocks run one after the other: a table that ends in the sum, a contrast, and a learning curve."""
    lines = run(python_of("howto/understand_a_model.md"), tmp_path).splitlines()
    assert lines[0].split() == ["adds", "value", "weight", "position", "label", "feature"]
    assert lines[7].endswith("sum")
    assert "against" in lines
    assert lines[-3].split()[0] == "fraction"
