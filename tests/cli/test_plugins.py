"""Whatever is added is one file: a trainer, a loss, a regulariser, an oracle, a kind of model; all are driven from the shell."""

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import structpred
from structpred.cli.kinds.kind import found_kinds
from structpred.models import load
from structpred.objectives.names import losses, regularisers
from structpred.storage.bundles import read_bundle
from structpred.trainers.names import trainers

Here = Callable[..., tuple[int, str, str]]
PACKAGE = Path(structpred.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
CHAIN = ("train", "chain", "train.txt", "--format", "conll2000", "--template", "chunking", "--max-iter", "3", "-q", "-o")
BEST = '''
import numpy as np
from structpred import Oracle


class Best(Oracle):
    """One of n candidates."""

    def n_parts(self, shape):
        return shape[0]

    def argmax(self, scores, shape):
        return np.array([scores.argmax()])

    def parts(self, labels, shape):
        if labels.shape != (1,) or not 0 <= labels[0] < shape[0]:
            raise ValueError("expected the number of a candidate")
        return labels

    def label_grid(self, shape):
        return 1, shape[0]

    @staticmethod
    def example_shapes():
        return [(1,), (3,)]
'''


class Plugin(NamedTuple):
    """option: what names it. home: the package whose files have names. kind: its class. name: what it is called there."""

    option: str
    home: str
    kind: str
    name: str

    @property
    def text(self) -> str:
        """The one file, as it stands in the examples."""
        return (EXAMPLES / f"own_{self.option}.py").read_text(encoding="utf-8")


PLUGINS = [
    Plugin("trainer", "structpred.trainers", "Subgradient", "subgradient"),
    Plugin("loss", "structpred.objectives", "Distance", "distance"),
    Plugin("regulariser", "structpred.objectives.regularisers", "NonNegative", "non_negative"),
]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty package `plugins_of_mine`, importable; afterwards no module of it is left, and no file of ours has changed."""

    def sources() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in PACKAGE.rglob("*.py")}

    before, known = sources(), set(sys.modules)
    folder = tmp_path / "path" / "plugins_of_mine"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(folder.parent)
    yield folder
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            parent, _, own = name.rpartition(".")
            if hasattr(sys.modules.get(parent), own):
                delattr(sys.modules[parent], own)
            del sys.modules[name]
    for found in (trainers, losses, regularisers, found_kinds):
        found.cache_clear()
    assert sources() == before


def trained(here: Here, corpus: Path, model: Path, *options: str) -> Any:
    """The model that `train chain` makes of the small corpus, and the header of its file."""
    code, _, err = here(*CHAIN, str(model), *options, cwd=corpus)
    assert code == 0, err
    return load(model), read_bundle(model, kind="model").header


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.option)
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_class_of_ones_own_from_the_shell(here: Here, corpus: Path, tmp_path: Path, mine: Path, plugin: Plugin) -> None:
    """MODULE:CLASS trains other weights than without it; the file and `inspect` name it; the model is scored and predicts."""
    (mine / "one.py").write_text(plugin.text)
    plain, header = trained(here, corpus, tmp_path / "plain.spz")
    assert "regulariser" not in header
    model, header = trained(here, corpus, tmp_path / "m.spz", f"--{plugin.option}", f"plugins_of_mine.one:{plugin.kind}")
    assert header[plugin.option]["class"] == plugin.kind
    assert not np.array_equal(model.coef_, plain.coef_)
    assert plugin.option != "regulariser" or (plain.coef_.min() < 0.0 == model.coef_.min())
    assert plugin.kind in here("inspect", str(tmp_path / "m.spz"), cwd=corpus)[1]
    for command in (("evaluate", "m.spz"), ("predict", "m.spz")):
        code, out, err = here(command[0], str(tmp_path / command[1]), "test.txt", cwd=corpus)
        assert (code, bool(out)) == (0, True), err


SCALES = """
import numpy as np
from structpred.core.regulariser import DualMap, Regulariser

class Scales(Regulariser):
    def grouped(self, groups, names):
        made = Scales()
        made.groups = np.array(groups)
        return made

    def dual_map(self):
        return DualMap.of(self.groups[1:], 0.5)
"""


def test_a_regulariser_that_needs_its_groups_from_the_shell(here: Here, corpus: Path, tmp_path: Path, mine: Path) -> None:
    """It is not asked what it is like before it knows the groups."""
    (mine / "scales.py").write_text(SCALES)
    _, header = trained(here, corpus, tmp_path / "m.spz", "--regulariser", "plugins_of_mine.scales:Scales", "--trainer", "bcfw")
    assert header["regulariser"]["class"] == "Scales"


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.option)
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_file_of_the_package_brings_its_name(
    here: Here, corpus: Path, tmp_path: Path, mine: Path, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file more in its folder: the name is in the help page and in errors, trains, and comes back from the model file."""
    head = rf'(class {plugin.kind}\b(?!State).*?"""\n)(?=\n)'
    named, found = re.subn(head, rf'\1\n    name = "{plugin.name}"\n', plugin.text, count=1, flags=re.DOTALL)
    assert found == 1
    (mine / "one.py").write_text(named)
    home = importlib.import_module(plugin.home)
    monkeypatch.setattr(home, "__path__", [*home.__path__, str(mine)])
    for names in (trainers, losses, regularisers):
        names.cache_clear()
    assert plugin.name in here("train", "chain", "--help", cwd=corpus)[1]
    code, _, err = here(*CHAIN, str(tmp_path / "m.spz"), f"--{plugin.option}", plugin.name[:-1], cwd=corpus)
    assert (code, f"did you mean '{plugin.name}'?" in err) == (2, True), err
    model, header = trained(here, corpus, tmp_path / "m.spz", f"--{plugin.option}", plugin.name)
    assert header[plugin.option] == getattr(model, plugin.option) == plugin.name


def test_an_oracle_and_a_kind_of_model_of_ones_own(here: Here, tmp_path: Path, mine: Path) -> None:
    """An oracle in one file is checked, and a kind in another, which uses it, is trained, scored, applied and inspected.

    A loss and a regulariser of one's own take part, a file each.
    """
    (mine / "one.py").write_text(BEST)
    kind = (EXAMPLES / "own_kind.py").read_text(encoding="utf-8")
    ours = "from structpred.oracles.multiclass import MulticlassOracle"
    assert ours in kind
    (mine / "two.py").write_text(kind.replace(ours, "from plugins_of_mine.one import Best as MulticlassOracle"))
    for plugin in PLUGINS[1:]:
        (mine / f"{plugin.option}_of_mine.py").write_text(plugin.text)
    code, out, err = here("check-oracle", "plugins_of_mine.one:Best", cwd=tmp_path)
    assert (code, "Best" in out) == (0, True), err
    make_data = importlib.import_module("plugins_of_mine.two").make_data
    for name, seed in (("train.txt", 0), ("test.txt", 1)):
        (tmp_path / name).write_text(make_data(40, np.random.default_rng(seed)))
    own = ("--kind", "plugins_of_mine.two:Choices")
    signs = ("--regulariser", "plugins_of_mine.regulariser_of_mine:NonNegative")
    far = ("--loss", "plugins_of_mine.loss_of_mine:Distance")
    code, _, err = here(*own, "train", "choices", "train.txt", "-o", "m.spz", *signs, *far, cwd=tmp_path)
    assert code == 0, err
    header = read_bundle(tmp_path / "m.spz", kind="model").header
    assert (header["oracle"], header["regulariser"]["class"], header["loss"]["class"]) == ("Best", "NonNegative", "Distance")
    right = json.loads(here(*own, "evaluate", "m.spz", "test.txt", "--json", cwd=tmp_path)[1])["right"]
    assert right > 0.5
    assert len(here(*own, "predict", "m.spz", "test.txt", cwd=tmp_path)[1].splitlines()) == 40
    assert "f0" in here(*own, "inspect", "m.spz", cwd=tmp_path)[1]


def test_a_kind_of_model_in_the_package(here: Here, tmp_path: Path, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file more among the kinds: `train` has its command, with the options that all kinds share."""
    (mine / "one.py").write_text((EXAMPLES / "own_kind.py").read_text(encoding="utf-8"))
    home = importlib.import_module("structpred.cli.kinds")
    monkeypatch.setattr(home, "__path__", [*home.__path__, str(mine)])
    found_kinds.cache_clear()
    assert "Train a model that chooses among candidates." in here("train", "--help", cwd=tmp_path)[1]
    page = here("train", "choices", "--help", cwd=tmp_path)[1]
    assert [option for option in ("--trainer", "--loss", "--regulariser") if option not in page] == []


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_parsers_and_label_sets_take_them_too(here: Here, treebanks: Path, labelled: Path, tmp_path: Path, mine: Path) -> None:
    """Both stages of a parser have the regulariser; a multi-label model of a trainer of one's own can be inspected."""
    said = ("--trainer", "bcfw", "--regulariser", "l1", "--loss", "extra_parts", "--max-iter", "1", "-q", "-o")
    code, _, err = here("train", "parser", "train.conllu", *said, str(tmp_path / "p.spz"), cwd=treebanks)
    assert code == 0, err
    header = read_bundle(tmp_path / "p.spz", kind="model").header
    assert [header["regulariser"], header["relations"]["regulariser"]] == ["l1", "l1"]
    assert [header["loss"], header["relations"]["loss"]] == ["extra_parts", "hamming"]
    (mine / "one.py").write_text(PLUGINS[0].text)
    said = ("--trainer", "plugins_of_mine.one:Subgradient", "--max-iter", "1", "-q", "-o", str(tmp_path / "m.spz"))
    code, _, err = here("train", "multilabel", "weather-train.arff", *said, cwd=labelled)
    assert code == 0, err
    assert "Subgradient, max-margin" in here("inspect", str(tmp_path / "m.spz"), cwd=labelled)[1]


WRONG = {
    "no such regulariser": (("--regulariser", "l3"), "regulariser: expected one of elastic_net_mkl, group_ball"),
    "no such loss": (("--loss", "haming"), "did you mean 'hamming'?"),
    "a trainer that cannot": (
        ("--regulariser", "l1", "--trainer", "sgd"),
        "Trainers for L1: bcfw, bmrm, corrective, ls_bmrm, n_slack, oeg, one_slack, online_mkl, owlqn",
    ),
    "a trainer for a regulariser": (("--regulariser", "plugins_of_mine.one:Subgradient"), "a subclass of structpred.core.regul"),
    "a trainer for a loss": (("--loss", "plugins_of_mine.one:Subgradient"), "with the methods of structpred.core.costs.Cost"),
    "settings are missing": (("--loss", "structpred.objectives.part_losses:LabelCosts"), "missing a required argument: 'matrix'"),
    "methods are missing": (("--trainer", "structpred.trainers.problem:Trainer"), "the class lacks init_state, update"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_minimised_is_refused(here: Here, corpus: Path, tmp_path: Path, mine: Path, name: str) -> None:
    """Wrong usage, exit code 2 before anything is read, and the error says what is wrong."""
    (mine / "one.py").write_text(PLUGINS[0].text)
    options, said = WRONG[name]
    code, _, err = here(*CHAIN, str(tmp_path / "m.spz"), *options, cwd=corpus)
    assert (code, said in err) == (2, True), err
    assert not (tmp_path / "m.spz").exists()


@pytest.mark.parametrize("command", ["chain", "parser", "multilabel"])
def test_help_and_manual_list_losses_and_regularisers(here: Here, tmp_path: Path, command: str) -> None:
    """The help of each command that trains, and the manual, name all losses and regularisers there are."""
    page = " ".join(here("train", command, "--help", cwd=tmp_path)[1].split())
    manual = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = {
        option: next(line for line in manual.splitlines() if line.startswith(f"| `{option}`"))
        for option in ("--loss", "--regulariser")
    }
    for option, names in (("--loss", losses()), ("--regulariser", regularisers())):
        assert [name for name in names if name not in page or f"`{name}`" not in rows[option]] == []
