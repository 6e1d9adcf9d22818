"""The settings that all clients know by the same name. What the scenario says under `[client.config]` comes last, and
so wins over them."""

from collections.abc import Mapping
from typing import Any

Settings = dict[str, Any]
_PATIENCE_S = 60.0


def patience_s(config: Mapping[str, Any]) -> float:
    """Every retry ends: the broker has aborted by then, and what is still refused is refused for good."""
    return float(config["transaction_timeout_ms"]) / 1000 + _PATIENCE_S


def settled(config: Mapping[str, Any], ours: Mapping[str, Any]) -> Settings:
    """A client's whole configuration: its connection, `ours`, and what the scenario says."""
    return {
        "bootstrap.servers": config["bootstrap"],
        "client.id": f"{config['name']}-{config['incarnation']}",
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1000,
        **ours,
        **config["client_config"],
    }


def membership(config: Mapping[str, Any], assignor: str) -> Settings:
    """A member of the workers' group; `assignor` as the client calls it."""
    sessions: Settings = {"group.protocol": "consumer"}
    if config["group_protocol"] == "classic":
        session_timeout_ms = config["session_timeout_ms"]
        sessions = {
            "session.timeout.ms": session_timeout_ms,
            "heartbeat.interval.ms": session_timeout_ms // 4,
            "partition.assignment.strategy": assignor,
        }
    if config["static_member"]:
        sessions["group.instance.id"] = config["name"]
    return {
        **sessions,
        "group.id": config["group"],
        "enable.auto.commit": config["position"] == "auto",
        "auto.commit.interval.ms": 500,
        "auto.offset.reset": config["auto_offset_reset"],
        "isolation.level": config["isolation"],
    }


def production(config: Mapping[str, Any], transactional_id: str | None) -> Settings:
    """A producer, transactional when it has an id."""
    settings: Settings = {"enable.idempotence": config["idempotent"], "linger.ms": 2}
    if transactional_id is not None:
        settings |= {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": config["transaction_timeout_ms"],
            # The default of 100 ms is what each transaction waits for, since the one before is still being completed.
            "retry.backoff.ms": 5,
        }
    return settings
