"""Passes of one trainer, then iterations of another from its weights, as one run."""

from dataclasses import replace

import numpy as np
import pytest
from training_cases import chain_task, log_optimum, log_problem

from structpred.errors import ParameterError
from structpred.objectives.regularisers.l1 import L1
from structpred.trainers.bcfw import BCFW
from structpred.trainers.cocoa import CoCoA
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.warm_start import WarmStart

FIRST = {"oeg": OnlineEG, "shards": lambda: CoCoA(OnlineEG(), shards=3)}


@pytest.mark.parametrize("first", FIRST)
def test_the_second_trainer_begins_where_the_first_ended(first) -> None:
    """Rows 1 and 2 are those of the first alone, the objective after row 3 is its own, and the optimum is the usual one."""
    task = log_problem(chain_task(0, n=10, longest=3, weighted=True), 0.05)
    alone = train(task, FIRST[first](), RunSettings(max_iter=3, check_every=1))
    found = train(task, WarmStart(LBFGS(), FIRST[first]()), RunSettings(max_iter=60, tol=1e-7, check_every=1))
    for key in ("primal", "dual"):
        assert [row[key] for row in found.history[:2]] == [row[key] for row in alone.history[:2]]
    assert found.history[2]["primal"] == pytest.approx(alone.history[2]["primal"], rel=1e-12)
    assert found.certificate.primal == pytest.approx(log_optimum(task.task, 0.05)[0], rel=1e-6)


def test_under_an_l1_term_the_first_is_certified_too() -> None:
    """OWL-QN after exponentiated gradient reaches the optimum that it reaches alone; the dual value of the first is below it."""
    task = replace(log_problem(chain_task(1, n=10, longest=3), 0.05), regulariser=L1(0.1))
    settings = RunSettings(max_iter=60, tol=1e-7, check_every=1)
    alone, found = (train(task, trainer, settings) for trainer in (OWLQN(), WarmStart(OWLQN())))
    assert found.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-6)
    assert found.history[0]["dual"] <= alone.certificate.primal
    by_setting = train(replace(task, regulariser=log_problem(task.task).regulariser), WarmStart(OWLQN(l1=0.1)), settings)
    assert by_setting.certificate.primal == pytest.approx(alone.certificate.primal, rel=1e-6)
    # a weight that is zero at the optimum may be on its way there
    differ = (by_setting.weights == 0.0) != (alone.weights == 0.0)
    assert differ.sum() <= 1
    assert (np.abs(by_setting.weights - alone.weights)[differ] < 1e-3).all()


@pytest.mark.parametrize("passes", [1, 3, 5])
def test_it_goes_on_to_the_last_bit_in_either_stage(passes, tmp_path) -> None:
    """Stopped among the first passes, where the second trainer begins, or after: then the weights and bounds of one go."""
    make = lambda: log_problem(chain_task(2, n=10, longest=3), 0.05)  # noqa: E731
    settings = {"check_every": 1, "seed": 4}
    straight = train(make(), WarmStart(OWLQN()), RunSettings(max_iter=7, **settings))
    file = tmp_path / "run.ckpt"
    train(make(), WarmStart(OWLQN()), RunSettings(max_iter=passes, checkpoint=file, **settings))
    resumed = train(make(), WarmStart(OWLQN()), RunSettings(max_iter=7, checkpoint=file, resume=True, **settings))
    assert resumed.weights.tobytes() == straight.weights.tobytes()
    assert [(row["primal"], row["dual"]) for row in resumed.history] == [(row["primal"], row["dual"]) for row in straight.history]


def test_what_cannot_begin_elsewhere_is_refused() -> None:
    """Only trainers that can begin at given weights come second, and passes are whole."""
    for wrong in (BCFW(), LBFGS):  # no trainer of this kind, and a class in place of an object
        with pytest.raises(ParameterError, match="LBFGS"):
            WarmStart(wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="passes"):
        WarmStart(passes=0)
