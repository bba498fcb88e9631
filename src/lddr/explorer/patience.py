"""HTTP with limits: a request that never ends, an answer that nobody reads and one connection too many are cut off."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 60.0  # seconds: a picture of 5 MB takes as long at 0.7 Mbit/s
MOST_CONNECTIONS = 256  # each takes one of the files this process may open


class PatientProtocol(H11Protocol):
    """Waits for the other side as long as is decent."""

    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()

    def handle_events(self) -> None:
        super().handle_events()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()  # closes when all is written, which an idle reader can put off
        self.loop.call_later(PATIENCE, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Let the clock run while the other side owes the rest of a request or has to take an answer."""
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) and not self.flow.write_paused:
            self._stop()
        elif self._clock is None:
            self._clock = self.loop.call_later(PATIENCE, self.transport.abort)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
