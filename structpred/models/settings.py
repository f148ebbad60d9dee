"""What users give: names in place of trainers, losses and regularisers, and held-out data."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from inspect import signature
from typing import Any

from structpred.core.costs import Cost, missing_method
from structpred.core.oracle import Oracle
from structpred.core.regulariser import Regulariser
from structpred.errors import DataError, ParameterError
from structpred.models.sklearn_bridge import Estimator
from structpred.objectives.names import losses, regularisers
from structpred.text.suggestions import SYNONYMS, named, synonym
from structpred.trainers.names import trainers
from structpred.trainers.problem import Surrogate, Trainer


def new_estimator(kind: type[Any], *settings: Any, **named: Any) -> Any:
    """An estimator without settings yet. ParameterError for a setting by the name that another library gives it."""
    for name in SYNONYMS["parameter"].keys() & named.keys() - signature(kind.__init__).parameters.keys():
        raise ParameterError(f"{kind.__name__} has no setting {name!r}{synonym('parameter', name)}")
    return object.__new__(kind)


def foreign_attribute(model: Any, name: str) -> Any:
    """AttributeError for a name that an estimator lacks; one that other libraries give to a method is answered with ours."""
    own = "predict_proba" if hasattr(type(model), "predict_proba") else "predict_marginals"
    if name == "predict_proba" and hasattr(type(model), own):
        raise AttributeError(f"{type(model).__name__} has no predict_proba as it is{synonym('attribute', own)}")
    return Estimator.__getattr__(model, name)  # type: ignore[attr-defined]


@cache
def surrogates() -> dict[str, Callable[[], Surrogate]]:
    """The surrogates that go by a name, loaded when one is named or read; losses of scores are for linear models."""
    from structpred.layers.surrogates import PerturbedSurrogate, SoftMargin, SparseMAPSurrogate
    from structpred.objectives.log_loss import LogLoss
    from structpred.objectives.margin import MarginRescaling
    from structpred.objectives.names import multiclass_losses, scalar_losses
    from structpred.slack.surrogate import SlackRescaling

    return {
        "margin": MarginRescaling, "log": LogLoss, "slack": SlackRescaling, "perturbed": PerturbedSurrogate,
        "soft_margin": SoftMargin, "sparsemap": SparseMAPSurrogate, **scalar_losses(), **multiclass_losses(),
    }  # fmt: skip


def checked_oracle(oracle: Any) -> Oracle:
    """The oracle; ParameterError for anything else, such as its class."""
    if not isinstance(oracle, Oracle):
        function = "; for a function of costs SolverOracle(solve, n_parts)" if callable(oracle) else ""
        hint = f": give an instance, {oracle.__name__}(...)" if isinstance(oracle, type) else function
        raise ParameterError(f"oracle: expected an instance of a subclass of structpred.Oracle, got {oracle!r}{hint}")
    return oracle


def resolve_surrogate(surrogate: str | Surrogate) -> Surrogate:
    """The surrogate for a name, or the object itself."""
    if isinstance(surrogate, str):
        return named("surrogate", surrogate, surrogates(), " or an object")()
    if isinstance(surrogate, type) or not all(hasattr(surrogate, name) for name in ("term", "values", "piecewise_linear")):
        raise ParameterError(f"surrogate: expected a name or an instance such as LogLoss(), got {surrogate!r}")
    return surrogate


def resolve_trainer(trainer: str | Trainer) -> tuple[Trainer, Surrogate]:
    """The trainer and its default surrogate, for a name or an instance. Raises ParameterError for anything else."""
    if isinstance(trainer, str):
        trainer = trainer_kind(trainer)()
    if not isinstance(trainer, Trainer):
        raise ParameterError(f"trainer: expected a name or an instance such as BCFW(gap_sampling=True), got {trainer!r}")
    return trainer, trainer.surrogates[0]()


def trainer_kind(name: str) -> type[Trainer]:
    """The class of the trainers of a name."""
    return named("trainer", name, trainers(), " or a trainer object")


def resolve_loss(loss: str | Cost) -> Cost:
    """The loss object for a name, or the object itself if it has `costs`."""
    if isinstance(loss, str):
        return named("loss", loss, losses(), " (of label sets f1, subset, too) or an object with a method costs")()
    if (reason := missing_method(loss)) is not None:
        raise ParameterError(f"loss: {reason}")
    return loss


def resolve_regulariser(regulariser: str | Regulariser | None, trainer: Trainer) -> Regulariser:
    """The regulariser for a name, or the object itself; the trainer's own for None. Raises ParameterError for anything else."""
    if regulariser is None:
        return trainer.default_regulariser()
    if isinstance(regulariser, str):
        return named("regulariser", regulariser, regularisers(), " or a regulariser object")()
    if not isinstance(regulariser, Regulariser):
        raise ParameterError(f"regulariser: expected a name or an instance of a Regulariser such as L1(0.1), got {regulariser!r}")
    return regulariser


def settings_restored(saved: Any) -> Any:
    """The inverse of settings_of for names, and for trainers, surrogates and regularisers of ours.

    Anything else becomes a text that no setting accepts, so that a second fit fails instead of training with other settings.
    """
    if isinstance(saved, str):
        return saved
    name, values = saved["class"], saved["settings"]
    restorable: list[Callable[..., Any]] = [*trainers().values(), *surrogates().values(), *regularisers().values()]
    for kind in restorable:
        if kind.__name__ == name and "free_digest" not in values:  # OWLQN's array of free weights is not a plain setting
            return kind(**values)
    return f"{name} (an object that model files do not hold; give it again)"


def settings_of(thing: Any) -> dict[str, Any] | str:
    """A name as it is; an object as its class name and its plain settings, for the header of a model file."""
    if isinstance(thing, str):
        return thing
    plain = {key: value for key, value in getattr(thing, "__dict__", {}).items() if isinstance(value, bool | int | float | str)}
    return {"class": type(thing).__name__, "settings": plain}


def dev_parts(dev: Any, names: str) -> tuple[Any, ...]:
    """The held-out data as a tuple of as many parts as there are names; ParameterError for anything else."""
    if not isinstance(dev, tuple | list) or len(dev) != len(names.split(",")):
        came = f"{len(dev)} of them" if isinstance(dev, tuple | list) else type(dev).__name__
        raise ParameterError(f"dev: expected a tuple ({names}), got {came}")
    return tuple(dev)


@contextmanager
def about_dev() -> Iterator[None]:
    """Errors in the held-out data say that they are in the held-out data."""
    try:
        yield
    except DataError as error:
        raise DataError(f"dev: {error}") from error
