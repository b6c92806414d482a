"""How workers are chosen and orders handed out, and what processes are started with, without any cluster."""

from dataclasses import replace
from threading import Timer
from unittest.mock import Mock

import pytest

from orchestrator.execution import cluster_executor as cluster_module
from orchestrator.execution import dataset_upload, worker_pool
from orchestrator.execution.cluster_executor import ClusterExecutor
from orchestrator.execution.dask import processes
from orchestrator.execution.dask_settings import as_environment, dask_settings
from orchestrator.execution.installation import describe, mismatch, software
from orchestrator.execution.transport import CallResult, CallStatus
from orchestrator.execution.worker_pool import Requirements, WorkerHandle, WorkerPool
from orchestrator.isolation.child_process import ProcessEnded
from orchestrator.study.errors import ExecutionError
from orchestrator.study.settings import Cluster
from orchestrator.study.tls import Tls
from tests.messages import assert_each_says, assert_says, raises
from tests.orchestrator.classifiers import here, order_for

FACTS = {"cache": "c", "machine": "m", "cores": [0, 2], "host": {"host": "h"}, "limits": {}, "software": {}}


# -- software ------------------------------------------------------------------------------------


def test_a_worker_with_the_same_software_is_used():
    assert mismatch(describe(("solvers",)), 4, software(("solvers",)), timing=False) == ""


@pytest.mark.parametrize("name", ["python", "numpy", "sources of orchestrator", "sources of solvers"])
def test_any_difference_is_named_with_both_sides(name):
    described = describe(("solvers",))
    mine = described["software"][name]
    described = described | {"software": described["software"] | {name: "other"}}
    problem = mismatch(described, 1, software(("solvers",)), timing=False)
    assert f"{name} other (here {mine})" in problem
    assert "Install the same" in problem


def test_a_package_that_is_not_there_is_a_difference():
    assert software(("no_such_package",))["sources of no_such_package"] == "none"


def test_asking_for_the_software_imports_nothing(tmp_path, monkeypatch):
    (tmp_path / "exits_at_import.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert software(("exits_at_import",))["sources of exits_at_import"].startswith("exits_at_import ")


@pytest.mark.parametrize(
    ("threads", "limits", "told"),
    [
        (2, {"OMP_NUM_THREADS": "1"}, "has 2 threads"),
        (1, {"NUMBA_NUM_THREADS": None}, "has NUMBA_NUM_THREADS=None"),
        (1, {"OMP_NUM_THREADS": "8"}, "has OMP_NUM_THREADS=8"),
        (1, {"OMP_NUM_THREADS": "1"}, ""),
    ],
)
def test_timings_take_one_thread(threads, limits, told):
    facts = FACTS | {"limits": limits}
    assert told in mismatch(facts, threads, {}, timing=True)
    assert mismatch(facts, threads, {}, timing=False) == ""


# -- workers and cores ---------------------------------------------------------------------------


def test_each_worker_of_a_machine_gets_a_core_until_there_is_none():
    pool = WorkerPool()
    for number in range(2):
        core = pool.free_core(FACTS)
        pool[f"w{number}"] = WorkerHandle(f"w{number}", "w", 1, FACTS, core)
    assert [worker.core for worker in pool.values()] == [0, 2]
    assert pool.free_core(FACTS) is None
    assert pool.free_core(FACTS | {"machine": "other"}) == 0
    del pool["w0"]
    assert pool.free_core(FACTS) == 0


def test_the_least_busy_worker_is_chosen():
    pool = WorkerPool()
    for name, busy in (("a", {1, 2}), ("b", {3}), ("c", {4, 5, 6})):
        pool[name] = WorkerHandle(name, name, 3, FACTS, orders=busy)
    assert pool.choose(lambda worker: True).address == "b"
    assert pool.choose(lambda worker: worker.address != "b").address == "a"
    assert pool.choose(lambda worker: worker.address == "c") is None


# -- handing out orders --------------------------------------------------------------------------


class FakeTransport:
    """A cluster whose workers answer when a test says so."""

    scheduler, dashboard, alive = "fake://", "", True

    def __init__(self, n):
        self.there = {f"w{number}": (f"w{number}", 1) for number in range(n)}
        self.calls = []
        self.software = {}
        self.caches = {}  # of each worker's host; one for all if not said
        self.hosts = {}  # of workers that are not on this host
        self.direct_calls = []

    def workers(self):
        return dict(self.there)

    def submit(self, address, callback, function, *arguments):
        call = Mock()  # only its `cancel` is called, and nothing comes of it
        self.calls.append((address, callback, call))
        return call

    def run(self, address, callback, function, *arguments):
        call = Mock()
        if function is describe:
            facts = describe(arguments[0]) | {"cores": [0, 1], "cache": self.caches.get(address, "c")}
            facts["host"] = self.hosts.get(address, facts["host"])
            callback(
                CallResult(call, CallStatus.RETURNED, facts | {"software": facts["software"] | self.software})
            )
        else:
            self.direct_calls.append((address, function, callback, call))
        return call

    def answer(self, address, status=CallStatus.RETURNED, value=("result", ()), error=None):
        index = next(i for i, call in enumerate(self.calls) if call[0] == address)
        _, callback, pending = self.calls.pop(index)
        callback(CallResult(pending, status, value, error))

    def busy(self):
        return sorted(call[0] for call in self.calls)


def orders(tmp_path, number, **protocol):
    order = order_for(here("Constant"), tmp_path, C=(1,), **protocol)
    return [replace(order, batch=replace(order.batch, number=index)) for index in range(number)]


def test_a_worker_has_one_order_at_a_time_and_the_others_wait(tmp_path):
    transport = FakeTransport(2)
    executor = ClusterExecutor(transport, Cluster())
    for order in orders(tmp_path, 3):
        executor.submit(order)
    assert (executor.slots, executor.demand, transport.busy()) == (2, 3, ["w0", "w1"])
    transport.answer("w1")
    (outcome,) = executor.wait(1)
    assert outcome.result == "result"
    assert transport.busy() == ["w0", "w1"]


def test_workers_that_take_long_to_describe_themselves_are_waited_for(tmp_path, monkeypatch, caplog):
    """Their host may be busy: what they answer with takes seconds to import."""
    monkeypatch.setattr(cluster_module, "DESCRIBE_SECONDS", 0.0)
    monkeypatch.setattr(cluster_module, "CHECK_SECONDS", 0.01)

    class Slow(FakeTransport):
        def run(self, *arguments):
            Timer(0.3, super().run, arguments).start()

    executor = ClusterExecutor(Slow(1), Cluster())
    assert executor.slots == 1
    assert_says(caplog.text, "no worker", "600 s")


def test_what_workers_warn_of_is_told_once(tmp_path, caplog):
    transport = FakeTransport(2)
    executor = ClusterExecutor(transport, Cluster())
    for order in orders(tmp_path, 2):
        executor.submit(order)
    for worker in transport.busy():
        transport.answer(worker, value=("result", ("UserWarning: odd data (theirs.py:7)",)))
    executor.wait(1)
    told = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert_each_says(told, ("iris × arm", "UserWarning", "odd data", "(theirs.py:7)"))


def test_a_worker_s_death_is_blamed_on_its_order_alone(tmp_path):
    transport = FakeTransport(2)
    executor = ClusterExecutor(transport, Cluster())
    for order in orders(tmp_path, 2):
        executor.submit(order)
    transport.answer("w0", CallStatus.WORKER_DIED)
    (outcome,) = executor.wait(1)
    assert_says(outcome.lost, "worker w0", "died")
    assert transport.busy() == ["w1"]


def test_a_host_that_joined_and_left_during_the_run_is_described(tmp_path, monkeypatch):
    """Its rows name it, and the report compares processors by these descriptions."""
    monkeypatch.setattr(cluster_module, "CHECK_SECONDS", 0.0)
    transport = FakeTransport(1)
    transport.hosts["w1"] = {"host": "second", "cpu": "another"}
    executor = ClusterExecutor(transport, Cluster())
    transport.there["w1"] = ("w1", 1)
    for _ in range(2):
        executor.wait(0)
    del transport.there["w1"]
    executor.wait(0)
    assert executor.slots == 1
    assert [host["host"] for host in executor.describe()["hosts"]][1:] == ["second"]


def test_an_order_whose_result_was_lost_runs_again(tmp_path):
    transport = FakeTransport(2)
    executor = ClusterExecutor(transport, Cluster())
    executor.submit(orders(tmp_path, 1)[0])
    (first,) = transport.busy()
    transport.answer(first, CallStatus.LOST)
    assert executor.wait(0.1) == []
    (again,) = transport.busy()
    transport.answer(again)
    (outcome,) = executor.wait(1)
    assert outcome.result == "result"


def test_a_broken_connection_ends_the_run(tmp_path):
    transport = FakeTransport(1)
    executor = ClusterExecutor(transport, Cluster())
    executor.submit(orders(tmp_path, 1)[0])
    transport.alive = False
    with raises(ExecutionError, "same command"):
        executor.wait(1)


def lose_the_connection(transport):
    transport.alive = False


def lose_a_result(transport):
    transport.answer("w0", CallStatus.DISCONNECTED)


@pytest.mark.parametrize("lose", [lose_the_connection, lose_a_result])
def test_what_ended_before_an_error_is_returned_before_it(tmp_path, lose):
    transport = FakeTransport(3)
    executor = ClusterExecutor(transport, Cluster())
    for order in orders(tmp_path, 3):
        executor.submit(order)
    transport.answer("w1")
    lose(transport)
    transport.answer("w2")
    assert [outcome.result for outcome in executor.wait(1)] == ["result", "result"]
    with raises(ExecutionError, "same command"):
        executor.wait(1)


def test_a_run_ends_when_all_its_workers_have_other_software(tmp_path, monkeypatch):
    transport = FakeTransport(1)
    executor = ClusterExecutor(transport, Cluster())
    monkeypatch.setattr(cluster_module, "DESCRIBE_SECONDS", 0.0)
    monkeypatch.setattr(cluster_module, "CHECK_SECONDS", 0.01)
    executor.submit(orders(tmp_path, 1)[0])
    transport.answer("w0", CallStatus.WORKER_DIED)
    executor.wait(1)
    transport.software = {"python": "2.7"}
    with pytest.raises(ExecutionError, match=r"worker w0 .*python 2.7"):
        collect_nothing(executor)


def collect_nothing(executor):
    for _ in range(100):
        assert executor.wait(0.05) == []


@pytest.fixture
def short_backoff(monkeypatch):
    """Hosts that get orders again a moment after a failure."""
    monkeypatch.setattr(worker_pool, "BACKOFF_SECONDS", (0.01, 0.02))


def wait_for_an_order(transport, executor):
    """Wait until some worker has one, and return the worker."""
    for _ in range(1000):
        if transport.busy():
            return transport.busy()[0]
        assert executor.wait(0.01) == []
    raise AssertionError("no worker got the order")


def test_an_order_that_fails_outside_of_trainings_goes_to_another_host_at_once(tmp_path, caplog):
    transport = FakeTransport(2)
    transport.caches = {"w0": "one", "w1": "two"}
    executor = ClusterExecutor(transport, Cluster())
    executor.submit(orders(tmp_path, 1)[0])
    (first,) = transport.busy()
    transport.answer(first, CallStatus.RAISED, error=MemoryError("no room for a Gram matrix"))
    assert executor.wait(0.01) == []
    (second,) = transport.busy()
    assert second != first
    transport.answer(second)
    (outcome,) = executor.wait(1)
    assert (outcome.result, outcome.order.batch.attempt) == ("result", 1)
    assert_says(caplog.text, "MemoryError", "tried again")


def test_a_host_with_a_passing_failure_is_tried_again_on_its_other_worker(tmp_path, short_backoff):
    transport = FakeTransport(2)
    executor = ClusterExecutor(transport, Cluster())
    executor.submit(orders(tmp_path, 1)[0])
    (first,) = transport.busy()
    transport.answer(first, CallStatus.RAISED, error=OSError("stale file handle"))
    second = wait_for_an_order(transport, executor)
    assert second != first
    transport.answer(second)
    assert executor.wait(1)[0].result == "result"


def test_a_run_ends_with_one_sentence_when_an_order_failed_on_every_host(tmp_path, short_backoff):
    transport = FakeTransport(2)
    transport.caches = {"w0": "one", "w1": "two"}
    executor = ClusterExecutor(transport, Cluster())
    executor.submit(orders(tmp_path, 1)[0])
    for _ in range(2 * worker_pool.MAX_FAILURES - 1):
        transport.answer(
            wait_for_an_order(transport, executor), CallStatus.RAISED, error=ImportError("no such thing")
        )
        executor.wait(0)
    transport.answer(
        wait_for_an_order(transport, executor), CallStatus.RAISED, error=ImportError("no such thing")
    )
    with raises(ExecutionError, "iris × arm", "ImportError"):
        executor.wait(1)


def test_a_run_does_not_wait_for_ever_when_the_last_host_that_could_do_the_rest_has_left(
    tmp_path, short_backoff, monkeypatch, caplog
):
    monkeypatch.setattr(cluster_module, "CHECK_SECONDS", 0.01)
    transport = FakeTransport(2)
    transport.caches = {"w0": "bad", "w1": "good"}
    executor = ClusterExecutor(transport, Cluster(no_workers_timeout=0.2))
    order, blocking = orders(tmp_path, 2)
    for each in (order, blocking):
        executor.submit(each)
    for _ in range(worker_pool.MAX_FAILURES):  # the other host is there, and busy all the time
        while "w0" not in transport.busy():
            assert executor.wait(0.01) == []
        transport.answer("w0", CallStatus.RAISED, error=OSError("no space left on device"))
        executor.wait(0)
    transport.answer("w1")
    del transport.there["w1"]
    executor._remove_worker("w1")  # before it can be given the order
    executor.wait(0)
    with pytest.raises(ExecutionError, match=r"cluster.no_workers_timeout=0.2: .*whose host .*Start"):
        collect_nothing(executor)
    assert_says(caplog.text, "no connected host", "0.2 s")


def test_a_host_that_fails_backs_off_while_another_does_the_work(tmp_path):
    """A host that fails at once is always free, and would take every order first."""
    transport = FakeTransport(2)
    transport.caches = {"w0": "bad", "w1": "good"}
    executor = ClusterExecutor(transport, Cluster())
    for order in orders(tmp_path, 6):
        executor.submit(order)
    failed, done = 0, 0
    while done < 6:
        if "w0" in transport.busy():
            transport.answer("w0", CallStatus.RAISED, error=OSError("no space left on device"))
            failed += 1
        else:
            transport.answer("w1")
        done += len(executor.wait(0))
    assert failed == 1


def test_a_piece_that_got_no_answer_in_time_is_sent_again(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(dataset_upload, "STORE_SECONDS", 0.05)
    monkeypatch.setattr(dataset_upload, "PAUSE_SECONDS", 0.01)
    transport = FakeTransport(1)
    executor = ClusterExecutor(transport, Cluster())
    (order,) = orders(tmp_path, 1)
    executor.submit(order)
    transport.answer("w0", value=None)  # its host lacks the data
    tokens = set()

    def answer(address, callback, function, *arguments, run=transport.run):
        call = run(address, callback, function, *arguments)
        if function is not describe:
            tokens.add(arguments[0])
            if len(tokens) > 1:  # all of the first attempt is too late
                callback(CallResult(call, CallStatus.RETURNED))
        return call

    transport.run = answer
    executor.wait(0)
    assert wait_for_an_order(transport, executor) == "w0"
    assert len(tokens) == 2
    assert_says(caplog.text, "dataset iris", "host")
    executor._uploads.close()


def test_a_dataset_that_cannot_be_sent_is_given_up_after_a_few_attempts(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_upload, "PAUSE_SECONDS", 0.01)
    transport = FakeTransport(1)
    executor = ClusterExecutor(transport, Cluster())
    executor.submit(orders(tmp_path, 1)[0])
    transport.answer("w0", value=None)
    tokens = set()

    def refuse(address, callback, function, *arguments):
        tokens.add(arguments[0])
        callback(CallResult(Mock(), CallStatus.RAISED, error=OSError("no space left on device")))
        return Mock()

    transport.run = refuse
    executor.wait(0)
    assert wait_for_an_order(transport, executor) == "w0"  # to load it from its origin
    assert len(tokens) == dataset_upload.MAX_SENDS
    transport.answer("w0", CallStatus.RAISED, error=OSError("no such file"))
    with raises(ExecutionError, "dataset 'iris'", "space"):
        collect_nothing(executor)
    executor._uploads.close()


def test_in_timings_an_arm_is_compiled_by_one_worker_of_a_host_first(tmp_path):
    transport = FakeTransport(2)
    executor = ClusterExecutor(transport, Cluster())
    executor._requirements = Requirements(timing=True)  # this process does not limit its threads
    for order in orders(tmp_path, 3):
        executor.submit(order)
    assert transport.busy() == ["w0"]
    transport.answer("w0")
    executor.wait(1)
    assert transport.busy() == ["w0", "w1"]


@pytest.mark.parametrize("compiling", [frozenset(), frozenset({"another arm"})])
def test_in_timings_workers_begin_together_where_nothing_is_compiled(compiling, tmp_path):
    transport = FakeTransport(2)
    executor = ClusterExecutor(transport, Cluster())
    executor._requirements = Requirements(timing=True, compiling=compiling)
    for order in orders(tmp_path, 3):
        executor.submit(order)
    assert transport.busy() == ["w0", "w1"]


def test_a_worker_whose_child_ended_has_lost_the_order_and_goes_on(tmp_path):
    transport = FakeTransport(1)
    executor = ClusterExecutor(transport, Cluster())
    for order in orders(tmp_path, 2):
        executor.submit(order)
    transport.answer("w0", value=(ProcessEnded("ended its process by SIGSEGV", 3.0), ()))
    (outcome,) = executor.wait(1)
    assert (outcome.result, outcome.seconds) == (None, 3.0)
    assert_says(outcome.lost, "w0", "ended", "SIGSEGV")
    assert transport.busy() == ["w0"]


# -- processes -----------------------------------------------------------------------------------


def test_settings_reach_a_process_of_dask_through_its_environment(tmp_path):
    files = {name: tmp_path / name for name in ("ca", "cert", "key")}
    environment = as_environment(dask_settings(45, Tls(**files)))
    assert environment["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] == "45s"
    assert environment["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
    assert environment["DASK_DISTRIBUTED__COMM__TLS__WORKER__KEY"] == str(tmp_path / "key")


@pytest.mark.parametrize(
    ("address", "host", "told"),
    [
        ("tcp://10.0.0.1:8786", None, "address of this host with --host"),
        ("tcp://10.0.0.1:8786", "10.0.0.2", ""),
        ("tcp://127.0.0.1:8786", None, ""),
        ("tcp://localhost:8786", None, ""),
        ("10.0.0.1:8786", "10.0.0.2", "expected an address such as tcp://HOST:8786"),
        ("tcp://10.0.0.1:port", "10.0.0.2", "expected an address such as tcp://HOST:8786"),
        ("tls://10.0.0.1:8786", "10.0.0.2", "Omit --insecure"),
    ],
)
def test_a_worker_listens_beyond_loopback_only_if_asked(address, host, told):
    if told:
        with pytest.raises(ExecutionError, match=told):
            processes.worker_command(address, host, 1, None, None)
    else:
        command = processes.worker_command(address, host, 1, None, None)
        assert command[command.index("--host") + 1] == (host or "127.0.0.1")
