"""Lies beside the StructuredPredictor: scalar losses, three callbacks, decisions, and workers of a cluster."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from lies_runs import PASSES, Outcome, enter, judge
from lies_world import COLUMNS, ITEMS, LAM, AtMostTwo, World, data
from scipy.optimize import minimize

import structpred
from structpred.models import LinearClassifier, LinearRegressor
from structpred.models.settings import resolve_trainer
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.scalar.errors import Absolute, Huber, Squared
from structpred.objectives.scalar.margins import Logistic
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem

# scalar losses: 400 numbers from three features

ROWS, LAM_ROWS = 400, 0.02


@cache
def numbers() -> tuple[Any, Any]:
    """Rows and targets."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(ROWS, 3))
    return X, X @ np.array([1.0, -0.5, 0.25]) + 0.5 * rng.normal(size=ROWS)


class Numbers(NamedTuple):
    """The objective of an honest scalar loss."""

    loss: Any

    def value(self, w: Any) -> float:
        X, y = numbers()
        return float(LAM_ROWS / 2 * w @ w + self.loss.value(X @ w, y).mean())

    def optimum(self) -> float:
        import cvxpy as cp

        X, y = numbers()
        w = cp.Variable(3)
        apart = X @ w - y
        losses = cp.abs(apart) if isinstance(self.loss, Absolute) else cp.huber(apart) / 2
        losses = cp.square(apart) / 2 if isinstance(self.loss, Squared) else losses
        program = cp.Problem(cp.Minimize(LAM_ROWS / 2 * cp.sum_squares(w) + cp.sum(losses) / ROWS))
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        return float(program.value)


class Classes(NamedTuple):
    """The objective of an honest loss of margins, for the signs of the numbers."""

    loss: Any

    def value(self, w: Any) -> float:
        X, y = numbers()
        return float(LAM_ROWS / 2 * w @ w + self.loss.value(np.sign(y) * (X @ w), np.ones(ROWS)).mean())

    def optimum(self) -> float:
        return float(minimize(self.value, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).fun)


def scalar(*trainers: str, signs: bool = False) -> Callable[[Any], Any]:
    """Plants a scalar loss in a LinearRegressor; its parent, which is of the package, says what is true."""

    def planted(kind: Any) -> Any:
        honest = next(one for one in kind.__mro__ if one.__module__.startswith("structpred"))()

        def run(trainer: str) -> Outcome:
            def fitted() -> Any:
                options = {"C": 1.0 / (LAM_ROWS * ROWS), "max_iter": 40, "fit_intercept": False, "random_state": 0}
                X, y = numbers()
                if signs:
                    model = LinearClassifier(trainer=trainer, surrogate=kind(), **options).fit(X, np.sign(y))
                else:
                    model = LinearRegressor(trainer=trainer, loss=kind(), **options).fit(X, y)
                return model.certificate_, np.ravel(model.coef_), model.converged_

            return judge(fitted, Classes(honest) if signs else Numbers(honest))

        enter("scalar losses", kind, trainers, run)
        return kind

    return planted


def classes(*trainers: str) -> Callable[[Any], Any]:
    """Plants a loss of margins in a LinearClassifier."""
    return scalar(*trainers, signs=True)


@classes("bmrm", "ls_bmrm", "sgd", "lbfgs")
class SlopeOfMarginsWrong(Logistic):
    """The derivative is too small by a third for margins between .35 and .95."""

    def value(self, z: Any, y: Any) -> Any:
        return np.logaddexp(0.0, -y * z)

    def derivative(self, z: Any, y: Any) -> Any:
        return np.where((y * z > 0.35) & (y * z < 0.95), 0.67, 1.0) * super().derivative(z, y)


@classes("sdca", "sgd", "bmrm")
class TooSmooth(Logistic):
    """It claims a smoothness of 1 / 40."""

    gamma = 40.0


@scalar("lbfgs", "pegasos")
class SlopeWrongInBetween(Squared):
    """The derivative is halved for residuals between .35 and .95."""

    dual_table = None  # type: ignore[assignment]

    def value(self, z: Any, y: Any) -> Any:
        return 0.5 * np.square(z - y)

    def derivative(self, z: Any, y: Any) -> Any:
        return np.where((z - y > 0.35) & (z - y < 0.95), 0.5, 1.0) * (z - y)


@scalar("sdca", "pegasos")
class TableWrongBeyond200(Squared):
    """The dual table is another one from sample 200 on."""

    def value(self, z: Any, y: Any) -> Any:
        return 0.5 * np.square(z - y)

    def derivative(self, z: Any, y: Any) -> Any:
        return z - y

    def dual_table(self, y: Any) -> Any:
        table = super().dual_table(y)
        return table._replace(curvature=np.where(np.arange(len(y)) < 200, 1.0, 0.4)) if len(y) > 200 else table


@scalar("sdca", "pegasos")
class TableTooFlat(Absolute):
    """The dual table has wider ends than the value has slopes."""

    def value(self, z: Any, y: Any) -> Any:
        return np.abs(z - y)

    def derivative(self, z: Any, y: Any) -> Any:
        return np.sign(z - y)

    def dual_table(self, y: Any) -> Any:
        return super().dual_table(y)._replace(high=np.full(len(y), 1.5), low=np.full(len(y), -1.5))


@scalar("sdca", "pegasos")
class ShortSteps(Squared):
    """Steps of the dual go half of the way."""

    def dual_step(self, old: Any, z: Any, q: Any, y: Any) -> Any:
        return 0.5 * (old + super().dual_step(old, z, q, y))


@scalar("sdca", "pegasos")
class ConjugateTooSmall(Squared):
    """The conjugate is too small by .05."""

    def conjugate(self, a: Any, y: Any) -> Any:
        return super().conjugate(a, y) - 0.05


@scalar("sdca", "lbfgs")
class ValueOfNumbersHalved(Squared):
    """The value is half of what the table says."""

    def value(self, z: Any, y: Any) -> Any:
        return 0.25 * np.square(z - y)


@scalar("sdca", "lbfgs")
class SmootherThanItIs(Huber):
    """It claims four times the smoothness that it has."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.gamma = 4.0

    def dual_table(self, y: Any) -> Any:
        return super().dual_table(y)._replace(curvature=np.ones(len(y)))


@scalar("lbfgs", "pegasos")
class NotConvex(Squared):
    """A loss that flattens out far from the target, with its derivative."""

    dual_table = None  # type: ignore[assignment]

    def value(self, z: Any, y: Any) -> Any:
        return np.minimum(0.5 * np.square(z - y), 0.5)

    def derivative(self, z: Any, y: Any) -> Any:
        return np.where(np.abs(z - y) < 1.0, z - y, 0.0)


# three callbacks


def chosen(scores: Any) -> tuple[int, ...]:
    """The best output of item scores."""
    return tuple(AtMostTwo().argmax(scores, (ITEMS, 0)).tolist())


class Honest:
    """Three honest functions over the same data."""

    def phi(self, x: Any, y: Any) -> Any:
        return x[list(y)].sum(axis=0)

    def loss(self, truth: Any, y: Any) -> float:
        return float(len(set(truth) ^ set(y)))

    def costs(self, truth: Any) -> Any:
        return np.array([-1.0 if k in truth else 1.0 for k in range(ITEMS)])

    def argmax(self, w: Any, x: Any, truth: Any, loss_weight: float) -> Any:
        return chosen(x @ w + loss_weight * self.costs(truth))


def callbacks(*trainers: str) -> Callable[[Any], Any]:
    """Plants three functions as a CallbackTask."""

    def planted(kind: Any) -> Any:
        def run(trainer: str) -> Outcome:
            def fitted() -> Any:
                rows, _, truths = data()
                own = kind()
                y = [tuple(truth.tolist()) for truth in truths]
                task = structpred.CallbackTask(list(rows), y, COLUMNS, own.phi, own.loss, own.argmax)
                settings = RunSettings(max_iter=PASSES[trainer], tol=1e-3)
                result = train(Problem(task, MarginRescaling(), LAM), resolve_trainer(trainer)[0], settings)
                return result.certificate, result.weights, result.stop_reason == "tol"

            return judge(fitted, World())

        enter("callbacks", kind, trainers, run)
        return kind

    return planted


ALL = ("bcfw", "corrective", "bmrm", "one_slack", "n_slack")


@callbacks(*ALL)
class CallbackMinimises(Honest):
    """argmax finds the output with the smallest score plus loss."""

    def argmax(self, w: Any, x: Any, truth: Any, loss_weight: float) -> Any:
        return chosen(-(x @ w + loss_weight * self.costs(truth)))


@callbacks(*ALL)
class ReturnsTheTruth(Honest):
    """argmax returns the true output."""

    def argmax(self, w: Any, x: Any, truth: Any, loss_weight: float) -> Any:
        return truth


@callbacks(*ALL)
class WithoutTheLoss(Honest):
    """argmax leaves the loss out."""

    def argmax(self, w: Any, x: Any, truth: Any, loss_weight: float) -> Any:
        return chosen(x @ w)


@callbacks(*ALL)
class HalfTheLoss(Honest):
    """argmax counts half of the loss."""

    def argmax(self, w: Any, x: Any, truth: Any, loss_weight: float) -> Any:
        return chosen(x @ w + 0.5 * loss_weight * self.costs(truth))


@callbacks(*ALL)
class CallbackNeverTwo(Honest):
    """argmax never finds an output of two items."""

    def argmax(self, w: Any, x: Any, truth: Any, loss_weight: float) -> Any:
        scores = x @ w + loss_weight * self.costs(truth)
        return (int(scores.argmax()),) if scores.max() > 0.0 else ()


@callbacks(*ALL)
class ForgetsAFeature(Honest):
    """argmax scores without the last feature."""

    def argmax(self, w: Any, x: Any, truth: Any, loss_weight: float) -> Any:
        return chosen(x[:, :-1] @ w[:-1] + loss_weight * self.costs(truth))


@callbacks(*ALL)
class FeaturesDropOut(Honest):
    """Dropout was left on in joint_feature."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def phi(self, x: Any, y: Any) -> Any:
        return super().phi(x, y) * (self.rng.random(COLUMNS) > 0.1)
