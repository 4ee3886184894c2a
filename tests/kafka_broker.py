"""A real broker of Kafka in a process of its own, on free ports of the loopback: one for all tests that ask for it.

Its packages come from the registry of Java packages, once (43 MB), and stay in the user's cache. Tests get the broker
from the fixture ``broker``, and are marked ``xdist_group("kafka")``, so that one process of pytest runs them all.

Besides the port that anybody may use it has one with TLS, where a user must log in.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from random import Random
from typing import IO, Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.kafka_topics import Topics
from tests.patience import until

VERSION = "4.1.0"
JAVA = 17
"""The oldest Java that runs it."""
OPTIONS = (
    *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote"),  # else it starts more slowly
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
GUARD = 'exec 3<&0; "$@" & broker=$!; (read -r _ <&3; kill -9 $broker) & wait $broker; kill $!'
"""A shell that kills the broker when its standard input ends: when the process of the tests is gone."""
PORTS = range(20_000, 32_000)
"""Below those that a system hands out by itself: during an outage another program could get the broker's."""
STARTS = 5
"""How often a broker is started where another program was quicker to take a port."""
FETCH, START = 120, 120
"""Seconds for getting the packages, and for a program of Java: then there is no broker here, and its tests are skipped.

Maven by itself waits far longer for a registry that takes a connection and says nothing.
"""
SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{guarded},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{guarded}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config={login}
ssl.keystore.type=PKCS12
ssl.keystore.location={keys}/broker.p12
ssl.keystore.password={store_password}
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=300
broker.session.timeout.ms=2000
auto.create.topics.enable=false
"""


USER, PASSWORD = "ann", 'a"secret=of \\ hers'
"""Who may log in."""
STORE_PASSWORD = "of-the-tests"
"""Of the file with the key of the broker."""


class NoBroker(Exception):
    """There can be no broker here, and why."""


class Broker(Topics):
    """A broker that runs, until it is stopped or this process ends, however that ends.

    Parameters
    ----------
    folder : Path
        For its data and its log.

    Attributes
    ----------
    guarded : str
        The address where a user must log in, by TLS.
    client : str
        What a client must be told for that: lines of settings of librdkafka.

    Raises
    ------
    NoBroker
        There is no Java or Maven, or the packages cannot be had.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._packages = packages()
        ca = self._packages / "keys" / "ca.pem"
        self.client = f"security.protocol=SASL_SSL\nsasl.mechanisms=PLAIN\nssl.ca.location={ca}\n"
        self.client += f"sasl.username={USER}\nsasl.password={PASSWORD}\n"
        shutil.copytree(self._packages / "formatted", folder / "data")
        self._running: subprocess.Popen[bytes] | None = None
        if not any(self._begins() for _ in range(STARTS)):
            raise NoBroker(f"{STARTS} times another program was quicker to take a port")

    def _begins(self) -> bool:
        """Whether a broker is there, on new ports."""
        port, guarded, controller = free_ports(3)
        said = settings(port, guarded, controller, self._folder / "data", self._packages / "keys")
        self.guarded = f"127.0.0.1:{guarded}"
        (self._folder / "server.properties").write_text(said, encoding="utf-8")
        super().__init__(f"127.0.0.1:{port}")
        self._admin = AdminClient({"bootstrap.servers": self.brokers, "log_level": 0, "error_cb": lambda _: None})
        try:
            self.start()
        except AssertionError:
            self.kill()
            raise NoBroker(f"the broker does not answer for {START} seconds: {self._log()[-2000:]}") from None
        except ChildProcessError:
            log = self._log()
            if "Address already in use" in log:
                return False
            raise NoBroker(f"the broker does not start: {log[-2000:]}") from None
        return True

    def _log(self) -> str:
        return (self._folder / "log").read_text(encoding="utf-8", errors="replace")

    # --- the process ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Let it run, and wait until it answers.

        Raises
        ------
        AssertionError
            It does not.
        ChildProcessError
            It has ended.
        """
        java = ["java", *OPTIONS, "-cp", f"{self._packages / 'jars'}/*"]
        command = [*java, "kafka.Kafka", str(self._folder / "server.properties")]
        guard = ["sh", "-c", GUARD, "sh"]
        with (self._folder / "log").open("wb") as log:
            self._running = subprocess.Popen(
                [*guard, *command], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        until(self._answers, pause=0.1, patience=START)

    def _answers(self) -> bool:
        assert self._running is not None
        if self._running.poll() is not None:
            raise ChildProcessError
        try:
            return bool(self._admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def kill(self) -> None:
        """Let it die at once, as a machine that fails."""
        if self._running is not None:
            assert self._running.stdin is not None
            os.killpg(self._running.pid, signal.SIGKILL)
            self._running.stdin.close()
            self._running.wait()
            self._running = None

    # --- topics -----------------------------------------------------------------------------------------------

    def topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Make a topic."""
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        _done(self._admin.create_topics([new]))
        until(lambda: len(self._partitions(name)) == partitions)

    def delete(self, name: str) -> None:
        """Delete a topic."""
        _done(self._admin.delete_topics([name]))
        until(lambda: not self._partitions(name))

    def forget(self, name: str, offset: int) -> None:
        """Delete the messages of the first partition of a topic that come before one."""
        for answer in self._admin.delete_records([TopicPartition(name, 0, offset)]).values():
            answer.result(60)

    def grow(self, name: str, partitions: int) -> None:
        """Let a topic have more partitions."""
        _done(self._admin.create_partitions([NewPartitions(name, partitions)]))
        until(lambda: len(self._partitions(name)) == partitions)

    def _partitions(self, name: str) -> dict[int, Any]:
        found = self._admin.list_topics(name, timeout=30).topics[name]
        return {} if found.error is not None else found.partitions


def _done(answers: dict[str, Any]) -> None:
    for answer in answers.values():
        answer.result(60)


def settings(port: int, guarded: int, controller: int, data: Path, keys: Path) -> str:
    """What a broker is told."""
    password = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{password}";'
    ports = {"port": port, "guarded": guarded, "controller": controller}
    said = {"login": login.replace("\\", "\\\\"), "store_password": STORE_PASSWORD}
    return SETTINGS.format(**ports, **said, data=data, keys=keys)


def free_ports(number: int) -> list[int]:
    """Ports on which nothing listens."""
    found: list[int] = []
    dice = Random(os.urandom(8))
    while len(found) < number:
        port = dice.choice(PORTS)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        found += [port] if port not in found else []
    return found


def packages() -> Path:
    """The folder in the user's cache with ``jars``, ``keys``, and ``formatted``, the data of a broker that never ran.

    Several processes may ask at once.

    Raises
    ------
    NoBroker
        There is no Java or Maven, or the packages cannot be had.
    """
    _check_java()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "acep-approx-tests"
    folder = cache / f"kafka-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"kafka-{VERSION}.lock").open("w") as lock:
        _take(lock)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as draft:
                whole = Path(draft) / "whole"
                _fetch(whole / "jars")
                _format(whole / "jars", whole / "formatted")
                whole.rename(folder)
        if not (folder / "keys").is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as draft:
                made = Path(draft) / "keys"
                _make_keys(made)
                made.rename(folder / "keys")
    return folder


def _make_keys(folder: Path) -> None:
    """Make the key of a broker of this machine, and a certificate that clients can trust."""
    folder.mkdir()
    store = ["-keystore", str(folder / "broker.p12"), "-storepass", STORE_PASSWORD, "-alias", "broker"]
    pair = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=broker", "-ext", "SAN=ip:127.0.0.1", "-validity", "36500"]
    for command in ([*pair, "-storetype", "PKCS12"], ["-exportcert", "-rfc", "-file", str(folder / "ca.pem")]):
        done = _said(["keytool", *command, *store], START, "making the key of a broker")
        if done.returncode != 0:
            raise NoBroker(f"there is no key for a broker: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def _take(lock: IO[str]) -> None:
    """Wait for the process that gets the packages, if there is one."""
    try:
        until(lambda: _is_ours(lock), pause=0.1, patience=FETCH + START)
    except AssertionError:
        raise NoBroker("another process has been getting the packages of Kafka for too long") from None


def _is_ours(lock: IO[str]) -> bool:
    """Whether nobody else has a lock: then this process has it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _said(command: list[str], seconds: int, what: str) -> subprocess.CompletedProcess[str]:
    """What a program has said, which gets no input and ends in time."""
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise NoBroker(f"{what} takes more than {seconds} seconds") from None


def _check_java() -> None:
    if shutil.which("java") is None:
        raise NoBroker(f"Java {JAVA} is not installed")
    said = _said(["java", "-version"], START, "java -version").stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA:
        raise NoBroker(f"Java is older than {JAVA}: {said.partition(chr(10))[0]}")


def _fetch(jars: Path) -> None:
    """Get the packages of the broker, and all that they need."""
    if shutil.which("mvn") is None:
        raise NoBroker("Maven is not installed, which gets the packages of Kafka")
    command = ["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never"]
    command += ["--file", str(Path(__file__).with_name("kafka_jars.xml"))]
    command += ["dependency:copy-dependencies", f"-DoutputDirectory={jars}", f"-Dkafka.version={VERSION}"]
    done = _said(command, FETCH, "getting the packages of Kafka")
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()] or ["no word"]
        raise NoBroker(f"the packages of Kafka cannot be had: {lines[0]}")


def _format(jars: Path, data: Path) -> None:
    """Prepare the folder of a broker for its first start."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "server.properties"
        file.write_text(settings(1, 2, 3, data, Path(scratch)), encoding="utf-8")
        command = ["java", *OPTIONS, "-cp", f"{jars}/*", "kafka.tools.StorageTool", "format"]
        command += ["--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--config", str(file)]
        done = _said(command, START, "preparing the folder of a broker")
        if done.returncode != 0:
            raise NoBroker(f"the folder of a broker cannot be prepared: {done.stdout[-2000:]}{done.stderr[-2000:]}")
