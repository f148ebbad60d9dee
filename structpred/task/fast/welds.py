"""Compiled code that was written for one kind of feature map and one kind of oracle: a table, asked when the two meet.

The core asks, a layer above features and oracles fills the table: neither of the two has to know the other. Classes have names
here and are found by them, so nothing is imported to find that nothing was written.
"""

import logging
from importlib import import_module
from typing import Any, NamedTuple

from structpred.core.stand_ins import redefined

log = logging.getLogger("structpred.core")


class Weld(NamedTuple):
    """Code for `work`, for instances of these classes whose methods are as they were written. Names are "module:name".

    maker: a function of the feature map, the oracle and what else the work needs; it gives the code, or None where it has none.
    """

    work: str
    maker: str
    features: str
    feature_methods: tuple[str, ...]
    oracles: tuple[str, ...]
    oracle_methods: tuple[str, ...]


TABLE: list[Weld] = []


def register(*welds: Weld) -> None:
    """Ask these for all feature maps and oracles that meet from now on, after those that are there."""
    TABLE.extend(welds)


def find(work: str, features: object, oracle: object, *more: Any) -> Any:
    """The code for this work; None where none was written, or where a subclass changed what it was written for."""
    maps, oracles = ({f"{kind.__module__}:{kind.__qualname__}": kind for kind in type(x).__mro__} for x in (features, oracle))
    for weld in TABLE:
        name = next((name for name in weld.oracles if name in oracles), None)
        if weld.work != work or name is None or weld.features not in maps:
            continue
        written = (oracle, oracles[name], weld.oracle_methods), (features, maps[weld.features], weld.feature_methods)
        changed = [f"{type(x).__name__}.{method}" for x, kind, names in written if (method := redefined(x, kind, names))]
        if changed:
            log.info("no compiled %s for %s, which was overridden: using plain steps", work, changed[0])
            continue
        module, function = weld.maker.split(":")
        if (made := getattr(import_module(module), function)(features, oracle, *more)) is not None:
            return made
    return None
