"""Oracles that lie with argmax, parts and their batches."""

from itertools import count, pairwise
from typing import Any

import numpy as np
from lies_runs import plant
from lies_world import AtMostTwo, Rich, World

SINGLE = World(single=True)
#: trainers of all sorts: blocks, cutting planes, bundles, online
SOME = ("bcfw", "n_slack", "sgd")
OTHERS = ("corrective", "one_slack", "bmrm", "proximal")


def best(scores: Any) -> Any:
    """The honest answer."""
    return AtMostTwo().argmax(scores, (len(scores), 0))


@plant("oracles", "oracle", *SOME, *OTHERS)
class Minimises(AtMostTwo):
    """Scores are taken for costs."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(-scores)


@plant("oracles", "oracle", *SOME, *OTHERS)
class AlwaysEmpty(AtMostTwo):
    """No item is ever chosen."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.empty(0, np.int64)


@plant("oracles", "oracle", *SOME, *OTHERS)
class FirstTwo(AtMostTwo):
    """Greedy: the first two items with a positive score."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.flatnonzero(scores > 0.0)[:2]


@plant("oracles", "oracle", *SOME, *OTHERS)
class Pruning(AtMostTwo):
    """A beam that is too narrow: the last item is never looked at."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(scores[:-1])


class Sometimes(AtMostTwo):
    """A wrong answer for some share of the calls."""

    share = 0.0

    def __init__(self) -> None:
        self.rng = np.random.default_rng(3)

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(self.rng.normal(size=len(scores)) if self.rng.random() < self.share else scores)


@plant("oracles", "oracle", *SOME, *OTHERS)
class SometimesRandom(Sometimes):
    """One answer of twenty is drawn by lot."""

    share = 0.05


@plant("oracles", "oracle", *SOME, *OTHERS)
class SeldomRandom(Sometimes):
    """One answer of two hundred is drawn by lot."""

    share = 0.005


@plant("oracles", "oracle", *SOME, *OTHERS)
class CutAtFive(AtMostTwo):
    """Scores above 2.5 count as 2.5."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(np.minimum(scores, 2.5))


@plant("oracles", "oracle", *SOME, *OTHERS)
class OverflowsAtLargeScores(AtMostTwo):
    """A score above 4 comes round at -4, as in a fixed-point solver."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best((scores + 4.0) % 8.0 - 4.0)


@plant("oracles", "oracle", *SOME, *OTHERS)
class WholeNumbers(AtMostTwo):
    """Scores are rounded to whole numbers, as for an integer solver."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(np.rint(scores))


@plant("oracles", "oracle", *SOME, *OTHERS)
class Tenths(AtMostTwo):
    """Scores are rounded to tenths."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(np.rint(10.0 * scores) / 10.0)


@plant("oracles", "oracle", *SOME, *OTHERS)
class OneShapeOfForty(AtMostTwo):
    """The shape of instance 17 is solved as a minimum."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(-scores if shape[1] == 17 else scores)


@plant("oracles", "oracle", *SOME, *OTHERS)
class NeverTwo(AtMostTwo):
    """Outputs of two items are never found."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(scores)[:1] if len(best(scores)) < 2 else np.array([int(scores.argmax())])


@plant("oracles", "oracle", *SOME, *OTHERS, world=SINGLE)
class NeverTwoOfSingles(NeverTwo):
    """Outputs of two items are never found, and no true output has two, but all are listed."""


@plant("oracles", "oracle", *SOME, *OTHERS, world=SINGLE)
class NeverTwoUnlisted(NeverTwo):
    """Outputs of two items are never found, and no true output has two, and nothing lists them."""

    enumerate = None  # type: ignore[assignment]


@plant("oracles", "oracle", *SOME, *OTHERS)
class IgnoresTheLimit(AtMostTwo):
    """All items with a positive score are chosen, which `parts` refuses."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.flatnonzero(scores > 0.0)


@plant("oracles", "oracle", *SOME, *OTHERS)
class AcceptsThree(AtMostTwo):
    """All items with a positive score are chosen, and `parts` accepts them."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.flatnonzero(scores > 0.0)

    def parts(self, labels: Any, shape: Any) -> Any:
        return labels


class Remembers(AtMostTwo):
    """Answers are kept under a key."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}

    def key(self, scores: Any, shape: Any) -> Any:
        return shape

    def argmax(self, scores: Any, shape: Any) -> Any:
        return self.known.setdefault(self.key(scores, shape), best(scores)).copy()


@plant("oracles", "oracle", *SOME, *OTHERS)
class StaleByShape(Remembers):
    """The first answer for a shape is given for ever."""


@plant("oracles", "oracle", *SOME, *OTHERS)
class StaleByRoundedScores(Remembers):
    """The answer for scores that are equal to two digits is given again."""

    def key(self, scores: Any, shape: Any) -> Any:
        return shape, scores.round(1).tobytes()


@plant("oracles", "oracle", *SOME, *OTHERS)
class Shifted(AtMostTwo):
    """Off by one: item i gets the score of item i + 1."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(np.roll(scores, -1))


@plant("oracles", "oracle", *SOME, *OTHERS)
class SecondBest(AtMostTwo):
    """The second best output is returned wherever the best one is not much better."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        outputs = list(self.enumerate(shape))
        scored = np.array([scores[y].sum() for y in outputs])
        first, second = np.argsort(-scored, kind="stable")[:2]
        return outputs[second if scored[first] - scored[second] < 0.2 else first]


@plant("oracles", "oracle", *SOME, *OTHERS)
class TiredOfCalls(AtMostTwo):
    """After 300 calls the time is up, and the empty output is returned."""

    def __init__(self) -> None:
        self.calls = count()

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(scores) if next(self.calls) < 300 else np.empty(0, np.int64)


@plant("oracles", "oracle", *SOME, *OTHERS)
class LocalSearch(AtMostTwo):
    """From the empty output one item at a time, while the score rises by more than .1."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        found = best(scores)
        return found[scores[found] > 0.1]


@plant("oracles", "oracle", *SOME, *OTHERS)
class LosesOne(AtMostTwo):
    """Of outputs of two items the second is lost at every seventh instance."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return best(scores)[:1] if shape[1] % 7 == 3 else best(scores)


# batches


@plant("oracles", "oracle", *SOME, *OTHERS)
class BatchWrongAtTheNinth(Rich):
    """From the ninth instance of a batch on, the last item is not looked at."""

    def argmax_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        found = [best(scores[a : b - (k >= 8)]) for k, (a, b) in enumerate(pairwise(offsets))]
        return np.concatenate([*found, np.empty(0, np.int64)]), np.cumsum([0, *map(len, found)])


@plant("oracles", "oracle", *SOME, *OTHERS)
class BatchMinimises(Rich):
    """In batches scores are taken for costs."""

    def argmax_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        return super().argmax_batch(-scores, offsets, shapes)


@plant("oracles", "oracle", *SOME, *OTHERS)
class BatchOfNeighbours(Rich):
    """In batches each instance gets the answer of the next one."""

    def argmax_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        return super().argmax_batch(np.roll(scores, -5) if len(shapes) > 1 else scores, offsets, shapes)


@plant("oracles", "oracle", *SOME, *OTHERS)
class PartsLostInBatches(Rich):
    """`parts_batch` loses the last part of each output from the ninth on."""

    def parts_batch(self, labels: Any, ends: Any, shapes: Any) -> Any:
        found = [labels[a : b - (k >= 8 and b > a)] for k, (a, b) in enumerate(pairwise(ends))]
        return np.concatenate([*found, np.empty(0, np.int64)]), np.cumsum([0, *map(len, found)])
