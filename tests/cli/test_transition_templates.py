"""`B%x[0,0]` lines of templates in the shell: trained, scored, predicted with; what does not take them is one line."""

from pathlib import Path

import pytest
from cli_helpers import Shell


@pytest.mark.slow  # shards start a cluster
def test_transitions_that_look_at_words(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """`evaluate`, `predict`, `inspect` take the model; `--shards`, `--n-bits` and `export` name the line."""
    (tmp_path / "b.template").write_text("U00:%x[0,0]\nB\nB01:%x[0,1]\n")
    command = ("train", "chain", str(corpus / "train.txt"), "--template", "b.template", "--max-iter", "3")
    done = shell(*command, "-o", "m.spz", "--trainer", "lbfgs", "--tol", "0.1")
    assert done.returncode == 0
    assert "gap" in done.stderr
    assert "F1" in shell("evaluate", "m.spz", str(corpus / "test.txt")).stdout
    assert '"marginals"' in shell("predict", "m.spz", str(corpus / "test.txt"), "--json", "--marginals").stdout
    assert "transitions by features" in shell("inspect", "m.spz").stdout
    for refused in ([*command, "-o", "n.spz", "--shards", "2"], [*command, "-o", "n.spz", "--n-bits", "9"], ["export", "m.spz"]):
        done = shell(*refused, *(["-o", "p.py"] if refused[0] == "export" else []))
        assert done.returncode != 0
        assert "template 'B01:%x[0,1]': transitions that look at words do not go with" in done.stderr
        assert not (tmp_path / "n.spz").exists()
