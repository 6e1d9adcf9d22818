"""A Hadoop file system in a container of its own: one name node and one data node.

    with hdfs("onceproof-spark-00", executors) as uri:                hdfs://172.18.0.2:9000

The release is that of Spark's own Hadoop client.
"""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import docker

from onceproof.harness.artifacts import images, jars
from onceproof.harness.cluster import containers

_PORT = 9000
_HADOOP = "3.4.1"
_JARS = (
    f"org.apache.hadoop:hadoop-client-minicluster:{_HADOOP}",
    "org.slf4j:slf4j-reload4j:1.7.36",  # the name node does not start without Log4j
    "ch.qos.reload4j:reload4j:1.2.25",
)
_OPTIONS = {
    "dfs.namenode.name.dir": "/tmp/names",
    "dfs.namenode.http-address": "127.0.0.1:0",
    "dfs.namenode.rpc-bind-host": "0.0.0.0",
    "dfs.namenode.datanode.registration.ip-hostname-check": "false",  # its network has no names for addresses
    "dfs.permissions.enabled": "false",  # executors are other users than the driver
    "dfs.replication": "1",
    "dfs.datanode.data.dir": "/tmp/blocks",
    "dfs.datanode.address": "0.0.0.0:0",
    "dfs.datanode.ipc.address": "127.0.0.1:0",
    "dfs.datanode.http.address": "127.0.0.1:0",
}


@contextmanager
def hdfs(cluster: str, executors: Sequence[Any]) -> Iterator[str]:
    """Run the file system during the block, in a Docker network with containers of a cluster, and yield its URI.

    It takes files once its data node has registered, some seconds later. Hadoop's clients look up the name of its
    address, and refuse one with an underscore. Networks that Compose makes have one, so this is another network.
    """
    name, labels = f"{cluster}-hdfs", {containers.LABEL: cluster}
    options = " ".join(shlex.join(["-D", f"{name}={value}"]) for name, value in _OPTIONS.items())
    node = "java -Xmx200m -cp '/jars/*' org.apache.hadoop.hdfs.server"
    script = (
        f'options="{options} -D fs.defaultFS=hdfs://$(hostname -i):{_PORT}"; '
        f"{node}.namenode.NameNode $options -format -force -nonInteractive && "
        f"({node}.namenode.NameNode $options & {node}.datanode.DataNode $options)"
    )
    with closing(docker.from_env()) as client, ExitStack() as ended:
        network = client.networks.create(name, internal=True, labels=labels)
        ended.callback(network.remove)
        for each in executors:
            network.connect(each)
            ended.callback(network.disconnect, each, force=True)
        container = client.containers.run(
            images.BASE_IMAGE,
            ["sh", "-c", script],
            name=name,
            network=name,
            labels=labels,
            volumes={str(jars.artifacts(_JARS)): {"bind": "/jars", "mode": "ro"}},
            mem_limit="1g",
            init=True,
            detach=True,
        )
        ended.callback(container.remove, force=True)
        container.reload()
        yield f"hdfs://{container.attrs['NetworkSettings']['Networks'][name]['IPAddress']}:{_PORT}"
