"""The plain-Python oracle and the compiled one give the same weights to the last bit, for every trainer."""

import numpy as np
import pytest
from training_cases import TRAINERS, PlainChain, chain_task, problem

from structpred.contracts.checks import check_oracle
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.trainers.loop import RunSettings, train

COSTS = [[0.0, 1.5, 0.7], [2.0, 0.0, 1.0], [0.3, 1.1, 0.0]]


def test_the_plain_oracle_keeps_its_contract() -> None:
    """The yardstick itself is right, without enumerate."""
    check_oracle(PlainChain())


def kinds() -> list[object]:
    """Precision, weights and loss: in the fast suite every two of them together, in the slow one all three."""
    names = {np.float32: "float32", np.float64: "float64"}
    return [
        pytest.param(
            dtype, weighted, COSTS if costs else None, id=f"{'costs' if costs else 'hamming'}-{weighted}-{names[dtype]}",
            marks=[pytest.mark.slow] if (dtype is np.float32) ^ weighted ^ costs else [],
        )
        for costs in (False, True) for weighted in (False, True) for dtype in names
    ]  # fmt: skip


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize(("dtype", "weighted", "costs"), kinds())
def test_plain_and_compiled_agree_to_the_last_bit(trainer, dtype, weighted, costs) -> None:
    """Weights and dual values are bit-identical; so are they where the compiled oracle is used without its compiled steps."""
    options = {"dtype": dtype, "weighted": weighted, "loss": LabelCosts(costs) if costs else Hamming()}
    tasks = [
        chain_task(1, **options),
        chain_task(1, oracle=PlainChain(), **options),
        chain_task(1, compiled=False, **options),
    ]
    passes = 25 if trainer == "one-slack" else 6  # its first planes overshoot: zero is the best known for a while
    settings = RunSettings(max_iter=passes, check_every=2, seed=3)
    results = [train(problem(task, 0.07), TRAINERS[trainer](), settings) for task in tasks]
    assert results[0].weights.dtype == dtype
    assert np.abs(results[0].weights).sum() > 0
    for other in results[1:]:
        assert results[0].weights.tobytes() == other.weights.tobytes()
        assert results[0].certificate.dual == other.certificate.dual
        if results[0].certificate.primal is not None:
            assert results[0].certificate.primal == pytest.approx(other.certificate.primal, rel=1e-12)


@pytest.mark.parametrize("trainer", ["perceptron", "bcfw"])
@pytest.mark.parametrize("loss_weight", [0.0, 0.3, 1e6])
def test_any_loss_weight_agrees(trainer, loss_weight) -> None:
    """Also without a margin (the perceptron loss) and with a huge one."""
    results = []
    for oracle in (None, PlainChain()):
        task = chain_task(2, oracle=oracle, dtype=np.float32, weighted=True)
        if loss_weight == 0.0 and trainer == "bcfw":  # zero weights predict every label alike: a start that moves at all
            loss_weight = 1e-3
        results.append(train(problem(task, 0.5, loss_weight), TRAINERS[trainer](), RunSettings(max_iter=4)).weights)
    assert results[0].tobytes() == results[1].tobytes()
    assert np.isfinite(results[0]).all()
