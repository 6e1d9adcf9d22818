"""Build the clients of a run with its configuration, without brokers, and report the first setting that is refused.

librdkafka refuses a setting that it does not know, and both libraries refuse values that are out of range or contradict
each other. The Java client ignores settings that it does not know, and so these are compared with the names that its
producer and its consumer define.

The configuration is read from stdin as JSON: that of a worker, with `client`; and `roles`, any of `worker`, `generator`
and `observer`. Stdout gets one line, the problem; it is empty if there is none.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from onceproof.harness.artifacts import clients
from onceproof.workloads.clients.drivers import driver


def problem(config: Mapping[str, Any]) -> str:
    """Return what the client of one of the roles refuses, or an empty string."""
    builds: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
        "worker": _worker,
        "generator": _generator,
        "observer": _observer,
    }
    for role in config["roles"]:
        try:
            builds[role](config)
        except Exception as error:  # a client may raise anything
            return f"the client of the {role} refuses it: {_text(error)}"
    return ""


def _worker(config: Mapping[str, Any]) -> None:
    client = driver(config["client"])
    client.Reader(config)
    client.Writer(config, config["transactional_id"])
    if clients.family(config["client"]) == "java":
        _known_to_java(config["client_config"])


def _known_to_java(settings: Mapping[str, Any]) -> None:
    import jpype

    package = "org.apache.kafka.clients"
    classes = (f"{package}.producer.ProducerConfig", f"{package}.consumer.ConsumerConfig")
    known = {str(name) for each in classes for name in jpype.JClass(each).configNames()}
    for name in settings:
        if name not in known:
            raise ValueError(f'neither the producer nor the consumer has a setting "{name}"')


def _generator(config: Mapping[str, Any]) -> None:
    from confluent_kafka import Producer

    from onceproof.workloads.processes.generator import producer_config

    Producer(producer_config(config))


def _observer(config: Mapping[str, Any]) -> None:
    from confluent_kafka import Consumer

    from onceproof.workloads.processes.observer import consumer_config

    Consumer(consumer_config(config))


def _text(error: Exception) -> str:
    """Return the message of an error of librdkafka, of the Java client, or of Python, in one line."""
    cause: Any = error.args[0] if error.args else ""
    if hasattr(cause, "str"):  # a KafkaError
        return " ".join(cause.str().split())
    root: Any = error
    while getattr(root, "getCause", None) and root.getCause() is not None:
        root = root.getCause()  # the Java client wraps it as "Failed to construct kafka consumer"
    told = str(root.getMessage() if hasattr(root, "getMessage") else error)
    return " ".join(told.split())


def main() -> None:
    """Report the problem on stdout."""
    said = problem(json.load(sys.stdin))
    sys.stdout.write(said[:300])
    sys.stdout.flush()
    os._exit(0)  # the clients look for brokers that do not exist, and need not be closed


if __name__ == "__main__":
    main()
