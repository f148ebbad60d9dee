"""Parsers whose templates are weighed by online multiple kernel learning."""

from pathlib import Path

import numpy as np
from parser_cases import corpus, heads_of

from structpred.models import DependencyParser
from structpred.trainers.online_mkl import OnlineMKL

TEMPLATES = ["h.upos m.upos | direction", "h.form m.form", "m.upos | distance", "h.lemma m.upos-1", "h.form h.upos+1 m.form"]
X, Y = corpus(25, 0)


def parser(max_iter: int, C: float = 1.0, eta0: float = 0.1, **options: object) -> DependencyParser:
    """A parser of few templates that learns no relations."""
    return DependencyParser(OnlineMKL(eta0=eta0), C, max_iter, templates=TEMPLATES, labelled=False, max_bits=8, **options)  # type: ignore[arg-type]


def test_training_with_online_mkl_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """One pass, then two more from the checkpoint, give the weights and the shares of each pass of three passes, bit for bit."""
    whole, path = parser(3).fit(X, Y), tmp_path / "run.ckpt"
    parser(1, checkpoint=path).fit(X, Y)
    resumed = parser(3, checkpoint=path, resume=True).fit(X, Y)
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    np.testing.assert_array_equal(resumed.report_["group_weights"], whole.report_["group_weights"])
    assert whole.report_["group_weights"].shape == (3, len(TEMPLATES) + 1)
    assert whole.group_names_[:-1] == TEMPLATES


def test_templates_that_do_not_help_become_zero_and_can_be_left_out() -> None:
    """Under strong regularisation some templates are zero, not all; the model without them parses as before, in fewer weights."""
    model = parser(4, C=0.001, eta0=1.0).fit(X, Y)
    zero = [name for name, norm in zip(model.group_names_, model.group_norms_, strict=True) if norm == 0.0]
    assert 0 < len(zero) < len(TEMPLATES)
    smaller = model.without_groups(zero)
    assert len(smaller.coef_) < len(model.coef_)
    assert heads_of(smaller.predict(X)) == heads_of(model.predict(X))
