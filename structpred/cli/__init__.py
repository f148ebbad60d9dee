"""The command line: `structpred train|predict|evaluate|check-oracle|doctor`; see docs/cli.md."""

from structpred.cli.app import main

__all__ = ["main"]
