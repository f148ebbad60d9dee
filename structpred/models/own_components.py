"""Components of a user's own: the contract checks judge them before training, once for each class or function and process."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Oracle, Shape
from structpred.core.own_code import own_code, raised
from structpred.core.regulariser import Regulariser
from structpred.core.result import Result
from structpred.errors import MissingCapabilityError, OracleError, StructpredError
from structpred.rows.scalar_loss import ScalarLoss
from structpred.task.steps import TaskLike
from structpred.task.task import Task
from structpred.trainers.problem import Surrogate, Trainer

if TYPE_CHECKING:
    from structpred.layers.loss import Layer, Loss

#: the most calls of an oracle in its check, half of them for argmax alone; of one that says that it is expensive
MAX_CALLS, MAX_EXPENSIVE = 1000, 250
#: training shapes, the smallest, that are tried besides the oracle's examples, and the most parts that these may have
_N_SHAPES, _MOST_PARTS = 2, 2000
#: what has passed in this process, by weak references
_PASSED: set[frozenset[Any]] = set()
Sizes = npt.NDArray[np.int64]


class Component(NamedTuple):
    """What training relies on, and its check. known: what is judged with another component. anew: each object is judged."""

    role: str
    thing: object
    check: Callable[[], object]
    known: frozenset[Any] = frozenset()
    anew: bool = False


def components_of(task: TaskLike, trainer: object, surrogate: Surrogate, regulariser: Regulariser) -> Iterator[Component]:
    """All that training relies on and that has a contract."""
    known: frozenset[Any] = frozenset()
    if isinstance(task, Task):
        yield Component("oracle", task.oracle, partial(_check_oracle, task.oracle, task.shapes, task.inference.sizes))
        known = own_code(task.oracle)
        yield Component("feature map", task.features, partial(_check, "feature_map", task.features), known, True)
        if hasattr(task.loss, "costs"):  # one that differs by sample is asked, and checked, when the task is made
            yield Component("loss", task.loss, partial(_check_loss, task), known)
    scalar = isinstance(surrogate, ScalarLoss)
    check = partial(_check, "scalar_loss", surrogate) if scalar else partial(_check, "surrogate", surrogate, task)
    yield Component("surrogate", surrogate, check, known)
    yield Component("regulariser", regulariser, partial(_check, "regulariser", regulariser))
    yield Component("trainer", trainer, partial(_check_trainer, trainer))


def components_of_scores(loss: "Loss | Layer", trainer: object, shapes: Sequence[Shape], sizes: Sizes) -> Iterator[Component]:
    """The same where a loss or layer of part scores is trained on instances of these shapes, with these numbers of parts."""
    yield Component("oracle", loss.oracle, partial(_check_oracle, loss.oracle, shapes, sizes))
    check = partial(_check, "layer" if hasattr(loss, "point") else "score_loss", loss)
    yield Component("loss", loss, check, own_code(loss.oracle))
    yield Component("trainer", trainer, partial(_check_trainer, trainer))


def check_own(components: Iterable[Component], wanted: bool) -> bool | None:
    """What certificates say as `checked`: True where all components from outside keep their contracts, None where there are none.

    False: that was not to be checked (`wanted`). Raises what the check of the first that does not raises, before any work.
    """
    own = [(one, code) for one in components if (code := own_code(one.thing) - one.known)]
    for one, code in own if wanted else ():
        key = frozenset(ref(each) for each in (type(one.thing), *code, *((one.thing,) if one.anew else ())))
        if key in _PASSED:
            continue
        try:
            one.check()
        except Exception as error:
            kind, message = (type(error), error) if isinstance(error, StructpredError) else (OracleError, raised(error))
            raise kind(
                f"training has not begun: the {one.role} {type(one.thing).__name__} does not keep its contract "
                f"(check_components=False trains without this check)\n{message}"
            ) from error
        _PASSED.add(key)
    return bool(wanted) if own else None


def marked(result: Result, checked: bool | None) -> Result:
    """The result with a certificate that says whether components of a user's own were checked."""
    return replace(result, certificate=replace(result.certificate, checked=checked))


def _check(name: str, *args: Any, **options: Any) -> None:
    """Call a contract check; imported here, so that programs without components of their own do not import it."""
    from structpred.contracts import checks, losses, regularisers, score_losses, training

    places = (checks, losses, regularisers, score_losses, training)
    next(check for place in places if (check := vars(place).get(f"check_{name}")))(*args, **options)


def _check_loss(task: Task) -> None:
    """On shapes of training alone: a table of costs fits no other labels."""
    _check("loss", task.loss, task.oracle, shapes=_smallest(task.shapes, task.inference.sizes), max_calls=MAX_CALLS)


def _check_oracle(oracle: Oracle, shapes: Sequence[Shape], sizes: Sizes) -> None:
    real = [shape for shape in _smallest(shapes, sizes) if oracle.n_parts(shape) <= _MOST_PARTS]
    tried = [*real, *(shape for shape in oracle.example_shapes() if shape not in real)]
    n_random, calls = (1, MAX_EXPENSIVE) if oracle.expensive else (5, MAX_CALLS)
    _check("oracle", oracle, shapes=tried, n_random=n_random, max_calls=calls)
    if callable(getattr(oracle, "marginals", None)):
        _check("marginals", oracle, shapes)


def _check_trainer(trainer: object) -> None:
    """On a few rows of classes; one that needs what these do not have is judged where its run ends."""
    if isinstance(trainer, Trainer):
        with suppress(MissingCapabilityError):
            _check("trainer", trainer)


def _smallest(shapes: Sequence[Shape], sizes: Sizes) -> list[Shape]:
    """Different shapes with the fewest parts."""
    return list(dict.fromkeys(shapes[i] for i in np.argsort(sizes, kind="stable").tolist()))[:_N_SHAPES]
