"""The examples of composed structures: their answers against enumeration and HiGHS, and what they print."""

import importlib.util
import re
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

ROOT = Path(__file__).resolve().parent.parent.parent


def example(name: str) -> ModuleType:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(name: str, *arguments: str) -> str:
    """What the example prints."""
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=ROOT, check=False)
    if done.returncode == 1 and done.stderr.startswith("there is no "):
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_documents_with_links_are_decoded_as_enumeration_does() -> None:
    """The best labels of small documents with several links, and with none, are the best of all."""
    skip, rng = example("skip_chain"), np.random.default_rng(0)
    oracle = skip.SkipChains([])
    for shape in [(2, (2, 1), ()), (2, (2, 3), ((0, 1, 1, 0),)), (3, (1, 2, 2), ((0, 0, 1, 1), (1, 1, 2, 0), (0, 0, 2, 1)))] * 4:
        theta = rng.normal(size=oracle.n_parts(shape))
        listed = [np.array(y, dtype=np.int64) for y in product(range(shape[0]), repeat=sum(shape[1]))]
        best = max(float(theta[oracle.parts(y, shape)].sum()) for y in listed)
        found = oracle.argmax(theta, shape)
        assert float(theta[oracle.parts(found, shape)].sum()) == pytest.approx(best, abs=1e-9)


def highs(relations: ModuleType, theta: np.ndarray, shape: tuple) -> float:  # type: ignore[type-arg]
    """The best score by a mixed-integer program, circles forbidden as they come up."""
    n, spans, _, _ = shape
    first, needs, jobs, pairs, _ = relations.ORACLE.rules_of(shape)
    rows: list[tuple[dict[int, float], float, float]] = []
    for t in range(n):  # the token is in no span, or in one
        inside = [k for k, (a, b) in enumerate(spans) if a <= t < b]
        rows.append(({t: 1.0, **{n + 3 * k + c: 1.0 for k in inside for c in range(3)}}, 1.0, 1.0))
    rows += [({first + k: 1.0, int(part): -1.0}, -1.0, 0.0) for k, row in enumerate(needs) for part in row]
    rows += [({part: 1.0 for part in parts}, 0.0, 1.0) for parts in jobs] + [({a: 1.0, b: -1.0}, 0.0, 0.0) for a, b in pairs]
    while True:
        A = np.zeros((len(rows), len(theta)))
        for row, (entries, _, _) in zip(A, rows, strict=True):
            row[list(entries)] = list(entries.values())
        limits = LinearConstraint(A, [low for _, low, _ in rows], [high for _, _, high in rows])
        found = milp(-theta, constraints=limits, integrality=np.ones(len(theta)), bounds=Bounds(0, 1))
        labels = np.flatnonzero(np.rint(found.x))
        if (circle := relations.circle_in(labels, shape)) is None:
            return float(theta[labels].sum())
        rows.append(({first + k: 1.0 for k in circle}, 0.0, len(circle) - 1.0))


@pytest.mark.parametrize("planted", [False, True])
def test_relations_are_the_best_under_the_schema(planted: bool) -> None:
    """The proven best output is that of HiGHS, in small texts with all rules, circles among them; no beam is above it."""
    relations, rng, n_circles = example("relations"), np.random.default_rng(1), 0
    for _ in range(4):
        theta, shape = relations.made(rng, planted, 6, 60, 20)
        if not planted:  # places that lie in each other
            theta[20 + relations.PLACE : 20 + 3 * 6 : 3] += 2.0
            theta[38:][[kind == relations.LIES_IN for _, _, kind in shape[2]]] += 2.0
        labels = relations.decode(relations.ORACLE, theta, shape)
        value = float(theta[labels].sum())
        assert relations.circle_in(labels, shape) is None
        assert value == pytest.approx(highs(relations, theta, shape), abs=1e-6)
        assert relations.greedy(theta, shape) <= relations.greedy(theta, shape, 50) + 1e-9 <= value + 2e-9
        n_circles += relations.circle_in(relations.ORACLE.argmax(theta, shape), shape) is not None
    assert n_circles or planted


@pytest.mark.slow
def test_the_relations_example_is_better_than_a_beam() -> None:
    """relations: of scores at random neither greedy nor beam find all; of a truth with noise the beam comes near."""
    shares = [float(x) for x in re.findall(r"([0-9.]+) % of its score", printed("relations", "--quick"))]
    assert len(shares) == 4
    assert all(share <= 100 for share in shares)
    assert shares[0] < shares[1] < 100


@pytest.mark.slow
def test_the_skip_chain_example_says_what_links_bring() -> None:
    """skip_chain: figures of held-out documents for each reward, of sentences alone, and of documents with links."""
    lines = printed("skip_chain", "--quick").splitlines()
    figures = [float(re.findall(r"F1 ([0-9.]+) %", line)[0]) for line in lines]
    assert len(re.findall("reward", lines[0])) == 5
    assert min(figures) > 50
    assert abs(figures[1] - figures[2]) < 3


@pytest.mark.slow
def test_the_example_of_tags_and_trees_says_what_is_proven() -> None:
    """tags_and_trees: heads and tags of the pipeline and of both together, and nearly all answers are proven."""
    lines = printed("tags_and_trees", "--quick").splitlines()
    alone, together = (list(map(float, re.findall("([0-9.]+) %", line))) for line in lines)
    assert min(*alone, *together) > 50
    assert together[0] > alone[0] - 3
    assert together[1] > alone[1] - 3
    assert together[2] > 90
