"""`python -m akunu` is the command `akunu`."""

import sys

from akunu.cli import main

if __name__ == "__main__":
    sys.exit(main())
