"""A training run in a process of its own, for tests that interrupt it.

    python interrupted_run.py TRAINER CHECKPOINT RESULT [--resume] [--hold PASS] [--stuck]

Prints "pass k" after pass k. RESULT gets weights, history (without times), certificate and stop reason.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

from training_cases import TRAINERS, chain_task, problem

from structpred.core.result import Result
from structpred.trainers.loop import RunSettings, train

MAX_ITER = 12


def write_result(result: Result, path: Path) -> None:
    """All that must not depend on interruptions, as text."""
    history = [{key: value for key, value in row.items() if "seconds" not in key} for row in result.history]
    bounds = result.certificate
    plain = {
        "weights": result.weights.tobytes().hex(),
        "history": history,
        "certificate": [bounds.primal, bounds.dual, bounds.proven],
        "stop_reason": result.stop_reason,
        "passes": result.passes,
    }
    path.write_text(json.dumps(plain), encoding="utf-8")


def heard() -> bool:
    """Whether the training loop has noted a signal."""
    handler = signal.getsignal(signal.SIGINT)
    return handler.__self__.raised is not None


def main() -> None:
    """Train; no time plays a part in when a signal hits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("trainer")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--hold", type=int, help="after this pass wait for a signal")
    parser.add_argument("--stuck", action="store_true", help="with --hold: say that the signal was heard, and never go on")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in children of background jobs

    def after_pass(row: dict) -> None:
        print("pass", row["passes"], flush=True)
        if row["passes"] == options.hold:
            while not heard():
                time.sleep(0.01)
            print("heard", flush=True)
            while options.stuck:
                time.sleep(0.01)

    settings = RunSettings(
        max_iter=MAX_ITER, check_every=5, seed=3, callbacks=(after_pass,), checkpoint=options.checkpoint, resume=options.resume
    )
    result = train(problem(chain_task(4, weighted=True)), TRAINERS[options.trainer](), settings)
    write_result(result, options.result)
    sys.exit(3 if result.stop_reason == "interrupted" else 0)


if __name__ == "__main__":
    main()
