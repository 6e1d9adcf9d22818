"""Settings that all Kafka clients have under the same name.

The scenario's `[client.config]` is applied last and overrides them.
"""

from collections.abc import Mapping
from typing import Any

Settings = dict[str, Any]
_PATIENCE_S = 60.0


def patience_s(config: Mapping[str, Any]) -> float:
    """Return for how long a call is retried, in seconds: the transaction time-out and a minute.

    After that the coordinator has aborted the transaction, and a call that is still refused will not succeed.
    """
    return float(config["transaction_timeout_ms"]) / 1000 + _PATIENCE_S


def settled(config: Mapping[str, Any], ours: Mapping[str, Any]) -> Settings:
    """Return the complete configuration of a client: its connection, `ours`, and the scenario's settings."""
    return {
        "bootstrap.servers": config["bootstrap"],
        "client.id": f"{config['name']}-{config['incarnation']}",
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1000,
        **ours,
        **config["client_config"],
    }


def membership(config: Mapping[str, Any], assignor: str) -> Settings:
    """Return the settings of a member of the workers' group; `assignor` is the client's name for it."""
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
    """Return the settings of a producer, which is transactional if it has an id."""
    settings: Settings = {
        "enable.idempotence": config["idempotent"],
        "linger.ms": 2,
        "compression.type": config["compression"],
    }
    if transactional_id is not None:
        settings |= {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": config["transaction_timeout_ms"],
            # Each transaction waits for this, since the previous one is still being completed. The default is 100 ms.
            "retry.backoff.ms": 5,
        }
    return settings
