"""Runs a program as the child of this small process, and says when it began and ended and what it used.

    python -I -S small_parent.py FILE PROGRAM ARGUMENT…

Linux counts what a process had in memory before it became a program (between fork and exec) as that program's
own peak: the child of a process of 512 MiB has a peak of 512 MiB, whatever it is. FILE gets a line of JSON.
"""

import json
import os
import sys
import time


def main(report: str, command: list[str]) -> int:
    """Run it; the exit status, or the signal that ended it, is what the shell would give."""
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        try:
            os.execvp(command[0], command)
        except OSError as error:
            with open(report, "w") as file:
                json.dump({"error": error.strerror}, file)
            os._exit(127)
    os.close(1)  # its reader waits for the program alone
    _, status, used = os.wait4(child, 0)
    ended = time.perf_counter()
    if not os.path.getsize(report):
        with open(report, "w") as file:
            json.dump(
                {
                    "began": began,
                    "ended": ended,
                    "cpu_seconds": used.ru_utime + used.ru_stime,
                    "max_rss": used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
                },
                file,
            )
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))
