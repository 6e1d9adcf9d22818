"""Kafka's Java Admin client, used in this process through JPype.

confluent-kafka's AdminClient cannot describe transactions or producers. Kafka's command-line tools can, but they start
a JVM for each call; a call of this client takes milliseconds. One JVM serves all clusters of the process.

All methods raise AdminError (a HarnessError) when the cluster does not answer within five seconds.
"""

import faulthandler
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import jpype

from onceproof.harness.artifacts import jars
from onceproof.harness.artifacts.clients import DEFAULT_KAFKA
from onceproof.harness.base import coordinators
from onceproof.harness.base.errors import HarnessError
from onceproof.harness.cluster.described import (
    Isolation,
    Member,
    OpenProducer,
    Partition,
    PartitionState,
    Transaction,
)

_CALL_TIMEOUT_MS = 5000
_jvm_lock = threading.Lock()


class AdminError(HarnessError):
    """The cluster refused a call or did not answer; the message contains Kafka's own error."""


def start_jvm() -> None:
    """Start this process's JVM with the Java client of the default Kafka version, unless it is running.

    Python's faulthandler is disabled before. Whoever disables it later, as pytest does at its end, would put back the
    handlers of signals from before it was enabled, in place of the JVM's. The JVM itself causes SIGSEGV to stop its
    threads, and the process would end by the next one.
    """
    with _jvm_lock:
        if not jpype.isJVMStarted():
            faulthandler.disable()
            jpype.startJVM(
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Xrs",
                "-Dlog4j2.level=OFF",
                "-Dlog4j2.StatusLogger.level=OFF",
                classpath=[str(jars.kafka(DEFAULT_KAFKA) / "*")],
                convertStrings=False,
            )


class Admin:
    """One Java Admin client. It is safe to use from several threads."""

    def __init__(self, bootstrap: str, *, name: str) -> None:
        start_jvm()
        self._admin_package = jpype.JPackage("org.apache.kafka.clients.admin")
        self._common = jpype.JPackage("org.apache.kafka.common")
        config = jpype.java.util.Properties()
        for key, value in {
            "bootstrap.servers": bootstrap,
            "client.id": f"{name}-admin",
            "request.timeout.ms": "2500",
            "default.api.timeout.ms": str(_CALL_TIMEOUT_MS),
            "reconnect.backoff.max.ms": "300",
            "metadata.max.age.ms": "1000",
            # If the brokers that it knows of are all down, it looks for others at `bootstrap.servers` (KIP-1102), by
            # default after five minutes.
            "metadata.recovery.rebootstrap.trigger.ms": "5000",
        }.items():
            config.setProperty(key, value)
        self._client = self._admin_package.Admin.create(config)

    def close(self) -> None:
        """Close the client; calls in flight have two seconds to complete."""
        self._client.close(jpype.java.time.Duration.ofSeconds(2))

    # Cluster

    def brokers(self) -> list[int]:
        """Return the node ids of the registered brokers, sorted."""
        return sorted(int(node.id()) for node in _get(self._client.describeCluster().nodes()))

    def controller_leader(self) -> int:
        """Return the node id of the leader of the KRaft quorum, which is the active controller."""
        return int(_get(self._client.describeMetadataQuorum().quorumInfo()).leaderId())

    def features(self) -> dict[str, int]:
        """Return the finalized features and their levels (metadata.version, transaction.version, …) (KIP-584)."""
        finalized = _get(self._client.describeFeatures().featureMetadata()).finalizedFeatures()
        return {str(entry.getKey()): int(entry.getValue().maxVersionLevel()) for entry in finalized.entrySet()}

    def highest_feature(self, name: str) -> int:
        """Return the highest level of a feature that the queried node supports (KIP-584), or 0 if there is none."""
        supported = _get(self._client.describeFeatures().featureMetadata()).supportedFeatures().get(name)
        return 0 if supported is None else int(supported.maxVersion())

    def raise_feature(self, name: str, level: int) -> None:
        """Raise the finalized level of a feature (UpdateFeatures, KIP-584)."""
        update = self._admin_package.FeatureUpdate
        updates = jpype.java.util.HashMap()
        updates.put(jpype.JString(name), update(jpype.JShort(level), update.UpgradeType.UPGRADE))
        _get(self._client.updateFeatures(updates, self._admin_package.UpdateFeaturesOptions()).all())

    # Topics

    def create_topics(self, names: Iterable[str], *, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        """Create topics with the same number of partitions and replicas and the same configuration."""
        options = jpype.java.util.HashMap()
        for key, value in config.items():
            options.put(key, value)
        topics = jpype.java.util.ArrayList()
        for name in names:
            topics.add(self._admin_package.NewTopic(name, partitions, jpype.JShort(replicas)).configs(options))
        _get(self._client.createTopics(topics).all())

    def delete_topics(self, names: Iterable[str]) -> None:
        """Delete topics; one that does not exist raises AdminError."""
        topics = jpype.java.util.ArrayList()
        for name in names:
            topics.add(jpype.JString(name))
        _get(self._client.deleteTopics(topics).all())

    def set_topic_config(self, topic: str, key: str, value: str) -> None:
        """Set one configuration key of a topic; its other keys keep their values (KIP-339)."""
        resource = self._common.config.ConfigResource(self._common.config.ConfigResource.Type.TOPIC, topic)
        entry = self._admin_package.ConfigEntry(key, value)
        change = self._admin_package.AlterConfigOp(entry, self._admin_package.AlterConfigOp.OpType.SET)
        changes = jpype.java.util.HashMap()
        changes.put(resource, jpype.java.util.List.of(change))
        _get(self._client.incrementalAlterConfigs(changes).all())

    def topics(self) -> set[str]:
        """Return the names of all topics, internal topics included."""
        options = self._admin_package.ListTopicsOptions().listInternal(True)
        return {str(name) for name in _get(self._client.listTopics(options).names())}

    def topic_names(self) -> dict[str, str]:
        """Return the name of each topic by its id, which newer requests have in place of the name (KIP-516)."""
        listings = _get(self._client.listTopics().listings())
        return {str(each.topicId().toString()): str(each.name()) for each in listings}

    def partitions(self, topic: str) -> dict[int, PartitionState]:
        """Return the state of each partition of a topic, by partition number."""
        described = _get(self._client.describeTopics(_strings([topic])).allTopicNames()).get(topic)
        return {
            int(info.partition()): PartitionState(
                leader=None if info.leader() is None or info.leader().id() < 0 else int(info.leader().id()),
                replicas=tuple(int(node.id()) for node in info.replicas()),
                isr=tuple(sorted(int(node.id()) for node in info.isr())),
            )
            for info in described.partitions()
        }

    def reassign(self, topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
        """Begin to reassign partitions of a topic to these replicas, the preferred leader first (KIP-455)."""
        wanted = jpype.java.util.HashMap()
        for number, nodes in replicas.items():
            list_ = jpype.java.util.ArrayList([jpype.JInt(node) for node in nodes])
            target = self._admin_package.NewPartitionReassignment(list_)
            wanted.put(self._tp((topic, number)), jpype.java.util.Optional.of(target))
        _get(self._client.alterPartitionReassignments(wanted).all())

    def elect_preferred(self, topic: str) -> None:
        """Elect the preferred leader of each partition of a topic that has another one (KIP-460)."""
        places = jpype.java.util.HashSet([self._tp((topic, number)) for number in self.partitions(topic)])
        _get(self._client.electLeaders(self._common.ElectionType.PREFERRED, places).partitions())

    def offsets(
        self, partitions: Iterable[Partition], which: Literal["earliest", "latest"], isolation: Isolation
    ) -> dict[Partition, int]:
        """Return an offset of each partition (ListOffsets).

        `earliest` is the log start offset. `latest` is the high watermark under read_uncommitted and the last stable
        offset (LSO) under read_committed.
        """
        spec = getattr(self._admin_package.OffsetSpec, which)()
        wanted = jpype.java.util.HashMap()
        for partition in partitions:
            wanted.put(self._tp(partition), spec)
        level = getattr(self._common.IsolationLevel, isolation.upper())
        options = self._admin_package.ListOffsetsOptions(level)
        found = _get(self._client.listOffsets(wanted, options).all())
        return {_partition(entry.getKey()): int(entry.getValue().offset()) for entry in found.entrySet()}

    def delete_records(self, before: Mapping[Partition, int]) -> dict[Partition, int]:
        """Delete all records below these offsets and return the low watermarks that the brokers reported (KIP-107)."""
        wanted = jpype.java.util.HashMap()
        for partition, offset in before.items():
            wanted.put(self._tp(partition), self._admin_package.RecordsToDelete.beforeOffset(jpype.JLong(offset)))
        results = self._client.deleteRecords(wanted).lowWatermarks()
        return {_partition(e.getKey()): int(_get(e.getValue()).lowWatermark()) for e in results.entrySet()}

    # Groups

    def group_offsets(self, group: str) -> dict[Partition, tuple[int, str]]:
        """Return a group's committed offsets with their metadata, without pending offsets of open transactions."""
        found = _get(self._client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
        return {
            _partition(entry.getKey()): (int(entry.getValue().offset()), str(entry.getValue().metadata()))
            for entry in found.entrySet()
            if entry.getValue() is not None
        }

    def group_coordinator(self, group: str) -> int:
        """Return the node id of a group's coordinator."""
        return int(self._group(group).coordinator().id())

    def members(self, group: str) -> list[Member]:
        """Return the members of a group with their assignments."""
        return [
            Member(
                member_id=str(member.consumerId()),
                client_id=str(member.clientId()),
                partitions=tuple(sorted(_partition(tp) for tp in member.assignment().topicPartitions())),
            )
            for member in self._group(group).members()
        ]

    def offsets_partition(self, group: str) -> Partition:
        """Return the partition of `__consumer_offsets` that holds this group."""
        count = len(self.partitions("__consumer_offsets"))
        return "__consumer_offsets", coordinators.partition(group, count)

    def _group(self, group: str) -> Any:
        return _get(self._client.describeConsumerGroups(_strings([group])).all()).get(group)

    # Transactions

    def transaction(self, transactional_id: str) -> Transaction:
        """Return the coordinator's description of a transactional id (DescribeTransactions, KIP-664)."""
        described = _get(self._client.describeTransactions(_strings([transactional_id])).all())
        found = described.get(transactional_id)
        return Transaction(
            transactional_id=transactional_id,
            coordinator=int(found.coordinatorId()),
            state=str(found.state().toString()),
            producer_id=int(found.producerId()),
            producer_epoch=int(found.producerEpoch()),
            partitions=tuple(sorted(_partition(tp) for tp in found.topicPartitions())),
        )

    def transactional_ids(self, prefix: str) -> dict[str, str]:
        """Return the state of each transactional id that begins with `prefix` (ListTransactions, KIP-664)."""
        listings = _get(self._client.listTransactions().all())
        return {
            str(listing.transactionalId()): str(listing.state().toString())
            for listing in listings
            if str(listing.transactionalId()).startswith(prefix)
        }

    def producer_ids(self, partitions: Iterable[Partition]) -> set[int]:
        """Return the producer ids of which the leaders of these partitions know (DescribeProducers, KIP-664)."""
        described = self._producers(partitions)
        return {int(each.producerId()) for entry in described.entrySet() for each in entry.getValue().activeProducers()}

    def open_producers(self, partitions: Iterable[Partition]) -> list[OpenProducer]:
        """Return the producers with an open transaction in these partitions (DescribeProducers, KIP-664)."""
        described = self._producers(partitions)
        return [
            OpenProducer(
                partition=_partition(entry.getKey()),
                producer_id=int(producer.producerId()),
                producer_epoch=int(producer.producerEpoch()),
                start_offset=int(producer.currentTransactionStartOffset().getAsLong()),
            )
            for entry in described.entrySet()
            for producer in entry.getValue().activeProducers()
            if producer.currentTransactionStartOffset().isPresent()
        ]

    def _producers(self, partitions: Iterable[Partition]) -> Any:
        places = jpype.java.util.ArrayList([self._tp(partition) for partition in partitions])
        return _get(self._client.describeProducers(places).all())

    def _tp(self, partition: Partition) -> Any:
        return self._common.TopicPartition(partition[0], partition[1])


def _partition(tp: Any) -> Partition:
    return str(tp.topic()), int(tp.partition())


def _strings(values: Iterable[str]) -> Any:
    strings = jpype.java.util.ArrayList()
    for value in values:
        strings.add(jpype.JString(value))
    return strings


def _get(future: Any) -> Any:
    """Return a KafkaFuture's value. The deadline is the client's own timeout plus one second."""
    try:
        return future.get(jpype.JLong(_CALL_TIMEOUT_MS + 1000), jpype.java.util.concurrent.TimeUnit.MILLISECONDS)
    except jpype.JException as error:
        cause = error.getCause() if error.getCause() is not None else error
        raise AdminError(f"{cause.getClass().getSimpleName()}: {cause.getMessage()}") from None
