"""What all tests share: where the real data sets lie."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets: STRUCTPRED_DATA, else ../shared/data beside the project; skips where neither is there."""
    folder = Path(os.environ.get("STRUCTPRED_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"real data sets are not here (set STRUCTPRED_DATA; looked in {folder})")
    return folder
