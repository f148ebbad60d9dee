"""What the shared loop of trainers minimises for a loss of part scores, and which trainers go with which losses."""

from collections.abc import Callable

from structpred.core.oracle import OPTIONAL, Oracle, capabilities
from structpred.core.requirements import met
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.layers.fenchel_young import CRF, Entropy, FenchelYoung, Hard
from structpred.layers.loss import Layer, Loss
from structpred.layers.names import losses
from structpred.layers.spo_plus import SPOPlus
from structpred.layers.surrogates import LossSurrogate
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling, perceptron_loss
from structpred.trainers.names import trainers
from structpred.trainers.problem import Surrogate, Trainer


def surrogate_of(loss: Loss | Layer, trainer: Trainer) -> tuple[float, Surrogate]:
    """(scale, surrogate): over a task of regrets, with features `scale` times as large, the surrogate is this loss.

    Raises ParameterError, which says what goes together, where the trainer cannot minimise it.
    """
    own, oracle = _surrogate(loss), loss.oracle
    if own is not None and _fits(trainer, own[1]):
        return own
    has = capabilities(oracle) | {"project"}  # argmax is enough for it
    able = [(name, kind) for name, kind in trainers().items() if met(kind.requires, has)]
    fitting = [name for name, kind in able if own is not None and _fits(kind, own[1])]
    known = [name for name, kind in losses().items() if (found := _made(kind, oracle)) is not None and _fits(trainer, found[1])]
    who, what = trainer.name or type(trainer).__name__, loss.name or type(loss).__name__
    raise ParameterError(
        f"trainer={who!r} cannot minimise {'a layer, ' if isinstance(loss, Layer) else ''}loss={what!r}: take for this loss "
        f"trainer={_listed(['adam', *fitting])}, or for this trainer loss={_listed(known)}"
    )


def _surrogate(loss: Loss | Layer) -> tuple[float, Surrogate] | None:
    """The surrogate of a loss that is a hinge, or smooth; None for others and for layers, which are for Adam alone."""
    if _is_written_by(loss, SPOPlus):
        return loss.scale, MarginRescaling()  # type: ignore[union-attr]
    if isinstance(loss, FenchelYoung) and isinstance(loss.smoothing, Hard) and _is_written_by(loss, FenchelYoung):
        return loss.scale, MarginRescaling(loss.cost_weight)
    if isinstance(loss, CRF) and isinstance(loss.smoothing, Entropy) and loss.smoothing.temperature == 1.0:
        return 1.0, LogLoss()
    return (1.0, LossSurrogate(loss)) if isinstance(loss, Loss) and loss.smooth else None


def _is_written_by(loss: Loss | Layer, kind: type[Loss]) -> bool:
    """Whether it is of this class, and no subclass has changed what it computes."""
    return isinstance(loss, kind) and type(loss).terms is kind.terms


def _fits(trainer: Trainer | type[Trainer], surrogate: Surrogate) -> bool:
    if not met(trainer.requires, frozenset(OPTIONAL) | {"argmax"}):
        return False  # it is for rows of classes or label sets, whose costs are one table
    if isinstance(surrogate, MarginRescaling) and surrogate.loss_weight == 0.0:
        # zero weights minimise it: only for trainers that learn from mistakes and minimise no objective
        return trainer.surrogates[0] is perceptron_loss
    return trainer.minimises(surrogate)


def _made(kind: Callable[[Oracle], Loss], oracle: Oracle) -> tuple[float, Surrogate] | None:
    """The surrogate of the loss with its usual settings; None where it has none, or the oracle lacks what it needs."""
    try:
        return _surrogate(kind(oracle))
    except (MissingCapabilityError, TypeError):  # TypeError: a loss that has no usual settings
        return None


def _listed(names: list[str]) -> str:
    return " or ".join(map(repr, names)) or "(none of this package)"
