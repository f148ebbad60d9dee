"""Entities and typed relations under a schema, decoded together: proven best, beside greedy and beam decoding.

Candidate spans have a score for each type, candidate relations one each. Spans do not overlap and have one type; a relation needs
arguments of the right types; a person works for one organisation at most; siblings are mutual; places lie in no circle. All spans
are one member, the best path through the text; each rule is a formula or a budget. The candidates are made here, in two kinds:
scores at random, and scores of a truth with noise.

    python examples/relations.py
    python examples/relations.py --quick
"""

import argparse
import time

import numpy as np

from structpred.core.scores import kept_for_shapes
from structpred.oracles import Budget, Composed, Logic, ShortestPathOracle
from structpred.oracles.composition.layout import Member
from structpred.oracles.decisions.truths import TruthOracle
from structpred.oracles.shortest_path import path_shape

PERSON, ORGANISATION, PLACE = range(3)
#: of each relation the types of its arguments; then what else is said of it
SCHEMA = [(PERSON, PLACE), (PERSON, ORGANISATION), (PLACE, PLACE), (ORGANISATION, PLACE), (PERSON, PERSON)]
WORKS_FOR, LIES_IN, SIBLING = 1, 2, 4


class Needs(TruthOracle):
    """A rule of one's own: where the first part is on, all others are."""

    def best(self, scores):
        """All on, or the first one off and of the others those with positive scores."""
        off = (scores > 0).astype(np.int64)
        off[:, 0] = 0
        return np.where((scores * (1 - off)).sum(axis=1, keepdims=True) > 0, 1, off)


class Schema(Composed):
    """shape = (number of tokens, spans (start, end), relations (span, span, kind), sets of relations that make circles).

    Part t < tokens: token t is in no span; then three parts a span, its types; then one a relation. Labels: parts that are on.
    """

    path, needs, mutual, one, broken = ShortestPathOracle(), Needs(), Logic("iff"), Budget(at_most=1), Logic("not_all")

    def __init__(self):
        super().__init__([])
        self.rules_of = kept_for_shapes(self.rules)

    def rules(self, shape):
        """(the first relation, what each one needs, sets of which one may be on, of which all or none are, of which not all)."""
        n, spans, relations, circles = shape
        first, works = n + 3 * len(spans), {}
        place = {relation: first + k for k, relation in enumerate(relations)}
        for (i, _, kind), part in place.items():
            works.setdefault((i, kind), []).append(part)
        needs = [[n + 3 * i + SCHEMA[kind][0], n + 3 * j + SCHEMA[kind][1]] for i, j, kind in relations]
        jobs = [parts for (_, kind), parts in works.items() if kind == WORKS_FOR and len(parts) > 1]
        pairs = [[part, place[j, i, k]] for (i, j, k), part in place.items() if k == SIBLING and i < j and (j, i, k) in place]
        return first, np.array(needs), jobs, pairs, [[first + k for k in circle] for circle in circles]

    def members(self, shape):
        """The path through the text, then the rules."""
        first, needs, *sets = self.rules_of(shape)
        edges = [*((t, t + 1) for t in range(shape[0])), *(span for span in shape[1] for _ in range(3))]
        found = [Member(self.path, path_shape(shape[0] + 1, edges), np.arange(first))]
        found += [Member(self.needs, (3,), np.array([first + k, *row])) for k, row in enumerate(needs)]
        for oracle, groups in zip((self.one, self.mutual, self.broken), sets, strict=True):
            found += [Member(oracle, (len(parts),), np.array(parts)) for parts in groups]
        return found

    def output_of(self, answers, shape):
        """The best path, and of the relations that are on without it those that the rules allow."""
        first, needs, jobs, pairs, circles = self.rules_of(shape)
        on = np.zeros(first + len(needs), bool)
        on[answers[0]] = True
        on[first:] = np.array(answers[1 : 1 + len(needs)])[:, 0] & on[needs].all(axis=1)
        for parts in jobs:
            on[parts] &= np.cumsum(on[parts]) == 1
        for parts in pairs:
            on[parts] = on[parts].all()
        for parts in circles:
            on[parts[-1]] &= not on[parts].all()
        return np.flatnonzero(on)

    def parts(self, labels, shape):
        """The labels themselves; ValueError where a rule is broken."""
        first, needs, *_ = self.rules_of(shape)
        on = np.zeros(first + len(needs), np.int64)
        on[labels] = 1
        for member in self.members(shape)[1:]:
            member.oracle.parts(on[member.parts], member.shape)
        return labels

    def parts_batch(self, labels, ends, shapes):
        """The labels themselves: `output_of` keeps the rules."""
        return labels, ends


def circle_in(labels, shape):
    """Relations of places that lie in each other, in a circle; None where there is none."""
    first = shape[0] + 3 * len(shape[1])
    inside = {}
    for k in labels[labels >= first] - first:
        i, j, kind = shape[2][k]
        if kind == LIES_IN:
            inside.setdefault(i, []).append((j, int(k)))
    stack = [(start, ()) for start in inside]
    while stack:
        span, way = stack.pop()
        for j, k in inside.get(span, []):
            if k in way:
                return way[way.index(k) :]
            stack.append((j, (*way, k)))
    return None


def decode(oracle, theta, shape):
    """The best output; circles are forbidden when they come up."""
    while True:
        labels = oracle.argmax(theta, shape)
        if (circle := circle_in(labels, shape)) is None:
            return labels
        shape = (*shape[:3], (*shape[3], circle))


def made(rng, planted, n_spans=100, n_relations=200, n_tokens=150):
    """(scores, shape) of one text; planted: scores of a truth, the best output for scores at random, with noise."""
    starts = rng.integers(0, n_tokens - 5, n_spans)
    spans = tuple(zip(starts.tolist(), (starts + rng.integers(1, 6, n_spans)).tolist(), strict=True))
    drawn = set()
    while len(drawn) < n_relations:
        i, j, kind = rng.integers(n_spans), rng.integers(n_spans), rng.integers(len(SCHEMA))
        drawn |= {(int(i), int(j), int(kind)), *([(int(j), int(i), SIBLING)] if kind == SIBLING else [])} if i != j else set()
    shape = (n_tokens, spans, tuple(sorted(drawn)), ())
    theta = np.append(np.zeros(n_tokens), rng.normal(size=3 * n_spans + len(drawn)))
    if planted:
        truth = np.isin(np.arange(len(theta)), decode(ORACLE, theta, shape))
        theta[n_tokens:] = (rng.normal(size=len(theta)) + np.where(truth, 1.0, -1.5))[n_tokens:]
    return theta, shape


ORACLE = Schema()


def greedy(theta, shape, width=1):
    """Spans from left to right, with the relations to those before, and the best hypotheses: as many as `width`."""
    n, spans, relations, _ = shape
    first, needs, *_ = ORACLE.rules_of(shape)
    later = [[] for _ in spans]
    order = sorted(range(len(spans)), key=lambda k: spans[k])
    rank = np.argsort(order)
    for k, (i, j, _) in enumerate(relations):
        later[max(i, j, key=lambda span: rank[span])].append(k)
    kept = [(0.0, 0, frozenset())]
    for span in order:
        new = list(kept)
        for score, end, on in kept:
            for part in range(n + 3 * span, n + 3 * span + 3) if spans[span][0] >= end else ():
                total, chosen = score + theta[part], on | {part}
                for k in sorted(later[span], key=lambda k: -theta[first + k]):
                    i, j, kind = relations[k]
                    both = {first + k} | ({first + relations.index((j, i, kind))} if kind == SIBLING else set())
                    gain = sum(theta[part] for part in both)
                    trial = np.array(sorted(chosen | both))
                    if gain > 0 and not both & chosen and set(needs[k]) <= chosen and allowed(trial, shape):
                        total, chosen = total + gain, chosen | both
                new.append((total, spans[span][1], chosen))
        kept = sorted(new, key=lambda one: -one[0])[:width]
    return kept[0][0]


def allowed(labels, shape):
    """Whether relations keep the rules for single jobs and for circles."""
    _, _, jobs, _, _ = ORACLE.rules_of(shape)
    return all(np.isin(parts, labels).sum() <= 1 for parts in jobs) and circle_in(labels, shape) is None


def main():
    """Decode texts of both kinds in three ways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few and small texts")
    quick = parser.parse_args().quick
    for planted in (False, True):
        rng = np.random.default_rng(0)
        texts = [made(rng, planted, *((20, 40, 40) if quick else (100, 200, 150))) for _ in range(5 if quick else 20)]
        decode(ORACLE, *texts[0])
        start = time.process_time()
        best = [float(theta[decode(ORACLE, theta, shape)].sum()) for theta, shape in texts]
        each = (time.process_time() - start) / len(texts)
        print(f"scores {'of a truth with noise' if planted else 'at random'}:")
        print(f"  proven best: {1000 * each:.1f} ms a text")
        for name, width in (("greedy", 1), ("beam of 20", 20)):
            start = time.process_time()
            found = [greedy(theta, shape, width) for theta, shape in texts]
            each = (time.process_time() - start) / len(texts)
            share, same = 100 * np.mean(found) / np.mean(best), 100 * np.mean(np.isclose(found, best))
            print(f"  {name}: {share:.1f} % of its score, {same:.0f} % best, {1000 * each:.1f} ms a text")


if __name__ == "__main__":
    main()
