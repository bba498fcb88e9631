"""The password of the page, and patience with those who guess: the more often they were wrong, the longer they wait."""

import base64
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Network

from lddr.errors import UserError

FREE_TRIES = 10  # wrong ones that cost no time
LONGEST_WAIT, FORGOTTEN = 60.0, 600.0  # seconds
MOST_CLIENTS = 10_000  # that are remembered


class Password:
    """HTTP basic authentication under any user name."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.monotonic) -> None:
        if not secret:
            raise UserError("the password is empty; give one with --password or LDDR_PASSWORD, or leave both out")
        self._secret, self._clock = secret.encode(), clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()  # by client: how often, and when last

    def is_known(self, authorization: str, client: str) -> bool:
        """Whether this is the password; while its client has to wait, nothing is, or the answer's speed would tell."""
        if not authorization or self.wait(client):
            return False
        is_right = secrets.compare_digest(_password_in(authorization), self._secret)
        if not is_right:
            self._remember(client)
        return is_right

    def wait(self, client: str) -> int:
        """Seconds until the next try of this client is looked at."""
        tries, last = self._wrong.get(_neighbourhood(client), (0, 0.0))
        pause = min(2.0 ** min(tries - FREE_TRIES, 10), LONGEST_WAIT) if tries >= FREE_TRIES else 0.0
        return max(0, math.ceil(last + pause - self._clock()))

    def _remember(self, client: str) -> None:
        place = _neighbourhood(client)
        tries, last = self._wrong.pop(place, (0, 0.0))
        self._wrong[place] = (1 if self._clock() - last > FORGOTTEN else tries + 1, self._clock())
        if len(self._wrong) > MOST_CLIENTS:
            self._wrong.popitem(last=False)


def _neighbourhood(client: str) -> str:
    """Whoever has one address of IPv6 has the 2⁶⁴ beside it too."""
    return str(IPv6Network((client.partition("%")[0], 64), strict=False)) if ":" in client else client


def _password_in(authorization: str) -> bytes:
    """What follows the user name; nothing if this is something else."""
    scheme, _, credentials = authorization.partition(" ")
    try:
        given = base64.b64decode(credentials, validate=True).partition(b":")[2]
    except ValueError:
        return b""
    return given if scheme.lower() == "basic" else b""
