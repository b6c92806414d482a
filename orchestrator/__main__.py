"""`python -m orchestrator …` is the same as `svmbench …`."""

import sys

from orchestrator.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
