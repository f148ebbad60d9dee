"""Every command that the README and the pages show runs, on small stand-ins for the files that they name."""

import gzip
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import Shell, blanked, call, column_text, crfsuite_text, ocr_text
from label_helpers import LABELS, arff_text, clus_text, examples, libsvm_text, xml_text
from treebank_helpers import treebank_text

from structpred.data.decisions import shortest_path_data

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [page for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] if "structpred " in page.read_text("utf-8")]
_BLOCK = re.compile(r"^```(?!python)\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: what does not run here, and why
LEFT_OUT = {
    r"--shards|--scheduler": "starts processes; tests/cli/test_shards_of_kinds.py has these commands",
}
#: sentences as long as those that pages point into
LONG = 4 * ("the DT B-NP\n" + 6 * "cat NN I-NP\n" + "\n")
CODE = """
import numpy as np

from structpred import Instance
from structpred.oracles.multiclass import MulticlassOracle


class Matching(MulticlassOracle):
    pass


def read(path):
    if path.endswith(".npz"):
        data = np.load(path)
        return [Instance(row, (3, 3)) for row in data["X"]], data["costs"] if "costs" in data else None
    X = [Instance(np.eye(3)[np.arange(k, k + 3) % 3], (3,)) for k in range(9)]
    return X, [[-k % 3] for k in range(9)]
"""


def blocks_of(page: Path) -> list[list[str]]:
    """The command lines of each block of a page, in order; continued lines are joined."""
    blocks = [block.replace("\\\n", " ") for block in _BLOCK.findall(page.read_text(encoding="utf-8"))]
    return [[line for line in block.splitlines() if line.startswith("structpred ")] for block in blocks]


def shells_of(page: Path) -> list[str]:
    """The blocks that begin with another program, such as sed or a pipe from echo, whole."""
    return [block for block in _BLOCK.findall(page.read_text(encoding="utf-8")) if re.match(r"sed |zcat |echo ", block)]


def reason_not_to(command: str) -> str | None:
    """Why a command does not run here; None where it does."""
    return next((reason for pattern, reason in LEFT_OUT.items() if re.search(pattern, command)), None)


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory: pytest.TempPathFactory, corpus: Path, treebanks: Path) -> Path:
    """A folder with a small file for each name that the pages use for data and models."""
    folder = tmp_path_factory.mktemp("pages")
    texts: dict[str, str] = {"mine.py": CODE, "roads.py": CODE}
    for seed, name in enumerate(("train", "test", "dev")):
        texts[f"{name}.txt"] = LONG + column_text(30, seed)
        texts[f"{name}.crfsuite"] = crfsuite_text(texts[f"{name}.txt"])
        texts[f"{name}.conllu"] = treebank_text(20, seed)
        X, Y = examples(30, seed)
        texts[f"{name}.svm"] = libsvm_text(X, Y)
        texts |= {f"{stem}{name}.arff": arff_text(X, Y) for stem in ("", "yeast-")}
    texts["half.txt"] = texts["tags.txt"] = blanked(texts["train.txt"], 0.3)[0]
    texts["tags.txt"] = texts["train.txt"].replace(" I-NP\n", " \n").replace(" \n", " B-NP\n", 3)
    texts["some.conllu"] = texts["predicted.conllu"] = texts["other.conllu"] = texts["test.conllu"]
    texts["enron_corr.arff"] = clus_text(*examples(30, 0))
    texts["some.arff"] = texts["train.arff"]
    texts |= dict.fromkeys(("train.xml", "test.xml", "yeast-train.xml", "yeast-test.xml", "some.xml"), xml_text(*LABELS))
    texts["tree.txt"] = "rain\tstorm cloud\n"
    texts["signs.txt"] = "*=the -> B-NP +\n"
    texts["mine.template"] = "U00:%x[0,0]\nU01:%x[-1,1]/%x[0,1]\nB\n"
    words = [line.split("\t") for line in texts["train.conllu"].splitlines() if not line or line[0].isdigit()]
    plain = [row for row in words if row == [""] or row[0].isdigit()]
    texts["train.conllx"] = "".join("\t".join([*row[:8], "_", "_"]) + "\n" if row != [""] else "\n" for row in plain)
    for name, text in texts.items():
        (folder / name).write_text(text.replace("wind", "Class7"), encoding="utf-8")
    with gzip.open(folder / "letter.data.gz", "wt") as file:
        file.write(ocr_text(20, 0))
    made = shortest_path_data(12, grid=(3, 3), degree=2, noise=0.1)
    for name in ("train", "test"):
        np.savez(folder / f"{name}.npz", X=made.features, costs=made.costs)
    np.savez(folder / "new.npz", X=made.features)
    for name, model in (("chunk", corpus / "chunk.spz"), ("en", treebanks / "p.spz")):
        shutil.copy(model, folder / f"{name}.spz")
    call("train", "multilabel", "yeast-train.arff", "-o", "yeast.spz", cwd=folder).check_returncode()
    return folder


@pytest.fixture
def folder(stand_ins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the stand-ins, whose modules can be imported."""
    shutil.copytree(stand_ins, tmp_path, dirs_exist_ok=True)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("mine", "roads"):
        sys.modules.pop(name, None)


def outcome(shell: Shell, folder: Path, command: str) -> str:
    """What went wrong with a command line, pipes and a file for its output included; nothing where nothing did."""
    given = ""
    for part in command.split(" | "):
        words = shlex.split(part, comments=True)
        target = words[words.index(">") + 1] if ">" in words else None
        done = shell(*words[1 : words.index(">") if target else None], stdin=given)
        given = done.stdout
        if done.returncode != 0:
            return f"{command}: exit {done.returncode}: {done.stderr[-300:]}"
        if target:
            (folder / target).write_text(given, encoding="utf-8")
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_runs(shell: Shell, stand_ins: Path, folder: Path, page: Path) -> None:
    """Exit 0, one after the other in the order of the page, unless a reason is listed why it is left out."""
    faults = []
    for block in blocks_of(page):
        for name in ("chunk", "en", "yeast"):  # a block may use a model of that name that is not the one trained last
            shutil.copy(stand_ins / f"{name}.spz", folder)
        faults += [outcome(shell, folder, command) for command in block if reason_not_to(command) is None]
    assert [fault for fault in faults if fault] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if shells_of(page)], ids=lambda page: page.stem)
def test_blocks_for_a_shell_run(folder: Path, page: Path) -> None:
    """Blocks in which other programs make the data run as they stand, line by line, in a shell."""
    if page.stem == "other_libraries":
        pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'structpred[spacy]'")
    treebank = (folder / "train.conllu").read_text(encoding="utf-8")
    (folder / "train.conllu.gz").write_bytes(gzip.compress(treebank.encode()))
    # the label of a document's first field, and a token that looks like a label, as GROBID writes them
    rows = ["The T I-<title>", "< < <title>", "end T <title>", "by T I-<other>", "some T <other>", "Ann T I-<author>"]
    (folder / "header").write_text("\n\n".join(["\n".join(rows)] * 30) + "\n", encoding="utf-8")
    call("train", "chain", "train.txt", "--template", "U0:%x[0,0]\nB\n", cwd=folder)
    call("train", "chain", "train.txt", "--template", "pos", "-o", "pos.spz", cwd=folder).check_returncode()
    program = f'structpred() {{ "{sys.executable}" -m structpred.cli "$@"; }}'
    for block in shells_of(page):
        done = subprocess.run(["sh", "-ec", f"{program}\n{block}"], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    if page.stem == "moving_over":
        train = (folder / "train.txt").read_text(encoding="utf-8")
        assert train.startswith("The T B-title\n< < I-title\nend T I-title\nby T O\nsome T O\nAnn T B-author\n\n")


def test_reasons_to_leave_a_command_out_are_needed() -> None:
    """Each reason is that of some command, and most commands have none."""
    commands = [command for page in PAGES for block in blocks_of(page) for command in block]
    assert {reason_not_to(command) for command in commands} == {None, *LEFT_OUT.values()}
    assert sum(reason_not_to(command) is None for command in commands) > 30
