"""The wire proxy: sits between a Toxiproxy link and a broker, and can act on one single request.

    python3 wire.py LINKS.json       link number i of the file comes in at port 20000 + i and goes to its upstream

Of a request it reads length, api key, version, correlation id and client id, which every version has in these places;
of a response length and correlation id. Nothing deeper. Whoever drives it speaks JSON lines on port 8475:

    {"do": "hello"}
    {"do": "rule", "rule": "r1", "links": ["lane1->broker2"], "api": 26, "action": "hold", "requests": 1}
    {"do": "release", "rule": "r1"}

    hold            keep the request and what follows it on its connection; deliver it at `release`, also when the
                    client has closed its connection by then
    delay           deliver it after `delay_ms`
    drop-response   deliver it; when its response comes, close the connection instead
    close           do not deliver it; close the connection

A rule matches so many `requests` (0: every one until it is released) of that api key whose client id begins with
`client`. What happened is told to everybody who is connected, as JSON lines: matched, delivered, answered, dropped.
"""

import asyncio
import json
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONTROL_PORT = 8475
LINK_PORTS = 20_000
_HEAD = struct.Struct(">hhih")
_CHUNK = 256 * 1024
_ANSWER_DEADLINE_S = 10.0
_LOST = (ConnectionError, OSError, asyncio.IncompleteReadError)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is known of a request; `key` is its api key, `frame` all of it, its length in front."""

    key: int
    version: int
    correlation: int
    client: str
    frame: bytes

    @classmethod
    def parse(cls, length: bytes, body: bytes) -> "Request":
        """Read the header that every version of every request has in the same place."""
        key, version, correlation, size = _HEAD.unpack_from(body)
        client = body[_HEAD.size : _HEAD.size + max(size, 0)].decode(errors="replace")
        return cls(key=key, version=version, correlation=correlation, client=client, frame=length + body)


@dataclass(kw_only=True)
class Rule:
    """What to do with which requests: api key, links, client id prefix, and how many of them (0: all)."""

    rule: str
    links: frozenset[str]
    api: int
    action: str
    client: str = ""
    requests: int = 1
    delay_ms: int = 0
    matched: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def takes(self, link: str, request: Request) -> bool:
        """Whether the rule applies to this request."""
        return (
            not self.released.is_set()
            and link in self.links
            and request.key == self.api
            and request.client.startswith(self.client)
            and (self.requests == 0 or self.matched < self.requests)
        )


class Rules:
    """The rules in force, and the connections that are told what happens to requests."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}
        self._watchers: set[asyncio.StreamWriter] = set()

    def match(self, link: str, request: Request) -> Rule | None:
        """The first rule that applies to a request, which then counts it; None if there is none."""
        for rule in self._rules.values():
            if rule.takes(link, request):
                rule.matched += 1
                return rule
        return None

    def say(self, **event: Any) -> None:
        """Send an event to every connected controller."""
        line = json.dumps(event).encode() + b"\n"
        for watcher in self._watchers:
            watcher.write(line)

    async def control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One who drives it; each command is answered by `done` or by `refused`."""
        self._watchers.add(writer)
        try:
            while line := await reader.readline():
                try:
                    self._do(json.loads(line))
                    writer.write(b'{"event": "done"}\n')
                except (KeyError, TypeError, ValueError) as error:
                    writer.write(json.dumps({"event": "refused", "why": repr(error)}).encode() + b"\n")
                await writer.drain()
        except _LOST:
            pass
        finally:
            self._watchers.discard(writer)
            writer.close()

    def _do(self, command: dict[str, Any]) -> None:
        what = command.pop("do")
        if what == "rule":
            rule = Rule(**{**command, "links": frozenset(command["links"])})
            self._rules[rule.rule] = rule
        elif what == "release":
            self._rules[command["rule"]].released.set()
        elif what != "hello":
            raise ValueError(f"do: {what!r}; allowed: hello, rule, release")


class Connection:
    """One connection of a client, and the one to the broker that belongs to it."""

    def __init__(self, number: int, link: str, rules: Rules) -> None:
        self._number, self._link, self._rules = number, link, rules
        self._watched: dict[int, Rule] = {}

    async def run(self, client: "Ends", broker: "Ends") -> None:
        """Until the client has closed and what was held for it is answered, or the broker has closed."""
        answers = asyncio.create_task(self._responses(client, broker))
        try:
            with suppress(*_LOST):
                await self._requests(client, broker)
            deadline = time.monotonic() + _ANSWER_DEADLINE_S
            while self._watched and not answers.done() and time.monotonic() < deadline:
                await asyncio.wait([answers], timeout=0.05)
        finally:
            answers.cancel()
            client.close()
            broker.close()

    async def _requests(self, client: "Ends", broker: "Ends") -> None:
        while True:
            length = await client.reader.readexactly(4)
            request = Request.parse(length, await client.reader.readexactly(int.from_bytes(length)))
            rule = self._rules.match(self._link, request)
            if rule is None:
                await broker.send(request.frame)
                continue
            self._tell(
                "matched",
                rule,
                request.correlation,
                action=rule.action,
                key=request.key,
                version=request.version,
                client=request.client,
                size=len(request.frame),
            )
            if rule.action == "close":
                return
            await self._wait(rule)
            self._watched[request.correlation] = rule
            try:
                await broker.send(request.frame)
            except _LOST:
                self._tell("lost", rule, request.correlation)
                raise
            self._tell("delivered", rule, request.correlation)

    async def _wait(self, rule: Rule) -> None:
        if rule.action == "hold":
            await rule.released.wait()
        elif rule.action == "delay":
            await asyncio.sleep(rule.delay_ms / 1000)

    async def _responses(self, client: "Ends", broker: "Ends") -> None:
        """Pass on whole responses, in chunks; one that is dropped ends the connection."""
        try:
            while True:
                head = await broker.reader.readexactly(8)
                left, correlation = int.from_bytes(head[:4]) - 4, int.from_bytes(head[4:], signed=True)
                rule = self._watched.get(correlation)
                if rule is not None and rule.action == "drop-response":
                    self._tell("dropped", rule, correlation)
                    return
                await client.send_if_there(head)
                while left > 0:
                    chunk = await broker.reader.readexactly(min(left, _CHUNK))
                    left -= len(chunk)
                    await client.send_if_there(chunk)
                if rule is not None:
                    self._tell("answered", rule, correlation)
                    del self._watched[correlation]
        except _LOST:
            pass
        finally:
            client.close()
            broker.close()

    def _tell(self, event: str, rule: Rule, correlation: int, **more: Any) -> None:
        self._rules.say(
            event=event, rule=rule.rule, link=self._link, connection=self._number, correlation=correlation, **more
        )


@dataclass(frozen=True)
class Ends:
    """Both directions of one TCP connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Write, and wait until the peer takes it. Raises OSError when the connection has ended."""
        self.writer.write(data)
        await self.writer.drain()

    async def send_if_there(self, data: bytes) -> None:
        """To a client that may have gone: what was held for it is delivered to the broker all the same."""
        with suppress(*_LOST):
            await self.send(data)

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()


def _accept(
    link: str, upstream: str, rules: Rules
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    host, _, port = upstream.rpartition(":")
    count = 0

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        try:
            broker = Ends(*await asyncio.open_connection(host, int(port), limit=_CHUNK))
        except _LOST:
            writer.close()
            return
        await Connection(count, link, rules).run(Ends(reader, writer), broker)

    return accept


async def serve(path: Path) -> None:
    """Listen for controllers, and for the clients of each link of a file."""
    rules = Rules()
    servers = [await asyncio.start_server(rules.control, "0.0.0.0", CONTROL_PORT)]
    for number, link in enumerate(json.loads(path.read_text())):
        accept = _accept(link["name"], link["upstream"], rules)
        servers.append(await asyncio.start_server(accept, "0.0.0.0", LINK_PORTS + number, limit=_CHUNK))
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
