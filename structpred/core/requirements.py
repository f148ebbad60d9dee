"""The one place that says who needs what of an oracle, or of a regulariser, and does not get it."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from structpred.core import oracle as oracles
from structpred.core import regulariser as regularisers
from structpred.errors import MissingCapabilityError

Needs = Sequence[str | tuple[str, ...]]


class Family(NamedTuple):
    """What can have required methods: its plural, the parent class, what the optional methods are, which ones an object has."""

    plural: str
    parent: type
    optional: Mapping[str, str]
    capabilities: Callable[[object], frozenset[str]]


#: what no oracle can offer: training sets of rows do
OF_ROWS: dict[str, str] = {
    "rows": "rows with two classes or a number (models.LinearClassifier, LinearRegressor; core.linear_task)",
    "signed_rows": "rows with two classes (structpred.models.LinearClassifier; LinearTask)",
    "label_sets": "label sets that share a row of features (models.MultiLabelMRF, HierarchicalMultiLabel)",
    "label_rows": "rows with one label out of many (structpred.models.LinearClassifier; LabelRows)",
}

ORACLES = Family("Oracles", oracles.Oracle, oracles.OPTIONAL, oracles.capabilities)
REGULARISERS = Family("Regularisers", regularisers.Regulariser, regularisers.OPTIONAL, regularisers.capabilities)


def require(
    needs: Needs, oracle: object, who: str, having: frozenset[str] | None = None, *, family: Family = ORACLES, advice: str = ""
) -> None:
    """Raise MissingCapabilityError unless `oracle` has every method of `needs`; a tuple means any one of them.

    `having` replaces the oracle's own list (a task may give up some of its oracle's methods). family: of what the oracle is one.
    advice: a sentence to end with; where there is one, people are not asked to write methods into files of this package.

    >>> require(("argmax", ("marginals", "kbest")), object(), "trainer X", frozenset({"argmax", "kbest"}))
    """
    has = family.capabilities(oracle) if having is None else having
    for need in needs:
        alternatives = (need,) if isinstance(need, str) else need
        if not has.intersection(alternatives):
            raise MissingCapabilityError(_message(alternatives, oracle, who, has, family, own_code=not advice) + advice)


def met(needs: Needs, has: frozenset[str]) -> bool:
    """Whether every need is met."""
    return all(has.intersection((need,) if isinstance(need, str) else need) for need in needs)


def _message(alternatives: tuple[str, ...], oracle: object, who: str, has: frozenset[str], family: Family, own_code: bool) -> str:
    kind = oracle if isinstance(oracle, type) else type(oracle)
    owners = sorted({cls.__name__ for cls in _known(family.parent) for name in alternatives if hasattr(cls, name)})
    if all(name in OF_ROWS for name in alternatives):
        return f"{who} is for {' or '.join(OF_ROWS[name] for name in alternatives)} alone, not for {kind.__name__}"
    signatures = "; ".join(f"{name}{family.optional.get(name, '')}" for name in alternatives if name not in OF_ROWS)
    listed = "marginals" in alternatives and "enumerate" in has  # explicit: the time goes with the number of outputs
    return (
        f"{who} needs {' or '.join(alternatives)}, which {kind.__name__} does not have. "
        f"It has: {', '.join(sorted(has)) or 'nothing'}. "
        f"{family.plural} that have it: {', '.join(owners) or 'none of those loaded'}"
        + (". EnumeratedOracle.of(oracle) has it, for shapes of up to 262,144 outputs, which it lists" if listed else "")
        + (f". To add it, write in {_file_of(kind)}: {signatures}" if own_code or not is_ours(kind) else "")
    )


def _known(parent: type) -> Iterator[type]:
    child: type
    for child in parent.__subclasses__():
        yield child
        yield from _known(child)


def is_ours(kind: type) -> bool:
    """Whether a class is of this package."""
    return kind.__module__.split(".")[0] == __name__.split(".")[0]


def _file_of(kind: type) -> str:
    try:
        return inspect.getsourcefile(kind) or "its class"
    except (TypeError, OSError):  # built-in or typed at a prompt: there is no file to name
        return f"class {kind.__qualname__}"
