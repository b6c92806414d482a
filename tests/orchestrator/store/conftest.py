import pytest

from orchestrator.store.store import Store


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "results" / "s")
    store.lock().release()  # makes the folders
    return store
