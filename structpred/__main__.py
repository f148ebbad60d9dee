"""`python -m structpred` is `structpred`."""

from structpred.cli.app import main

if __name__ == "__main__":
    main()
