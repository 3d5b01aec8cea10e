"""One cluster for all tests that lose no worker."""

import pytest

from cluster_cases import local_cluster


@pytest.fixture(scope="package")
def client():
    with local_cluster() as client:
        yield client
