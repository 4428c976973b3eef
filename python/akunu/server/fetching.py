"""Images at addresses of the web: fetched from hosts that the server's operator has named, and no others.

An address is checked before it is connected to, and again after each redirection: its scheme, its host by the
names that are allowed, and what the host's name resolves to. The connection goes to what was checked, so a
name that means something else a moment later changes nothing.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from akunu.base.errors import ImageError

__all__ = ["ANY_HOST", "fetch"]

ANY_HOST: Final = "*"
"""An entry of the list of hosts that stands for all public ones."""
MOST_BYTES: Final = 32 << 20
MOST_SECONDS: Final = 15.0
_MOST_REDIRECTIONS: Final = 3
_PORTS: Final = {"http": 80, "https": 443}
_REDIRECTIONS: Final = (301, 302, 303, 307, 308)
_NAT64: Final = ip_network("64:ff9b::/96")

Address = IPv4Address | IPv6Address


def fetch(url: str, hosts: Sequence[str]) -> bytes:
    """The bytes at an address.

    Parameters
    ----------
    url
        `http:` or `https:`.
    hosts
        Names that may be asked: "example.org", also with a port; "*.example.org": those below it; "*": all
        that have public addresses.

    Raises
    ------
    ImageError
        The host is not one of them, or the image is not to be had from it within 15 seconds, or has more
        than 32 MiB.
    """
    if not hosts:
        raise ImageError(
            "image: this server fetches nothing; send a data: URL (its operator allows hosts by --image-host)"
        )
    deadline = time.monotonic() + MOST_SECONDS
    for _ in range(_MOST_REDIRECTIONS + 1):
        parts = _checked(url, hosts)
        try:
            found = _answer(parts, hosts, deadline)
        except (OSError, http.client.HTTPException, ValueError) as error:
            what = str(error) or type(error).__name__
            what = "it takes too long" if isinstance(error, TimeoutError) else what
            raise ImageError(f"image: {parts.hostname} cannot be asked for it: {what}") from error
        if isinstance(found, bytes):
            return found
        url = urljoin(url, found)
    raise ImageError(f"image: more than {_MOST_REDIRECTIONS} redirections")


def _checked(url: str, hosts: Sequence[str]) -> SplitResult:
    """The parts of an address that may be asked, by its text."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ImageError(f"image: {url[:100]!r} is no address: {error}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ImageError(f"image: found the address {url[:100]!r}, expected http: or https: and a host")
    if parts.username is not None or any(char <= " " or char == "\\" for char in url):
        raise ImageError("image: an address with a user's name or with blanks is not fetched")
    if not any(_is_meant(parts.hostname, port, parts.scheme, host) for host in hosts):
        raise ImageError(
            f"image: {parts.hostname[:100]} is no host that this server's operator has allowed (--image-host)"
        )
    return parts


def _is_meant(name: str, port: int | None, scheme: str, host: str) -> bool:
    """Whether a name and port are what an entry of the list allows."""
    host = host.lower()
    if host == ANY_HOST:
        return port in (None, *_PORTS.values())
    # A port follows the last colon, but for the colons of an address in brackets.
    allowed, colon, number = host.rpartition(":")
    if not colon or "]" in number:
        allowed, number = host, ""
    allowed = allowed.strip("[]")
    if port != (int(number) if number else None) and port != (int(number) if number else _PORTS[scheme]):
        return False
    if allowed.startswith("*."):
        return name.endswith(allowed[1:])
    return name == allowed


def _answer(parts: SplitResult, hosts: Sequence[str], deadline: float) -> bytes | str:
    """The body, or where the answer sends us."""
    name, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    named = any(host != ANY_HOST and _is_meant(name, parts.port, parts.scheme, host) for host in hosts)
    address = _resolved(name, port, named=named)
    connection = _Connection(name, port, address, parts.scheme == "https", _left(deadline))
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Accept": "image/*", "Accept-Encoding": "identity", "User-Agent": "akunu"}
        connection.request("GET", path.encode("ascii", "strict").decode(), headers=headers)
        response = connection.getresponse()
        if response.status in _REDIRECTIONS and (place := response.getheader("Location")):
            return place
        if response.status != 200:
            raise ImageError(f"image: {name} answers {response.status}")
        announced = response.getheader("Content-Length", "")
        if announced.isdigit() and int(announced) > MOST_BYTES:
            raise ImageError(f"image: it has {announced} bytes, more than {MOST_BYTES}")
        data = bytearray()
        while chunk := response.read1(1 << 16):
            data += chunk
            if len(data) > MOST_BYTES:
                raise ImageError(f"image: it has more than {MOST_BYTES} bytes")
            if connection.sock is not None:
                connection.sock.settimeout(_left(deadline))
        return bytes(data)
    finally:
        connection.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _resolved(name: str, port: int, *, named: bool) -> str:
    """An address of a host that may be connected to.

    Where the operator has named the host, it may be one of the house; never one that only this machine's own
    link reaches, such as a cloud's service of secrets, unless it is named by its address.
    """
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    for *_, address in found:
        text = str(address[0])
        if _may_be_asked(ip_address(text.partition("%")[0]), named=named, literal=text == name):
            return text
    raise ImageError(f"image: {name} has no public address")


def _may_be_asked(address: Address, *, named: bool, literal: bool) -> bool:
    if isinstance(address, IPv6Address):
        within = address.ipv4_mapped or address.sixtofour
        if within is None and address in _NAT64:
            within = IPv4Address(int(address) & 0xFFFFFFFF)
        if within is not None:
            address = within
    if named:
        return literal or not (address.is_link_local or address.is_multicast or address.is_unspecified)
    return address.is_global and not address.is_multicast


class _Connection(http.client.HTTPConnection):
    """A connection to an address that was checked, by the name of its host."""

    def __init__(self, name: str, port: int, address: str, secure: bool, timeout: float) -> None:
        super().__init__(name, port, timeout=timeout)
        self._address = address
        self._secure = secure
        if secure:
            self.default_port = _PORTS["https"]

    def connect(self) -> None:
        sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._secure:
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=self.host)
        self.sock = sock
