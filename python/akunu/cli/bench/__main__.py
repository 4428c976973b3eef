"""`python -m akunu.cli.bench` is the command `akunu-bench`."""

import sys

from akunu.cli.bench import main

if __name__ == "__main__":
    sys.exit(main())
