"""`python -m orchestrator …` is the same as `svmbench …`."""

from orchestrator.cli.main import console_main

if __name__ == "__main__":
    console_main()
