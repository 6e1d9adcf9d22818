"""Links and lanes of one cluster, broken and healed through Toxiproxy.

toxiproxy-python keeps one global endpoint, has no time-outs and does not raise on every error. All of that is mended
here, so that two clusters can be driven from one process: its HTTP class is replaced by one that sends to the
endpoint of the call that is under way.

    cut             refuse new connections, reset open ones
    blackhole       accept and drop; connections are closed at heal, since bytes are missing from them
    stall           hold every byte; deliver at heal
    responses-lost  requests arrive, answers are dropped; closed at heal

A toxic's own random `toxicity` is never used: its dice are not in the plan.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import requests
import toxiproxy.proxy
import toxiproxy.server

from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster import topology

Mode = Literal["cut", "blackhole", "stall", "responses-lost"]
_API_TIMEOUT_S = 5.0
_FOREVER_MS = 24 * 3600 * 1000
_port: ContextVar[int] = ContextVar("toxiproxy_api_port")


class _Endpoint:
    """Stands in for toxiproxy-python's APIConsumer."""

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
    try:
        response = requests.request(method, f"http://127.0.0.1:{_port.get()}{url}", timeout=_API_TIMEOUT_S, **kwargs)
        response.raise_for_status()
    except requests.RequestException as error:
        raise HarnessError(f"toxiproxy: {method} {url}: {error}") from error
    return response


toxiproxy.proxy.APIConsumer = _Endpoint
toxiproxy.server.APIConsumer = _Endpoint


class Proxies:
    """The proxies of one cluster. All methods raise HarnessError when Toxiproxy does not answer in five seconds."""

    def __init__(self, api_port: int) -> None:
        self._api_port = api_port
        self._known = {
            link.name: toxiproxy.proxy.Proxy(name=link.name, upstream=link.upstream, listen=link.listen, enabled=True)
            for link in topology.links()
        }

    @contextmanager
    def _here(self) -> Iterator[None]:
        token = _port.set(self._api_port)
        try:
            yield
        finally:
            _port.reset(token)

    def healthy(self) -> bool:
        """Every link there, enabled, without a toxic, and leading straight to its node."""
        with self._here():
            raw = _Endpoint.get("/proxies").json()
        return set(raw) >= set(self._known) and all(
            raw[name]["enabled"] and not raw[name]["toxics"] and raw[name]["upstream"] == known.upstream
            for name, known in self._known.items()
        )

    def lead(self, upstreams: Mapping[str, str]) -> None:
        """Lead links to other upstreams; what is open on them is closed."""
        with self._here():
            for name, upstream in upstreams.items():
                _Endpoint.post(f"/proxies/{name}", json=self._leading(name, upstream))

    def break_links(self, names: Iterable[str], mode: Mode) -> None:
        with self._here():
            for name in names:
                self._break(self._known[name], mode)

    def degrade_links(self, names: Iterable[str], toxic: str, attributes: Mapping[str, int]) -> None:
        """Add one of Toxiproxy's toxics to both directions of these links."""
        with self._here():
            for name in names:
                for stream in ("upstream", "downstream"):
                    self._known[name].add_toxic(type=toxic, stream=stream, attributes=dict(attributes))

    def heal_links(self, names: Iterable[str], *, close: bool) -> None:
        """Take every toxic off; harmless when nothing is broken. `close`: close what is open on them, too, as must be
        where bytes are missing."""
        with self._here():
            for name in names:
                if close:
                    self._renew(name)
                else:
                    for toxic in self._known[name].toxics():
                        self._known[name].destroy_toxic(toxic)
                    self._known[name].enable()

    def _renew(self, name: str) -> None:
        """Another proxy in the place of this one: taking toxics off one whose connections were closed may hang
        Toxiproxy (its issue 558)."""
        upstream = _Endpoint.get(f"/proxies/{name}").json()["upstream"]
        self._known[name].destroy()
        _Endpoint.post("/proxies", json=self._leading(name, upstream))

    def _leading(self, name: str, upstream: str) -> dict[str, Any]:
        """A link as Toxiproxy wants to be told, with what it leads to."""
        return {"name": name, "listen": self._known[name].listen, "upstream": upstream, "enabled": True}

    def broken(self, names: Iterable[str]) -> list[str]:
        """Which of these links Toxiproxy says are disabled or have a toxic."""
        with self._here():
            raw = _Endpoint.get("/proxies").json()
        return [name for name in names if name not in raw or not raw[name]["enabled"] or raw[name]["toxics"]]

    def close_connections(self, names: Iterable[str]) -> None:
        """Close what is open on these links, so that no byte of a dead client can still arrive."""
        with self._here():
            for name in names:
                self._known[name].disable()
                self._known[name].enable()

    def heal_all(self) -> None:
        with self._here():
            toxiproxy.server.Toxiproxy().reset()

    @staticmethod
    def _break(proxy: Any, mode: Mode) -> None:
        if mode == "cut":
            proxy.disable()
        elif mode == "stall":
            for stream in ("upstream", "downstream"):
                proxy.add_toxic(type="latency", stream=stream, attributes={"latency": _FOREVER_MS})
        else:
            streams = ("downstream",) if mode == "responses-lost" else ("upstream", "downstream")
            for stream in streams:
                proxy.add_toxic(type="timeout", stream=stream, attributes={"timeout": 0})
