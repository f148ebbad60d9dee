"""What new users typed when they first tried this library, what came then, and what comes now, each tried anew.

``python tests/first_hour/stumbles.py`` tries all of them and writes benchmarks/results/first_hour_stumbles.md.
"""

import contextlib
import io
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from documents import SEEN
from strangers import ROOT, bring, programs, typed

RESULT = ROOT / "benchmarks" / "results" / "first_hour_stumbles.md"
#: how much of an answer is shown
WIDTH = 210


class Stumble(NamedTuple):
    """typed: Python, or a command behind a dollar. wanted: a pattern of the answer. before: what it was. test: what holds it."""

    typed: str
    wanted: str
    before: str
    test: str


_X = "X, y = [[{'w': 'a'}, {'w': 'b'}]] * 6, [['P', 'Q']] * 6; "
_CHAIN = "from structpred import ChainLabeler; "
_ROADS = (
    "from structpred.data.decisions import shortest_path_data; from structpred.models import DecisionModel; "
    "from structpred.oracles import ShortestPathOracle; d = shortest_path_data(20, grid=(3, 3)); "
)
_MILP = (
    "import numpy as np; from structpred.models import DecisionModel; from structpred.oracles import MilpOracle; "
    "r = np.random.default_rng(0); A = r.integers(1, 50, (3, 15)); "
    "X, v = r.normal(size=(30, 3)), np.exp(r.normal(size=(30, 15))); "
)
FOREIGN, SOLVERS = "tests/models/test_foreign_names.py", "tests/models/test_decisions_by_solvers.py"
AUTO, HERE = "tests/cli/test_auto.py", "tests/first_hour/test_stumbles.py::test_every_stumble_is_mended"
SETTINGS = f"{FOREIGN}::test_what_does_the_same_here"
#: where it was met -> what was met
STUMBLES: dict[str, list[Stumble]] = {
    "certificates": [
        Stumble(
            "$ structpred train chain train.txt --trainer liar:Liar --strict --tol 0.01 -o l.spz",
            "bounds cross|contract",
            "exit code 0, a gap of -100 %, said to be proven",
            "tests/lies/test_lies.py::test_no_lie_is_proven",
        ),
        Stumble(
            "$ structpred check-oracle own_milp:Own",
            "tolerance|gap",
            "wrong cause: scores are turned into whole numbers",
            f"{SOLVERS}::test_a_gap_that_is_not_declared_is_named",
        ),
        Stumble(
            _MILP + "m = DecisionModel(MilpOracle(A, A.sum(1) / 3, mip_rel_gap=0.01), trainer='one_slack', max_iter=5); "
            "m.fit(X, values=v); print('trained', m.certificate_)",
            "trained",
            "dies at sample 23: does it minimise?",
            f"{SOLVERS}::test_training_under_a_gap_ends_and_proves_nothing_false",
        ),
    ],
    "solvers": [
        Stumble(
            "from structpred.oracles import MilpOracle; print(MilpOracle([[1, 1]], [1]))",
            "MilpOracle",
            "nothing takes (c, A, b)",
            f"{SOLVERS}::test_a_decision_model_over_a_programme_in_fifteen_lines",
        ),
        Stumble(
            "from structpred.models import DecisionModel; DecisionModel(lambda c: c).fit([[0.0]], [[1.0]])",
            r"SolverOracle\(",
            "refused without a way on",
            HERE,
        ),
        Stumble(
            "import torch; from structpred.torch import SPOPlus; from structpred.oracles import MilpOracle; "
            "c = torch.ones(2, 3); SPOPlus(MilpOracle([[1, 1, 1]], [2]))(c, c)",
            "true_costs=",
            "takes 2 positional arguments but 3 were given; with costs as scores the longest path was trained",
            "tests/torch_modules/test_cost_signs.py::test_two_unnamed_arguments_are_refused",
        ),
        Stumble(
            _MILP
            + "print(DecisionModel(MilpOracle(A, A.sum(1) / 3), max_iter=1).fit(X, values=v).predict_values(X[:1]).min() > -9)",
            "True",
            "predict_costs gave negative numbers to who gave values",
            f"{SOLVERS}::test_threads_and_values",
        ),
    ],
    "text": [
        Stumble(
            "$ structpred train pipeline train.conllu -o en.spz && structpred predict en.spz news.txt --text",
            r"\t0\troot\t",
            "no way from raw text to a tree",
            "tests/cli/test_pipeline_commands.py::test_running_text_is_tagged_and_parsed",
        ),
        Stumble(
            "$ structpred train parser train.conllu --attributes form,upos -o p.spz && structpred predict p.spz news.txt --text",
            r"\troot\t|form, upos|tags",
            "the model wanted lemmas and features; no option to leave them out",
            "tests/cli/test_running_text.py::test_text_is_parsed_by_a_parser_of_forms",
        ),
        Stumble(
            "$ structpred explain ner.spz news.txt --text --sample 1",
            "Anna Keller",
            "no such option",
            "tests/cli/test_running_text.py::test_text_is_explained",
        ),
        Stumble(
            "$ structpred explain p.spz test.conllu -o why.html && grep -c '<svg' why.html",
            r"[1-9]",
            "no tree drawn: 4:obj 4:mark 4:nsubj to be counted by hand",
            "tests/cli/test_explain_command.py::test_the_page_of_a_tree_draws_both",
        ),
    ],
    "formats": [
        Stumble(
            "$ structpred train chain conll.txt -o m.spz --max-iter 1",
            "format conll2003: .*-DOCSTART- lines",
            "did you mean 'conll2000'?, which then failed; -DOCSTART- was a sentence",
            f"{AUTO}::test_boundaries_are_no_sentences",
        ),
        Stumble(
            "$ structpred train chain train.txt --dev test.txt -o m.spz --max-iter 1",
            r"best dev score: .*\(f1\)",
            "token accuracy where labels are B- and I-",
            f"{AUTO}::test_train_is_a_whole_command",
        ),
        Stumble(
            "$ structpred train chain train.jsonl -o m.spz --max-iter 1",
            "format jsonl",
            "this looks like JSON lines, no format here",
            "tests/cli/test_json_lines.py::test_the_same_data_give_the_same_model",
        ),
        Stumble(
            "$ structpred train chain - -o m.spz --max-iter 1 < train.txt",
            "<stdin>: format columns",
            "standard input is read once: give --format, and --template",
            "tests/cli/test_json_lines.py::test_standard_input_is_detected",
        ),
        Stumble(
            "$ structpred train chain conll.txt -o m.spz -q --max-iter 1 && structpred predict m.spz words.txt",
            "Leeds",
            "words alone are refused, though --text fills _ itself",
            f"{AUTO}::test_words_alone",
        ),
    ],
    "trainers": [
        Stumble(
            "$ structpred train chain --help",
            r"(?s)\A(?!.*(?:pegasos|sdca)).*(Max-margin: bcfw)",
            "pegasos, sdca, ... which can never train a chain; l1 for some that refuse it",
            "tests/cli/test_listed_trainers.py::test_what_cannot_be_trained_is_not_listed",
        ),
        Stumble(
            "$ structpred train chain train.txt -o m.spz --trainer lbfgs --surrogate margin",
            r"trainers that can: arow.* proximal, sgd$",
            "the error lists pegasos and sdca",
            "tests/cli/test_listed_trainers.py::test_errors_list_what_the_help_lists",
        ),
        Stumble(
            "$ structpred train chain train.txt -o m.spz --trainer crf",
            "here that is 'lbfgs' or 'oeg'",
            "no hint",
            "tests/cli/test_bad_input.py::test_bad_input_is_one_clear_line",
        ),
        Stumble(
            "$ structpred train chain train.txt -o m.spz --epochs 5",
            "here that is --max-iter",
            "no hint",
            "tests/cli/test_bad_input.py::test_bad_input_is_one_clear_line",
        ),
        Stumble(
            _CHAIN + _X + "from structpred.trainers import SGD\nclass Mine(SGD):\n    def update(self, *given): return None\n"
            "ChainLabeler(Mine()).fit(X, y)",
            "a `return` that is missing",
            "cannot unpack non-iterable NoneType",
            "tests/contracts/test_trainers.py::test_wrong_trainers_are_named",
        ),
        Stumble(_CHAIN + _X + "ChainLabeler('adam').fit(X, y)", "here that is 'sgd'", "did you mean 'pragam'?", SETTINGS),
    ],
    "names": [
        Stumble(
            "from structpred import ChainLabeler, load; from structpred.trainers import BCFW; "
            "from structpred.oracles import ShortestPathOracle; print('all there')",
            "all there",
            "ImportError",
            "tests/test_imports.py::test_the_estimators_are_names_of_the_package",
        ),
        Stumble(
            "import structpred; print({'Oracle', 'check_oracle'} <= {*dir(structpred)}, 'Any' in dir(structpred))",
            "True False",
            "completion offered Any, TYPE_CHECKING, logging",
            "tests/test_imports.py::test_completion_offers_the_public_names",
        ),
    ],
    "words of other libraries": [
        Stumble(_CHAIN + "ChainLabeler(algorithm='lbfgs')", "here that is trainer", "bare TypeError", SETTINGS),
        Stumble(_CHAIN + "ChainLabeler(max_iterations=3)", "here that is max_iter", "bare TypeError", SETTINGS),
        Stumble(_CHAIN + "ChainLabeler(class_weight='balanced')", "LabelCosts", "bare TypeError", SETTINGS),
        Stumble(_CHAIN + _X + "ChainLabeler().fit(X, y).predict_proba(X)", "predict_marginals", "bare AttributeError", SETTINGS),
        Stumble(
            "from structpred.models import LinearClassifier; LinearClassifier().predict_proba([[1]])",
            "logistic",
            "has no attribute",
            SETTINGS,
        ),
        Stumble(_CHAIN + _X + "ChainLabeler(constraints='bio').fit(X, y)", "iob2", "no hint", SETTINGS),
        Stumble(
            _ROADS + "DecisionModel(ShortestPathOracle(), shape=(3, 3), loss='mse').fit(d.features, d.costs)",
            "Ridge",
            "16 names",
            SETTINGS,
        ),
        Stumble(
            _ROADS + "DecisionModel(ShortestPathOracle(), shape=(3, 3), loss='blackbox').fit(d.features, d.costs)",
            "BlackBoxLayer",
            "16 names",
            SETTINGS,
        ),
        Stumble(
            _CHAIN + "ChainLabeler().fit([['the', 'dog']], [['D', 'N']])",
            "words are no features",
            "did you pass one sequence instead of a list of sequences?",
            SETTINGS,
        ),
        Stumble(
            "import pandas; " + _CHAIN + "ChainLabeler().fit(pandas.DataFrame({'w': ['a']}), ['D'])",
            "from_pandas",
            "got str 'w'",
            f"{FOREIGN}::test_frames_and_tensors",
        ),
        Stumble(
            "import torch; " + _CHAIN + "ChainLabeler().fit(torch.zeros(2, 3), ['D'])",
            "detach",
            "a wrong guess",
            f"{FOREIGN}::test_frames_and_tensors",
        ),
        Stumble(
            "from structpred import check_oracle; from structpred.oracles import AssignmentOracle; "
            "check_oracle(AssignmentOracle)",
            "give an instance",
            "ABCMeta breaks 1 of the rules of its contract",
            SETTINGS,
        ),
        Stumble(
            _CHAIN + "ChainLabeler(max_iter=1).fit([[{'w': 'a'}, {'w': 'b'}]] * 6, [['P', None]] * 6)",
            "6 of 12 labels are None",
            "silently a model of missing labels",
            "tests/models/test_partial_chains.py::test_none_is_warned_of_where_nobody_asked",
        ),
        Stumble(
            "from structpred.models import MultiLabelMRF; X = [[0.0], [1.0], [2.0], [3.0]]; "
            "print(MultiLabelMRF().fit(X, [['a'], ['a', 'b'], ['b'], []]).classes_)",
            "a.*b",
            "inhomogeneous shape; no classes_",
            HERE,
        ),
    ],
}
#: what is as it was, and why
LEFT = [
    "`from structpred.trainers import Trainer`: the class to inherit from is in `structpred.trainers.problem`, on purpose.",
    "`from structpred.objectives import LabelCosts`: it is in `structpred.objectives.part_losses`, as the tutorial has it.",
    "`structpred validate` does not read JSON lines; `train --on-error skip` says what is wrong with them.",
    "Running text needs spaCy, which `pip install structpred[spacy]` brings; without it one line says so.",
    "`MultiLabelMRF` has `classes_`, but no `feature_names_in_` of a DataFrame's columns.",
    "Report pages are named after the path as typed, and begin with the settings.",
    "Formulas in docstrings are plain text.",
]


def prepare(work: Path) -> None:
    """The files that the commands name, beside those of the strangers."""
    bring(work)
    names = (work / "train.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in names.split("\n")]
    wide = "\n".join(f"{row[0]} _ _ {row[1]}" if row else "" for row in rows)
    (work / "conll.txt").write_text(f"-DOCSTART- -X- -X- O\n\n{wide}", encoding="utf-8")
    (work / "words.txt").write_text("Leeds\nis\nbig\n", encoding="utf-8")
    sentences = [[row.split() for row in part.split("\n") if row] for part in names.split("\n\n")]
    objects = [
        f'{{"tokens": {[w for w, _ in one]}, "tags": {[y for _, y in one]}}}'.replace("'", '"') for one in sentences if one
    ]
    (work / "train.jsonl").write_text("\n".join(objects), encoding="utf-8")
    (work / "liar.py").write_text(
        "from structpred.trainers import BCFW\n\n\nclass Liar(BCFW):\n    def objective(self, problem, state):\n"
        "        found = super().objective(problem, state)\n        return (found[0], 2 * found[0] + 1, *found[2:])\n"
    )
    (work / "own_milp.py").write_text(
        "import numpy as np\nfrom scipy.optimize import Bounds, LinearConstraint, milp\nimport structpred\n\n\n"
        "class Own(structpred.Oracle):\n    def n_parts(self, shape):\n        return shape[0]\n\n"
        "    def argmax(self, scores, shape):\n        A = np.random.default_rng(0).integers(1, 50, (5, shape[0]))\n"
        "        found = milp(-scores, constraints=LinearConstraint(A, ub=A.sum(1) / 3), integrality=np.ones(shape[0]),\n"
        "                     bounds=Bounds(0, 1), options={'mip_rel_gap': 0.02})\n"
        "        return np.round(found.x).astype(np.int64)\n\n"
        "    def parts(self, labels, shape):\n        A = np.random.default_rng(0).integers(1, 50, (5, shape[0]))\n"
        "        if labels.shape != shape or not np.isin(labels, (0, 1)).all() or (A @ labels > A.sum(1) / 3).any():\n"
        "            raise ValueError('expected zeros and ones within the limits')\n        return np.flatnonzero(labels)\n\n"
        "    @staticmethod\n    def example_shapes():\n        return [(12,), (30,)]\n"
    )


def answer(code: str) -> str:
    """What Python code prints or raises, and its warnings."""
    out, names = io.StringIO(), dict[str, Any](__name__="typed")
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            exec(code, names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return out.getvalue() + "\n".join(str(one.message) for one in caught)


def tried(stumble: Stumble, folder: Path) -> str:
    """The answer now, without lines on compiling kernels."""
    if not stumble.typed.startswith("$ "):
        return answer(stumble.typed)
    done = typed(stumble.typed[2:], folder / "work", folder / "home", folder / "bin", ROOT)
    return "\n".join(line for line in (done.out + done.err).splitlines() if "compiling kernels" not in line)


def prepared(folder: Path) -> Path:
    """A folder with a home, the programs, and the work; a model of names is trained there."""
    for name in ("home", "work"):
        (folder / name).mkdir()
    prepare(folder / "work")
    programs(folder / "bin")
    command = "structpred train chain train.txt -o ner.spz --trainer corrective --max-iter 30"
    typed(command, folder / "work", folder / "home", folder / "bin", ROOT)
    return folder


def shown(text: str, wanted: str) -> str:
    """The line of an answer that was wanted, cut, as a cell of a table."""
    found = re.search(wanted, text, re.MULTILINE)
    lines = text.strip().splitlines() or [""]
    begin = found.start(found.lastindex or 0) if found else 0
    at = text[:begin].count("\n") if found else len(text.splitlines()) - 1
    line = text.splitlines()[at] if text.strip() else lines[-1]
    start = max(0, (begin - text.rfind("\n", 0, begin) - 1 if found else 0) - WIDTH // 2)
    line = ("..." if start else "") + line[start : start + WIDTH] + ("..." if len(line) > start + WIDTH else "")
    return re.sub(r" at 0x[0-9a-f]+", "", line).replace("|", "\\|").replace("\t", " ")


def main() -> None:
    """Try all of them, and write the table."""
    rows, n = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = prepared(Path(name))
        for where, stumbles in STUMBLES.items():
            for one in stumbles:
                now = tried(one, folder)
                mended = re.search(one.wanted, now, re.MULTILINE) is not None
                n += mended
                code = one.typed.replace("|", "\\|").replace("\n", " ")
                said = ("" if mended else "**as before**: ") + shown(now, one.wanted)
                cells = (where, f"`{code}`", one.before, said, f"`{one.test}`")
                rows.append(f"| {' | '.join(cells)} |")
                print("ok  " if mended else "LEFT", one.typed[:90], "->", shown(now, one.wanted)[:120], flush=True)
    head = (
        "# Stumbles of first hours\n\n`python tests/first_hour/stumbles.py` types each of them anew. `$` is a command; "
        f"the rest is Python. Answers are cut.\n\n{n} of {len(rows)} are mended.\n\n"
        "| where | typed | before | now | held by |\n|---|---|---|---|---|\n"
    )
    RESULT.write_text(f"{head}{chr(10).join(rows)}\n\n{below()}", encoding="utf-8")


def below() -> str:
    """What follows the table of what was typed: the table of what was seen, and what is left."""
    rows = [f"| {where} | {one.what} | {one.before} | {one.now} | `{one.test}` |" for where, some in SEEN.items() for one in some]
    head = "## Seen, not typed\n\n| where | what | before | now | held by |\n|---|---|---|---|---|\n"
    left = "\n".join(f"- {line}" for line in LEFT)
    return f"{head}{chr(10).join(rows)}\n\n## Left\n\n{left}\n"


if __name__ == "__main__":
    main()
