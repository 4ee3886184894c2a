"""No output shows a secret that a run was given: pages, logs, reports, checkpoints, tables, errors."""

from __future__ import annotations

import json
import logging
from itertools import count

import pytest

from acep_approx import compile_query
from acep_approx.errors import AcepError, UsageError
from acep_approx.events import follow, open_source
from acep_approx.events.live.kafka_address import settings
from acep_approx.masks import is_secret, masked, masked_word, without
from acep_approx.shell import command_of
from tests.command_line import acep

CANARY = "c4n4ry"
QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"
SECRETS = {
    "sasl.password": CANARY,
    "sasl.oauthbearer.config": f"principal={CANARY}",
    "sasl.oauthbearer.client.secret": CANARY,
    "ssl.key.password": f"a {CANARY}' b",
    "ssl.keystore.password": CANARY,
}
LIVE = ["--until-idle", "0 s", "--on-malformed", "skip"]
NUMBERS = count()


@pytest.fixture
def address(cluster):
    name = f"secret{next(NUMBERS)}"
    cluster.topic(name)
    rows = [(1, "A"), (2, "B"), (3, "A"), (9, "B")]
    cluster.send(name, [json.dumps({"ts": ts, "type": kind}).encode() for ts, kind in rows] + [b"no object"])
    return cluster.address(name, partition=0)


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def options(pairs):
    return [word for name, value in pairs.items() for word in ("--kafka-option", f"{name}={value}")]


@pytest.mark.parametrize(
    "more",
    [
        ["--checkpoint", "cp"],
        ["--budget", "5 runs", "--report", "report.html"],
        ["--watermark", "1", "--emit", "early"],
        ["--output", "points"],
    ],
)
def test_no_output_of_a_run_shows_a_secret(address, tmp_path, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    ways = [*LIVE, "-o", "out.jsonl", "--rejects", "rejects.jsonl"]
    logs = ["--page", "page.html", "--log", "debug", "--log", "run.log"]
    done = acep("run", QUERY, address, *ways, *logs, *more, *options(SECRETS))
    assert CANARY not in done.output
    written = files(tmp_path)
    assert {"page.html", "run.log", "rejects.jsonl"} <= {path.name for path in written}
    assert [path for path, data in written.items() if CANARY.encode() in data] == []
    assert b"sasl.password=***" in written[tmp_path / "page.html"]


def test_the_log_on_stderr_shows_no_secret(address):
    done = acep("run", QUERY, address, *LIVE, "--log", "debug", *options(SECRETS))
    assert CANARY not in done.output + done.stderr


ADDRESSES = [
    f"kafka://ann:{CANARY}@host:9092/orders",
    f"kafka://ann:p%40{CANARY}%2F@host:9092/orders",
    f"kafka://{CANARY}@host/orders",
    f"kafka://ann:a/{CANARY}@host/orders",
    f"kafka://ann:a@{CANARY}@host/orders",
    f"kafka://ann:a b{CANARY}@host/orders",
    f"kafka://host/orders?sasl.password={CANARY}",
    f"kafka://host/orders?from=end&password={CANARY}",
    f"kafka://[{CANARY}@host/orders",
    f"postgresql://ann:{CANARY}@host/db",
    f"https://ann:{CANARY}@host/events.csv",
    f"https://host/events.csv?access_token={CANARY}&page=2",
    f"s3://bucket/events.csv?X-Amz-Signature={CANARY}",
    f"kafka:/ann:{CANARY}@host/orders",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_refused_shows_no_password(address):
    for command in (["run", QUERY], ["run", QUERY, "--follow"], ["look"], ["why", QUERY], ["tune", QUERY]):
        head, *more = command
        done = acep(head, *more, address, code=None)
        assert CANARY not in done.output + done.stderr, command
        assert done.exit_code in (2, 4)
    for call in (open_source, follow, compile_query(QUERY).match, compile_query(QUERY).follow):
        with pytest.raises(AcepError) as caught:
            call(address)
        assert CANARY not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize("option", ["-o", "--page", "--log", "--rejects", "--unit", "--until-idle", "--history"])
def test_an_option_that_is_refused_shows_no_password(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text("ts,type\n1,A\n")
    done = acep("run", QUERY, "events.csv", option, f"kafka://ann:{CANARY}@host/orders", code=None)
    assert done.exit_code in (2, 4)
    assert CANARY not in done.output + done.stderr


@pytest.mark.parametrize(
    "text",
    [CANARY, f"sasl.password: {CANARY}", f"{CANARY}!=x", f" = {CANARY}", f"client.id=a\n{CANARY}", f"p@{CANARY}=1"],
)
def test_settings_that_are_none_are_not_shown(text, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(text)
    for given in ([f"@{file}"], [text] if "\n" not in text else [CANARY]):
        with pytest.raises(UsageError, match="is not NAME=VALUE") as caught:
            settings(given)
        assert caught.value.code == "ACEP-U137"
        assert CANARY not in str(caught.value)
    with pytest.raises(UsageError, match=r"line [12] of "):
        settings([f"@{file}"])


def test_a_file_of_settings_that_is_no_text_is_not_shown(tmp_path):
    (tmp_path / "client.properties").write_bytes(b"\xff" + CANARY.encode())
    for name in ("client.properties", "none", ".", "a\0b"):
        with pytest.raises(UsageError, match="cannot be read") as caught:
            settings([f"@{tmp_path / name}"])
        assert CANARY not in str(caught.value)


def test_what_the_client_says_shows_no_secret(address, caplog):
    given = {"sasl.password": CANARY, "ssl.key.pem": f"-----{CANARY}-----", "security.protocol": "SSL"}
    with pytest.raises(UsageError) as caught:
        follow(address, kafka=given)
    assert caught.value.code == "ACEP-U137"
    assert CANARY not in str(caught.value)
    with pytest.raises(UsageError) as caught:
        follow(address, kafka={"sasl.mechanism": CANARY, "sasl.password": CANARY, "security.protocol": "SASL_SSL"})
    assert CANARY not in str(caught.value)
    assert without(f"401 for client={CANARY}", {"sasl.oauthbearer.client.secret": CANARY}) == "401 for client=***"
    assert CANARY not in caplog.text


def test_a_live_run_does_not_show_its_settings(address):
    run = compile_query(QUERY).follow(address, until_idle=0, kafka=SECRETS, on_malformed="skip")
    assert CANARY not in repr(run) + repr(vars(run).get("source"))
    list(run)


def test_commands_to_copy_show_no_password():
    assert command_of(["acep", "look", f"https://a:{CANARY}@host/x"]) == "acep look 'https://***@host/x'"


@pytest.mark.parametrize(
    "name",
    [
        *("sasl.password", "ssl.key.pem", "ssl.key.password", "ssl_key", "sasl.jaas.config", "sasl.oauthbearer.config"),
        *("basic.auth.user.info", "api.key", "apiKey", "access_key", "client_secret", "X-Amz-Credential", "pwd"),
        *("sasl.oauthbearer.assertion.private.key.passphrase", "sasl.kerberos.keytab", "PASSWD", "auth"),
    ],
)
def test_names_that_are_secret(name):
    assert is_secret(name)
    assert masked_word(f"{name}=x=y z") == f"{name}=***"


@pytest.mark.parametrize(
    "text",
    [
        *("kafka://one:9092,two:9092/orders?group=acep&from=end", "https://host/@ann/x", "WHERE a.token = 'x'"),
        *("security.protocol=SASL_SSL", "monkey=1", "C:/a@b/events.csv", "see @query.acep and mail@host", "a://b"),
        *("WHERE a.password = 'x' AND b.key = 7", "2024-05-01T08:00:00Z"),
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert masked(text) == masked_word(text) == text


def test_a_handler_of_the_program_masks_what_others_log(tmp_path):
    from acep_approx.cli.logs import logging_to

    with logging_to([str(tmp_path / "log")]):
        logging.getLogger("acep_approx.live").warning("Kafka: %s", f"http://a:{CANARY}@host refused")
    assert "http://***@host refused" in (tmp_path / "log").read_text()
