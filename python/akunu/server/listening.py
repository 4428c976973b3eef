"""The socket of a server, which is there before what serves on it."""

from __future__ import annotations

import errno
import socket

from akunu.base.errors import AkunuError

__all__ = ["listen"]


def listen(host: str, port: int) -> socket.socket:
    """A socket to serve on; port 0 takes one that is free.

    Raises
    ------
    AkunuError
        The address is taken, or not this machine's.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        reason = str(error.strerror or error)
        reason = reason.partition(" (while")[0]  # what follows names the address again
        reason = reason[:1].lower() + reason[1:]
        taken = "; --port takes another, or 0 for one that is free" if error.errno == errno.EADDRINUSE else ""
        raise AkunuError(f"cannot listen on {host}, port {port}: {reason}{taken}") from error
