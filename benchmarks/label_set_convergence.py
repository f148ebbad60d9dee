"""How fast the certified gap of label sets closes, at values of C from .01 to 100, with and without steps of all blocks.

    python benchmarks/label_set_convergence.py                         all sets and C, up to 100 passes: hours
    python benchmarks/label_set_convergence.py --sets enron --C 1 10   some of them
    python benchmarks/label_set_convergence.py --quick                 four passes of two sets

Features are standardised (`scale="standard"`). A run ends at a gap of 1 % of the primal, which is computed every few passes, or
after the passes asked for. "Before" is the same trainer without proximal Newton steps. CPU seconds are those of training, in a
process of its own for each set; compiling comes before.
"""

import argparse
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, table

VALUES = (0.01, 0.1, 1.0, 10.0, 100.0)
GOAL, EVERY = 0.01, 5
#: set -> folder, file, what the model is told
SETS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "imclef07a, paths": ("hierarchical_imclef07a", "ImCLEF07A_Train", {"require": "path"}),
    "imclef07a, closed sets": ("hierarchical_imclef07a", "ImCLEF07A_Train", {"require": None}),
    "enron, closed sets": ("hierarchical_enron_corr", "Enron_corr_trainvalid", {"require": None}),
    "yeast, complete": ("multilabel_yeast", "yeast", {"edges": "complete"}),
    "yeast, tree": ("multilabel_yeast", "yeast", {"edges": "tree"}),
    "yeast, no edges": ("multilabel_yeast", "yeast", {"edges": []}),
    "tmc, tree": ("multilabel_tmc2007_500", "tmc2007-500", {"edges": "tree"}),
    "bibtex, tree": ("multilabel_bibtex", "bibtex", {"edges": "tree"}),
}
QUICK = ("yeast, no edges", "yeast, complete")


def run(watch: Stopwatch, name: str, folder: str, values: list[float], passes: int, before: bool) -> dict[str, Any]:
    """The last row of the history for each C."""
    import numpy as np

    from structpred.io import read_clus, read_mulan
    from structpred.models import HierarchicalMultiLabel, MultiLabelMRF
    from structpred.trainers.marginal_bcfw import MarginalBCFW

    place, file, settings = SETS[name]
    at = f"{folder}/{place}/{file}"
    flat = "edges" in settings
    data = read_mulan(f"{at}-train.arff.gz", f"{at}.xml.gz") if flat else read_clus(f"{at}.arff.gz")
    common = {"trainer": MarginalBCFW(joint=not before), "scale": "standard", "tol": GOAL, "check_every": EVERY, **settings}
    kind = MultiLabelMRF if flat else HierarchicalMultiLabel
    kind(C=1.0, max_iter=6, **common).fit(data.take(np.arange(200)))  # compiles
    return {"rows": [kind(C=C, max_iter=passes, **common).fit(data).history_[-1] for C in values]}


def main() -> None:
    """Print a row for each set and C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--C", nargs="*", type=float, default=list(VALUES))
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--after", action="store_true", help="without the runs that have no steps of all blocks")
    asked = parser.parse_args()
    names, passes = (QUICK, 4) if asked.quick else (asked.sets, asked.passes)
    print(f"Gaps of label sets ({machine()})\n")
    rows = []
    for name in names:
        options: dict[str, Any] = {"name": name, "folder": str(data_folder()), "values": asked.C, "passes": passes}
        kinds = (False,) if asked.after else (True, False)
        found = [in_child("label_set_convergence:run", before=before, **options)["rows"] for before in kinds]
        for k, value in enumerate(asked.C):
            ends = [each[k] for each in found]
            cells = [f"{end['passes']}, {end['cpu_seconds']:.1f} s: {100 * end['gap'] / end['primal']:.2f} %" for end in ends]
            rows.append([name, f"{value:g}", *cells])
    print(table(["set", "C", *(["before: passes, CPU s: gap"] * (not asked.after)), "passes, CPU s: gap"], rows), flush=True)


if __name__ == "__main__":
    main()
