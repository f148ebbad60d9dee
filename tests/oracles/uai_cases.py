"""The instances of the UAI 2014 competition with their exact answers, for the tests of all MRF oracles."""

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from structpred.io.uai import PairwiseProblem, UaiModel, read_uai, read_uai_evidence


@dataclass(frozen=True)
class UaiInstance:
    """One instance. problem: as the oracles take it, its constant is to be added to scores and to log Z.

    exact_max, exact_log_z: natural logarithms, None where nobody proved them. best_known: the score of the repository's
    assignment, a lower bound of the best score, no more. best_labels: an assignment of the model's variables with score exact_max
    (or best_known). paired: larger factors were made variables of their own, which come after those of the model.
    """

    name: str
    problem: PairwiseProblem
    exact_max: float | None
    exact_log_z: float | None
    best_known: float
    best_labels: np.ndarray
    paired: bool

    def score(self, labels: np.ndarray) -> float:
        """The score of an oracle's answer, on the scale of exact_max."""
        return self.problem.score(labels)


def uai_instances(
    data_dir: Path, *, exact: bool = True, paired: bool = False, names: Sequence[str] | None = None
) -> list[UaiInstance]:
    """The instances, in the order of their names. exact: only those with exact answers. paired: also those with larger factors.

    12 of the 20 with exact answers are pairwise as they are: DBN_11, three Grids, six Segmentations, two ObjectDetections.
    """
    folder = data_dir / "mrf_uai2014"
    if not folder.is_dir():
        pytest.skip(f"the UAI instances are not here (looked for {folder})")
    with (folder / "answers.tsv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if not exact or row["exact_max_ln"]]
    if names is not None:
        rows = [row for row in rows if row["name"] in names]
    return [_instance(folder, row) for row in rows if paired or row["max_arity"] in "12"]


def uai_model(data_dir: Path, name: str) -> tuple[UaiModel, dict[int, int]]:
    """A model as it is, and its evidence."""
    folder = data_dir / "mrf_uai2014"
    evidence = folder / f"{name}.uai.evid"
    return read_uai(folder / f"{name}.uai.gz"), read_uai_evidence(evidence) if evidence.exists() else {}


def _instance(folder: Path, row: dict[str, str]) -> UaiInstance:
    name = row["name"]
    model, evidence = uai_model(folder.parent, name)
    larger = any(len(scope) > 2 for scope in model.scopes)
    answer = folder / f"{name}.{'exactMAP' if row['exact_max_ln'] else 'refMAP'}.gz"
    labels = np.array(gzip.decompress(answer.read_bytes()).split()[2:], dtype=np.int64)
    numbers = [float(row[key]) if row[key] else None for key in ("exact_max_ln", "exact_lnZ")]
    problem = (model.paired() if larger else model).pairwise(evidence)
    return UaiInstance(name, problem, numbers[0], numbers[1], float(row["ref_map_ln"]), labels, larger)
