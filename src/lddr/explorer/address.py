"""Where the explorer listens, who can reach it there, and what to type into a browser."""

import ipaddress
import socket

from lddr.errors import UserError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names_of(host: str) -> frozenset[str]:
    """What the machine that listens at an address may be called."""
    return LOOPBACK | {host.lower()} | (set() if is_loopback(host) else {socket.getfqdn().lower()})


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any free one."""
    if not 0 <= port <= 65535:
        raise UserError(f"a port is a number from 0 to 65535, not {port}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"cannot listen at {host} port {port} ({reason}); choose another with --port") from error


def url(host: str, port: int) -> str:
    """What to type into a browser on this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # those mean every address
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"
