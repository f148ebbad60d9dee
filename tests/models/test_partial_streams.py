"""Pieces of data in which labels are missing: partial_fit and fit_stream, resuming, and what is refused."""

import numpy as np
import pytest
from online_cases import ONLINE, Stopper, model, noisy, same, total

from structpred.errors import CheckpointError, DataError, ParameterError
from structpred.models import ChainLabeler
from structpred.objectives.margin import LatentHinge, MarginRescaling

CLASSES = ["a", "b", "c"]


def half(y, seed=0):
    """The labels without a third of them, and with sets in the place of some; the first sequence has none."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(3, p=[0.3, 0.1, 0.6], size=(len(y), 5)).tolist()
    marks = [
        [(None, {label, "c"}, label)[k] for label, k in zip(row, own, strict=False)] for row, own in zip(y, kinds, strict=True)
    ]
    return [[None] * len(y[0]), *marks[1:]]


@pytest.mark.parametrize("trainer", ONLINE)
def test_batches_do_not_show(trainer):
    """One batch, many batches and a stream give the same weights; a batch without any label is no error."""
    x, y = noisy(40)
    y = half(y)
    whole = model(trainer).partial_fit(x, y, CLASSES, **total(trainer))
    pieces = model(trainer)
    for k in (0, 1, 17):
        at = slice(k, {0: 1, 1: 17, 17: 40}[k])
        pieces.partial_fit(x[at], y[at], CLASSES, **total(trainer))
    stream = model(trainer).fit_stream(lambda: zip(x, y, strict=True), CLASSES, batch_size=7, **total(trainer))
    for other in (pieces, stream):
        np.testing.assert_array_equal(other.coef_, whole.coef_)
    assert whole.classes_.tolist() == CLASSES


@pytest.mark.parametrize("settings", [{"trainer": "mira"}, {"trainer": "sgd", "surrogate": "log"}])
def test_a_stream_learns_from_what_is_known(settings):
    """With 40 % of the labels gone passes over a stream come near those over all labels, and marks work as in fit."""
    rng = np.random.default_rng(0)
    codes = [(rng.integers(3) + np.cumsum(rng.random(6) < 0.9)) % 3 for _ in range(60)]
    X = [np.eye(3)[row] + rng.normal(scale=0.6, size=(6, 3)) for row in codes]
    y = [["abc"[k] for k in row] for row in codes]
    some = [["?" if rng.random() < 0.4 else label for label in row] for row in y]

    def fitted(labels):
        labeler = ChainLabeler(C=1.0, missing="?", **settings)
        return labeler.fit_stream(lambda: zip(X[:40], labels, strict=False), CLASSES, 4, n_total=40).score(X[40:], y[40:])

    assert fitted(some) > fitted(y) - 0.06


@pytest.mark.usefixtures("hears_interrupts")
def test_an_interrupted_stream_goes_on(tmp_path):
    """A resumed stream ends with the bits of an unbroken one; other labels that are known whole are noticed."""
    x, y = noisy(40)
    y[2:] = half(y)[2:]
    settings = {"classes": CLASSES, "n_passes": 2}
    straight = model("mira").fit_stream(lambda: zip(x, y, strict=True), **settings)

    labeler = model("mira", checkpoint=tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        labeler.fit_stream(Stopper(x, y, 68), batch_size=8, **settings)
    labeler.set_params(resume=True)
    changed = [y[0], ["a" if label != "a" else "b" for label in y[1]], *y[2:]]
    with pytest.raises(CheckpointError, match="does not give the same"):
        labeler.fit_stream(lambda: zip(x, changed, strict=True), **settings)
    same(labeler.fit_stream(lambda: zip(x, y, strict=True), batch_size=5, **settings), straight)


def test_what_needs_all_labels_of_an_instance_is_refused():
    """Slack rescaling completes labels in fit only, and a set may name known labels only: the errors say so."""
    x, y = noisy(10)
    with pytest.raises(DataError, match=r"sample 1.*'z' is not among the labels"):
        model("mira").fit_stream(lambda: zip(x, [y[0], [{"z", "a"}] * len(y[1]), *y[2:]], strict=True), CLASSES)
    with pytest.raises(ParameterError, match=r"SlackRescaling needs all labels of an instance.*take fit"):
        model("mira", surrogate="slack").partial_fit(x, half(y), CLASSES)


class Margin:
    """A hinge of a user's own that is no child of ours, and says what it is where labels are missing."""

    requires, piecewise_linear = ("argmax",), True

    def __init__(self):
        self._hinge = MarginRescaling()
        self.term, self.offset, self.values = self._hinge.term, self._hinge.offset, self._hinge.values

    def latent(self):
        return LatentHinge()


def test_a_surrogate_from_outside_says_what_it_is_where_labels_are_missing():
    """The weights are those of the hinge itself."""
    x, y = noisy(20)
    ours, own = (model("mira", surrogate=one).partial_fit(x, half(y), CLASSES) for one in ("margin", Margin()))
    np.testing.assert_array_equal(own.coef_, ours.coef_)
