"""The one place that says who needs what of an oracle and does not get it."""

import inspect
from collections.abc import Iterator, Sequence

from structpred.core.oracle import OPTIONAL, Oracle, capabilities
from structpred.errors import MissingCapabilityError

Needs = Sequence[str | tuple[str, ...]]


def require(needs: Needs, oracle: object, who: str, having: frozenset[str] | None = None) -> None:
    """Raise MissingCapabilityError unless `oracle` has every method of `needs`; a tuple means any one of them.

    `having` replaces the oracle's own list (a task may give up some of its oracle's methods).

    >>> require(("argmax", ("marginals", "kbest")), object(), "trainer X", frozenset({"argmax", "kbest"}))
    """
    has = capabilities(oracle) if having is None else having
    for need in needs:
        alternatives = (need,) if isinstance(need, str) else need
        if not has.intersection(alternatives):
            raise MissingCapabilityError(_message(alternatives, oracle, who, has))


def _message(alternatives: tuple[str, ...], oracle: object, who: str, has: frozenset[str]) -> str:
    kind = oracle if isinstance(oracle, type) else type(oracle)
    owners = sorted({cls.__name__ for cls in _known_oracles(Oracle) for name in alternatives if hasattr(cls, name)})
    signatures = "; ".join(f"{name}{OPTIONAL.get(name, '')}" for name in alternatives)
    return (
        f"{who} needs {' or '.join(alternatives)}, which {kind.__name__} does not have. "
        f"It has: {', '.join(sorted(has)) or 'nothing'}. "
        f"Oracles that have it: {', '.join(owners) or 'none of those loaded'}. "
        f"To add it, write in {_file_of(kind)}: {signatures}"
    )


def _known_oracles(parent: type) -> Iterator[type]:
    child: type
    for child in parent.__subclasses__():
        yield child
        yield from _known_oracles(child)


def _file_of(kind: type) -> str:
    try:
        return inspect.getsourcefile(kind) or "its class"
    except (TypeError, OSError):  # built-in or typed at a prompt: there is no file to name
        return f"class {kind.__qualname__}"
