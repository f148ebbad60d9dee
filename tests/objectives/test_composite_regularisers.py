"""Regularisers of groups, hierarchies and sums: their contract for all settings, what they have in common, what they refuse."""

import numpy as np
import pytest

import structpred
from structpred.errors import DataError, MissingCapabilityError, ParameterError
from structpred.features.label_rows import LabelRows
from structpred.models.settings import settings_of, settings_restored
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.names import regularisers
from structpred.objectives.part_losses import Hamming
from structpred.objectives.regularisers.composite import Composite
from structpred.objectives.regularisers.group_lasso import GroupBall, GroupLasso, SparseGroupLasso
from structpred.objectives.regularisers.l1 import L1, Lasso
from structpred.objectives.regularisers.l2 import L2
from structpred.objectives.regularisers.mkl import ElasticNetMKL, LpMKL
from structpred.objectives.regularisers.named_groups import GroupTree, OverlappingGroups
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem

ENDS, NAMES = np.array([0, 2, 2, 5, 6]), ["word", "empty", "pos[0]", "pos[1]"]
NESTED, CROSSED = (
    ["*", ["group 0", "group 1"], "group 2", "group 0", "group 3"],
    [["group 0", "group 2"], ["group 1", "*2", "*3"]],
)
SETTINGS = [
    *(SparseGroupLasso(share) for share in (0.0, 0.1, 1.0)),
    *(ElasticNetMKL(share) for share in (0.0, 1.0)),
    *(LpMKL(p) for p in (1.05, 2.0)),
    Lasso(0.0), GroupLasso(0.3), GroupBall(7.0), GroupTree(NESTED), OverlappingGroups(CROSSED),
    Composite(L2(), Lasso(0.3)), Composite(GroupBall(3.0), OverlappingGroups(CROSSED), L1(0.2)),
]  # fmt: skip


@pytest.mark.mostly_slow
@pytest.mark.parametrize("regulariser", SETTINGS, ids=lambda r: f"{type(r).__name__} {[str(x)[:20] for x in vars(r).values()]}")
def test_other_settings_keep_the_contract(regulariser) -> None:
    """The ends of their ranges, hierarchies and groups that cross, sums, the sum of a sum, with an empty group of weights."""
    report = structpred.check_regulariser(regulariser, sizes=[(2, 0, 5, 1)], n_random=8)
    assert ("prox of the sum" in report.skipped) == isinstance(regulariser, OverlappingGroups | Composite)
    assert ("terms" in report.checked) == isinstance(regulariser, OverlappingGroups | Composite)


SAME = [
    (LpMKL(2.0), L2()),
    (ElasticNetMKL(1.0), L2()),
    (ElasticNetMKL(0.0), GroupLasso()),
    (SparseGroupLasso(0.0), Lasso()),
    (SparseGroupLasso(1.0), GroupLasso()),
    (GroupTree(["word", "empty", "pos[0]", "pos[1]"]), GroupLasso()),
    (GroupTree(["*"]), GroupTree([["w*", "e*", "p*"]])),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=[f"{type(a).__name__} {type(b).__name__}" for a, b in SAME])
def test_what_coincides(one, other) -> None:
    """Value, prox and bound of two regularisers that are one for these settings."""
    rng = np.random.default_rng(0)
    one, other = one.grouped(ENDS, NAMES), other.grouped(ENDS, NAMES)
    for scale in (0.1, 1.0, 30.0):
        w = scale * rng.normal(size=6)
        assert one.value(w) == pytest.approx(other.value(w), rel=1e-12)
        np.testing.assert_allclose(one.prox(w, 0.7), other.prox(w, 0.7), atol=1e-12 * scale)
        if not isinstance(other, L2):  # whose bound makes no move towards the truth
            assert one.bound(1.5, 0.1, [w]) == pytest.approx(other.bound(1.5, 0.1, [w]), rel=1e-11)
        else:
            assert one.bound(1.5, 0.1, [w]) >= other.bound(1.5, 0.1, [w]) - 1e-12


def test_the_bound_of_crossing_groups_is_that_of_the_convex_program_or_below() -> None:
    """The conjugate is 0 where u is a sum of vectors of the groups with norms of at most 1: as far as cvxpy finds, or less."""
    cp = pytest.importorskip("cvxpy")
    rng, groups = np.random.default_rng(0), [["word", "pos[0]"], ["empty", "pos*"]]
    r, inside = OverlappingGroups(groups).grouped(ENDS, NAMES), [[0, 1, 2, 3, 4], [2, 3, 4, 5]]
    for _ in range(3):
        u = rng.normal(size=6)
        parts = [cp.Variable(6) for _ in inside]
        rules = [part[k] == 0 for part, held in zip(parts, inside, strict=True) for k in range(6) if k not in held]
        least = cp.Problem(cp.Minimize(cp.max(cp.hstack([cp.norm2(part) for part in parts]))), [*rules, sum(parts) == u]).solve()
        assert 0.5 / max(1.0, least) <= r.bound(1.0, 0.1, [u]) <= 1.0 / max(1.0, least) + 1e-6


def test_a_trainer_that_cannot_refuses_in_words() -> None:
    """BCFW needs a dual map, which balls and sums do not have; a sum has no prox, and no groups, no norms."""
    task = Task(LabelRows(np.eye(2), 2), MulticlassOracle(), [np.array([0]), np.array([1])], [(2,)] * 2, Hamming())
    for regulariser in (GroupBall(), Composite(L2(), L1(0.1))):
        problem = Problem(task, MarginRescaling(), lam=1.0, regulariser=regulariser)
        with pytest.raises(
            MissingCapabilityError, match=f"BCFW needs dual_map, which {type(regulariser).__name__} does not have"
        ):
            train(problem, BCFW(), RunSettings(max_iter=1))
        assert regulariser.grouped(task.groups, task.group_names).value(np.ones(task.dim)) > 0.0
    with pytest.raises(MissingCapabilityError, match=r"of Composite is not known in closed form, only those of its terms"):
        Composite(L2()).prox(np.ones(2), 1.0)
    with pytest.raises(ParameterError, match="GroupLasso needs the groups of the weights"):
        GroupLasso().value(np.ones(2))
    with pytest.raises(DataError, match="ends of groups from 0 to 2"):
        GroupLasso().grouped(ENDS, NAMES).prox(np.ones(2), 1.0)


def test_model_files_bring_back_what_has_plain_settings() -> None:
    """Every named regulariser with its settings; a hierarchy or a sum is named only, so that a second fit asks for it."""
    for kind in regularisers().values():
        again = settings_restored(settings_of(kind()))
        assert type(again) is kind
        assert again.fingerprint() == kind().fingerprint()
    for unnamed in (GroupTree(["*"]), Composite(L2())):
        assert "give it again" in settings_restored(settings_of(unnamed))


def test_checkpoints_know_settings_and_groups() -> None:
    """Other settings, other groups, other parts of a sum: another fingerprint; the same again: the same."""
    made = [
        lambda: GroupLasso(1.0), lambda: GroupLasso(2.0), lambda: GroupTree(["*"]), lambda: GroupTree(["*", "word"]),
        lambda: Composite(L2(), Lasso(0.1)), lambda: Composite(L2(), Lasso(0.2)),
    ]  # fmt: skip
    prints = [make().grouped(ENDS, NAMES).fingerprint() for make in made]
    assert len(set(prints)) == len(prints)
    assert prints == [make().grouped(ENDS, NAMES).fingerprint() for make in made]
    assert GroupLasso().grouped(ENDS + 1, NAMES).fingerprint() != prints[0]


REFUSED = [
    (lambda: GroupTree([]), "a list of groups"),
    (lambda: GroupTree("word"), "a list of groups"),
    (lambda: OverlappingGroups([["word"], []]), r"number 1 is \[\]; a group needs at least one name"),
    (lambda: GroupTree([["word", 3]]), "number 0 is .*at least one name"),
    (
        lambda: GroupTree(["*", "wrod"]).grouped(ENDS, NAMES),
        "no group of weights is called 'wrod'; there are 'word', .*mean 'word'",
    ),
    (lambda: GroupTree(["*", "pos0"]).grouped(ENDS, NAMES), r"called 'pos0'.*did you mean 'pos\[.\]'"),
    (lambda: GroupTree(["word", "pos*"]).grouped(ENDS, NAMES), "'empty' of the groups of weights are in no group"),
    (lambda: GroupTree(["*", ["word", "pos[0]"], "pos*"]).grouped(ENDS, NAMES), r"overlap in 'pos\[0\]', and neither holds"),
    (lambda: Composite(), "at least one"),
    (lambda: Composite(L2), "instances of a Regulariser"),
    (lambda: LpMKL(2.5), "above 1 and at most 2"),
    (lambda: LpMKL(1.0), "p to be a finite number above 1"),
    (lambda: ElasticNetMKL(-0.1), "share to be a number from 0 to 1"),
    (lambda: SparseGroupLasso(True), "share to be a number from 0 to 1"),
    (lambda: GroupLasso(-1.0), "mu, the weight of the l1 norm"),
    (lambda: GroupBall(0.0), "radius must be a positive number"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_bad_groups_and_settings_are_refused(call, words) -> None:
    """Empty groups, unknown names with the nearest one, groups that cross in a hierarchy or are left out, bad settings."""
    with pytest.raises(ParameterError, match=words):
        call()
