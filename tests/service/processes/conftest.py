"""What the tests of several processes serve."""

from pathlib import Path

import pytest

from tests.service.models import VECTOR, add_model


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with the model `vector`."""
    add_model(tmp_path, "vector", VECTOR)
    return tmp_path
