"""Best dependency trees compared with TurboParser's decoder (ufal.chu_liu_edmonds) and networkx: ``python benchmarks/trees.py``.

Microseconds of CPU time a tree, everybody on the same scores in one process, in turns, the least of several rounds: other
programs on the machine only ever add time. "compiled" is one call for all trees of a length (argmax_batch); "from Python" is
one call of argmax a tree, in a loop, as ufal and networkx are called. What they want to be given (a matrix with NaN, a graph)
is made before the clock starts. The peers allow several roots; we are measured with that and with a single root. --quick takes
short sentences and few rounds.

Scores: "gaussian" (independent, so that most heads first go round in circles), and "parser-like" (one head of each token is far
ahead, as a trained parser has it, and these heads form a tree, but for one token in ten).
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from measure import Stopwatch, in_child, machine, table, verdict

LENGTHS = (10, 20, 40, 80, 160)
#: so many times as fast as ufal: all trees of a length in one call, and one call of argmax a tree
GOALS = {"compiled": 5.0, "from Python": 3.0}
#: more tokens than this would take networkx half a minute
NETWORKX_LENGTHS = (10, 20, 40, 80)


def gaussian(rng: Any, n: int) -> Any:
    """Independent standard normal scores."""
    return rng.normal(size=n * (n + 1))


def parser_like(rng: Any, n: int) -> Any:
    """Normal scores, and 6 more for one head of each token: that of a random tree, for nine tokens out of ten."""
    scores = rng.normal(size=(n, n + 1))
    order = rng.permutation(n) + 1
    for k, m in enumerate(order.tolist()):
        head = 0 if k == 0 else int(order[rng.integers(k)])
        if rng.random() < 0.1:
            head = int(rng.choice([h for h in range(n + 1) if h != m]))
        scores[m - 1, head] += 6.0
    return scores.ravel()


KINDS: dict[str, Callable[[Any, int], Any]] = {"gaussian": gaussian, "parser-like": parser_like}


def padded(scores: Any, n: int) -> Any:
    """Scores as ufal wants them: a row for the root on top, NaN on the diagonal."""
    import numpy as np

    matrix = np.full((n + 1, n + 1), np.nan)
    matrix[1:] = scores.reshape(n, n + 1)
    np.fill_diagonal(matrix, np.nan)
    return matrix


def graph_of(scores: Any, n: int) -> Any:
    """Scores as a networkx graph."""
    import networkx

    graph = networkx.DiGraph()
    arcs = ((h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m)
    graph.add_weighted_edges_from((h, m, float(scores[(m - 1) * (n + 1) + h])) for h, m in arcs)
    return graph


def one_length(watch: Stopwatch, kind: str, n: int, rounds: int) -> dict[str, Any]:
    """Seconds a tree of everybody, and the largest difference between our score and a peer's."""
    import networkx
    import numpy as np
    from ufal.chu_liu_edmonds import chu_liu_edmonds

    from structpred.oracles.arborescence import ArborescenceOracle

    rng, count = np.random.default_rng(n), max(20, 8000 // n)
    scores, shapes = [KINDS[kind](rng, n) for _ in range(count)], [(n,)] * count
    flat, offsets = np.concatenate(scores), np.arange(count + 1) * (n * (n + 1))
    matrices = [padded(theta, n) for theta in scores]
    several, single = ArborescenceOracle(single_root=False), ArborescenceOracle()

    def each(call: Callable[..., Any], inputs: Any) -> None:
        for x in inputs:
            call(x)

    def decode(oracle: ArborescenceOracle) -> None:
        argmax, shape = oracle.argmax, (n,)
        for theta in scores:
            argmax(theta, shape)

    jobs: dict[str, Callable[[], Any]] = {
        "compiled": lambda: several.argmax_batch(flat, offsets, shapes),
        "compiled, single root": lambda: single.argmax_batch(flat, offsets, shapes),
        "from Python": lambda: decode(several),
        "from Python, single root": lambda: decode(single),
        "ufal": lambda: each(chu_liu_edmonds, matrices),
    }
    seconds = {name: np.inf for name in jobs}
    for _ in range(rounds + 1):  # the first one loads and compiles
        for name, job in jobs.items():
            start = time.process_time()
            job()
            seconds[name] = min(seconds[name], (time.process_time() - start) / count)
    values = [float(theta[several.parts(several.argmax(theta, (n,)), (n,))].sum()) for theta in scores]
    gap = max(abs(value - chu_liu_edmonds(matrix)[1]) for value, matrix in zip(values, matrices, strict=True))
    if n in NETWORKX_LENGTHS:
        few = 8 if n <= 20 else 1
        graphs = [graph_of(theta, n) for theta in scores[:few]]
        start = time.process_time()
        trees = [networkx.maximum_spanning_arborescence(graph.copy()) for graph in graphs]
        seconds["networkx"] = (time.process_time() - start) / few
        weights = [sum(graph[h][m]["weight"] for h, m in tree.edges) for graph, tree in zip(graphs, trees, strict=True)]
        gap = max(gap, *(abs(value - weight) for value, weight in zip(values, weights, strict=False)), 0.0)
    return {"micro": {name: 1e6 * s for name, s in seconds.items()}, "gap": gap}


def _digits(micro: float) -> str:
    return f"{micro:.2f}" if micro < 10 else f"{micro:.1f}" if micro < 1000 else f"{micro:,.0f}"


def run(quick: bool) -> None:
    """Two tables, and whether each length meets the goal."""
    lengths = LENGTHS[:3] if quick else LENGTHS
    print(f"\nBest trees ({machine()}); microseconds of CPU time a tree")
    lines = []
    for kind in KINDS:
        found = {n: in_child("trees:one_length", kind=kind, n=n, rounds=3 if quick else 20) for n in lengths}
        columns = list(found[lengths[0]]["micro"])
        rows, ratios = [], []
        for n, row in found.items():
            micro = row["micro"]
            rows.append([n, *(_digits(micro[name]) if name in micro else "-" for name in columns)])
            ratios.append([n, *(f"{micro['ufal'] / micro[name]:.1f}" for name in columns[:4])])
            ratios[-1].append(f"{micro['networkx'] / micro['from Python']:,.0f}" if "networkx" in micro else "-")
            for way, goal in GOALS.items():
                worst = min(micro["ufal"] / micro[name] for name in columns[:4] if name.startswith(way))
                what = f"{kind}, n = {n}, {way}: at least {goal:g} times as fast as ufal, with one root and with several"
                lines.append(verdict(what, worst >= goal, f"{worst:.1f} times"))
        gap = max(row["gap"] for row in found.values())
        print(f"\n{kind} scores; largest difference between our best scores and the peers': {gap:.1g}\n")
        print(table(["n", *columns], rows))
        print("\nTimes as fast as ufal; the last column: from Python, times as fast as networkx\n")
        print(table(["n", *columns[:4], "networkx"], ratios))
    print("\n" + "\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short sentences, few rounds")
    run(parser.parse_args().quick)
