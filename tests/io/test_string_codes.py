"""Promises of numbered strings: the numbers that a dictionary would give, whatever was forgotten in between."""

import random

import numpy as np

from structpred.io.string_codes import StringCodes


class Alike(str):
    """A string of the same hash as all others of its kind."""

    def __hash__(self) -> int:
        return 7


def test_numbers_in_order_of_appearance() -> None:
    """Strings that come again after they were forgotten get their first number, those of equal hashes a number each."""
    rng = random.Random(0)
    kinds = [str, Alike]
    strings = [kinds[k % 2](f"w{k}") for k in (rng.randrange(400) for _ in range(2000))]
    codes, places, settled = StringCodes(), np.empty(len(strings), np.int32), 0
    for k, string in enumerate(strings):
        places[k] = codes[string]
        if len(codes) > 50:
            codes.settle(places[settled : k + 1])
            settled = k + 1
    codes.settle(places[settled:])
    assert codes.names == list(dict.fromkeys(strings))
    assert list(map(codes.names.__getitem__, places.tolist())) == strings
