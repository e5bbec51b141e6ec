"""Brokers that the tests of one file share."""

from collections.abc import Iterator

import pytest

from brokers import broker_processes
from brokers.broker_processes import Certificate, Mosquitto


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return broker_processes.certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def mosquitto(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[Mosquitto]:
    with broker_processes.mosquitto(tmp_path_factory.mktemp("mosquitto"), certificate) as broker:
        yield broker


@pytest.fixture(scope="module")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with broker_processes.nats_server(tmp_path_factory.mktemp("nats")) as port:
        yield port


@pytest.fixture(scope="module")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with broker_processes.rabbitmq(tmp_path_factory.mktemp("rabbitmq")) as port:
        yield port
