"""Breaks and restores the links and lanes of one cluster through Toxiproxy.

    cut             refuses new connections and resets open ones
    blackhole       accepts bytes and drops them; connections are closed at the heal, because bytes are missing
    stall           holds every byte and delivers it at the heal
    responses-lost  delivers requests and drops responses; connections are closed at the heal

toxiproxy-python has one global endpoint and no timeouts, and it does not raise every error. This module replaces its
HTTP class by one that sends each request to the endpoint of the current call, with a timeout, and raises HarnessError.
So one process can use several clusters. Toxiproxy's random `toxicity` is never used, because the plan does not
determine it.

Several faults may affect the same link. Each of them adds toxics of its own, and healing it leaves those of the others.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import RLock
from typing import Any, Literal

import requests
import toxiproxy.proxy
import toxiproxy.server

from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import topology

Mode = Literal["cut", "blackhole", "stall", "responses-lost"]
_API_TIMEOUT_S = 5.0
# When a toxic is removed, Toxiproxy waits five seconds for each chunk that it held and that nobody takes (its link.go);
# removals of twelve seconds were seen. It can also hang for good (Toxiproxy issue 558).
_LINK_TIMEOUT_S = 13.0  # for all toxics of a link
_RESET_TIMEOUT_S = 25.0  # for all links
_FOREVER_MS = 24 * 3600 * 1000
_BOTH = ("upstream", "downstream")
# Toxic, attributes and directions of each mode that adds toxics.
_TOXICS: Mapping[str, tuple[str, Mapping[str, int], Sequence[str]]] = {
    "blackhole": ("timeout", {"timeout": 0}, _BOTH),
    "stall": ("latency", {"latency": _FOREVER_MS}, _BOTH),
    "responses-lost": ("timeout", {"timeout": 0}, ("downstream",)),
}
_port: ContextVar[int] = ContextVar("toxiproxy_api_port")
_removed_by: ContextVar[float] = ContextVar("removed_by")  # the deadline of toxics, as from time.monotonic()


class _Endpoint:
    """Replaces toxiproxy-python's APIConsumer."""

    @staticmethod
    def get(url: str, **kwargs: Any) -> requests.Response:
        return _send("GET", url, **kwargs)

    @staticmethod
    def post(url: str, **kwargs: Any) -> requests.Response:
        return _send("POST", url, **kwargs)

    @staticmethod
    def delete(url: str, **kwargs: Any) -> requests.Response:
        return _send("DELETE", url, **kwargs)


def _send(method: str, url: str, **kwargs: Any) -> requests.Response:
    removes = method == "DELETE" or url == "/reset"
    timeout_s = max(0.1, _removed_by.get() - time.monotonic()) if removes else _API_TIMEOUT_S
    try:
        response = requests.request(method, f"http://127.0.0.1:{_port.get()}{url}", timeout=timeout_s, **kwargs)
        response.raise_for_status()
    except requests.RequestException as error:
        raise HarnessError(f"toxiproxy: {method} {url}: {error}") from error
    return response


toxiproxy.proxy.APIConsumer = _Endpoint
toxiproxy.server.APIConsumer = _Endpoint


@dataclass(frozen=True, kw_only=True)
class _Damage:
    """What one fault does to a link: it disables it, or adds these toxics, in the form of Toxiproxy's API."""

    cut: bool = False
    toxics: Sequence[Mapping[str, Any]] = ()


class Proxies:
    """The Toxiproxy proxies of one cluster, by the name of their link. `fault` is the id of the fault that affects it.

    All methods raise HarnessError when Toxiproxy reports an error or does not answer within five seconds. It has 13 s
    to remove all toxics of a link, and 25 s to remove those of all links.
    """

    def __init__(self, api_port: int) -> None:
        self._api_port = api_port
        self._known = {
            link.name: toxiproxy.proxy.Proxy(name=link.name, upstream=link.upstream, listen=link.listen, enabled=True)
            for link in topology.links()
        }
        self._damage: dict[str, dict[str, _Damage]] = defaultdict(dict)
        self._number = count()  # makes the names of toxics unique
        self._changing = RLock()

    @contextmanager
    def _here(self, *, removal_s: float = _API_TIMEOUT_S) -> Iterator[None]:
        """Send the requests of the block to this Toxiproxy, which has so many seconds to remove all their toxics."""
        port, deadline = _port.set(self._api_port), _removed_by.set(time.monotonic() + removal_s)
        try:
            yield
        finally:
            _port.reset(port)
            _removed_by.reset(deadline)

    def healthy(self) -> bool:
        """Return whether every link exists, is enabled, has no toxic and is routed directly to its node."""
        with self._here():
            raw = _Endpoint.get("/proxies").json()
        return set(raw) >= set(self._known) and all(
            raw[name]["enabled"] and not raw[name]["toxics"] and raw[name]["upstream"] == known.upstream
            for name, known in self._known.items()
        )

    def lead(self, upstreams: Mapping[str, str]) -> None:
        """Change the upstreams of links, which closes their open connections."""
        with self._here(), self._changing:
            for name, upstream in upstreams.items():
                _Endpoint.post(f"/proxies/{name}", json=self._definition(name, upstream))

    def break_links(self, names: Iterable[str], mode: Mode, *, fault: str) -> None:
        """Break these links in one of the modes that the module describes."""
        for name in names:
            self._strike(name, fault, _Damage(cut=True) if mode == "cut" else self._toxics(*_TOXICS[mode]))

    def degrade_links(self, names: Iterable[str], toxic: str, attributes: Mapping[str, int], *, fault: str) -> None:
        """Add a toxic with these attributes to both directions of these links."""
        for name in names:
            self._strike(name, fault, self._toxics(toxic, attributes, _BOTH))

    def heal_links(self, names: Iterable[str], *, fault: str, close: bool) -> None:
        """Undo what a fault did to these links. This call is idempotent.

        `close` also closes their open connections, which is necessary when bytes are missing from them. A link that
        another fault has cut has none.
        """
        names = list(names)
        with self._changing:
            for name in names:  # of all of them first: `apply_again` must not break them again if one cannot be healed
                self._damage[name].pop(fault, None)
            with ThreadPoolExecutor(max(1, len(names))) as threads:  # Toxiproxy may take five seconds for each
                list(threads.map(partial(self._heal, close=close), names))

    def _heal(self, name: str, *, close: bool) -> None:
        with self._here(removal_s=_LINK_TIMEOUT_S):
            if close or self._cut(name):
                self._renew(name)
                self._apply(name)
                return
            wanted = {toxic["name"] for each in self._damage[name].values() for toxic in each.toxics}
            for toxic in self._known[name].toxics().keys() - wanted:
                self._known[name].destroy_toxic(toxic)
            self._known[name].enable()

    def apply_again(self) -> None:
        """Break all links again that are to be broken, after Toxiproxy was restarted."""
        with self._here(), self._changing:
            for name in self._damage:
                self._apply(name)

    def _toxics(self, kind: str, attributes: Mapping[str, int], streams: Iterable[str]) -> _Damage:
        return _Damage(
            toxics=[
                {
                    "name": f"{kind}_{stream}_{next(self._number)}",
                    "type": kind,
                    "stream": stream,
                    "attributes": dict(attributes),
                }
                for stream in streams
            ]
        )

    def _strike(self, name: str, fault: str, damage: _Damage) -> None:
        with self._here(), self._changing:
            self._damage[name][fault] = damage
            self._inflict(name, damage)

    def _apply(self, name: str) -> None:
        for each in self._damage[name].values():
            self._inflict(name, each)

    def _inflict(self, name: str, damage: _Damage) -> None:
        if damage.cut:
            self._known[name].disable()
        for toxic in damage.toxics:
            self._known[name].add_toxic(**toxic)

    def _renew(self, name: str) -> None:
        """Replace a proxy by a new one with the same upstream.

        Removing a toxic from a proxy whose connections were closed can hang Toxiproxy (Toxiproxy issue 558).
        """
        upstream = _Endpoint.get(f"/proxies/{name}").json()["upstream"]
        self._known[name].destroy()
        _Endpoint.post("/proxies", json=self._definition(name, upstream))

    def _definition(self, name: str, upstream: str) -> dict[str, Any]:
        """Return the definition of a link with this upstream, as Toxiproxy's API expects it."""
        return {"name": name, "listen": self._known[name].listen, "upstream": upstream, "enabled": not self._cut(name)}

    def _cut(self, name: str) -> bool:
        return any(each.cut for each in self._damage[name].values())

    def broken(self, names: Iterable[str]) -> list[str]:
        """Return those of these links that are missing, disabled or have a toxic."""
        with self._here():
            raw = _Endpoint.get("/proxies").json()
        return [name for name in names if name not in raw or not raw[name]["enabled"] or raw[name]["toxics"]]

    def close_connections(self, names: Iterable[str]) -> None:
        """Close the open connections of these links, so that no byte of a dead client can still arrive."""
        with self._here(), self._changing:
            for name in names:
                self._known[name].disable()
                if not self._cut(name):
                    self._known[name].enable()

    def heal_all(self) -> None:
        """Remove every toxic and enable every proxy."""
        with self._changing, self._here(removal_s=_RESET_TIMEOUT_S):
            self._damage.clear()
            toxiproxy.server.Toxiproxy().reset()
