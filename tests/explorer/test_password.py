import base64

import pytest

from lddr.errors import UserError
from lddr.explorer.guard import FORGOTTEN, FREE_TRIES, LONGEST_WAIT, MOST_CLIENTS, Password


def basic(password, user="any"):
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


class Clock:
    """A time that goes on when it is told to."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def password(clock):
    return Password("open", clock)


def guess(password, times, client="10.0.0.1"):
    for number in range(times):
        assert not password.is_known(basic(f"guess {number}"), client)


def test_wrong_passwords_cost_time_and_ever_more_of_it(password, clock):
    guess(password, FREE_TRIES - 1)
    assert password.wait("10.0.0.1") == 0
    waits = []
    for _ in range(12):
        guess(password, 1)
        waits.append(password.wait("10.0.0.1"))
        clock.now += waits[-1]
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == LONGEST_WAIT


def test_while_one_waits_nothing_is_tried(password, clock):
    guess(password, FREE_TRIES)
    assert not password.is_known(basic("open"), "10.0.0.1")
    guess(password, 50)  # not looked at, so they do not count
    assert password.wait("10.0.0.1") == 1
    clock.now += 1
    assert password.is_known(basic("open"), "10.0.0.1")


def test_others_do_not_wait(password):
    guess(password, FREE_TRIES)
    assert password.is_known(basic("open"), "10.0.0.2")


def test_the_addresses_of_one_network_of_ipv6_are_one_client(password):
    guess(password, FREE_TRIES, "2001:db8::1")
    assert password.wait("2001:db8::ffff:2") == 1
    assert password.wait("2001:db8:0:1::1") == 0
    assert password.wait("fe80::1%eth0") == 0


def test_mistakes_are_forgotten(password, clock):
    guess(password, FREE_TRIES)
    clock.now += FORGOTTEN + 1
    guess(password, 1)
    assert password.wait("10.0.0.1") == 0


def test_no_more_clients_are_remembered_than_fit(password):
    guess(password, FREE_TRIES, "first")
    for number in range(MOST_CLIENTS):
        password.is_known(basic("guess"), str(number))
    assert password.wait("first") == 0


@pytest.mark.parametrize("authorization", ["", "Basic", "Basic ??", "Bearer b3Blbg==", "Basic b3Blbg==", "\xff"])
def test_what_is_no_password_is_not_known(password, authorization):
    assert not password.is_known(authorization, "10.0.0.1")


def test_an_empty_password_is_a_mistake():
    with pytest.raises(UserError, match="the password is empty"):
        Password("")
