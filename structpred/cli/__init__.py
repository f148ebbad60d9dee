"""The command line: `structpred train|predict|evaluate|...`; see docs/cli.md."""

from structpred.cli.app import main

__all__ = ["main"]
