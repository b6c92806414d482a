import os
import signal
import subprocess
import sys
import time

import psutil

from orchestrator.isolation.child_process import ProcessEnded, call_in_child


def test_results_come_in_order_and_for_calls_that_end_their_process_how_it_ended():
    acts = [lambda: 1, lambda: os._exit(7), lambda: time.sleep(3600), lambda: os.abort(), lambda: 2]
    answers = list(call_in_child(lambda act: act(), acts, seconds=1.0))
    assert answers == [
        1,
        ProcessEnded("ended its process with exit status 7"),
        ProcessEnded("did not end within 1 s"),
        ProcessEnded("ended its process by SIGABRT"),
        2,
    ]


def test_a_result_is_not_awaited_from_a_process_that_has_ended():
    def leaves_a_process_behind(_):
        if os.fork() == 0:
            time.sleep(8)
            os._exit(0)
        os._exit(3)

    started = time.monotonic()
    (found,) = call_in_child(leaves_a_process_behind, [0], 50.0)
    assert found == ProcessEnded("ended its process with exit status 3")
    assert time.monotonic() - started < 5


def test_a_copy_of_the_child_sends_no_results():
    def double(number):
        os.fork()
        return number

    assert list(call_in_child(double, [1, 2, 3], 50.0)) == [1, 2, 3]


def test_a_child_ends_with_its_parent():
    reader, writer = os.pipe()

    def wait(_):
        os.write(writer, str(os.getpid()).encode())
        time.sleep(3600)

    parent = os.fork()
    if parent == 0:
        list(call_in_child(wait, [0]))
        os._exit(0)
    child = psutil.Process(int(os.read(reader, 20)))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    child.wait(10)


INTERRUPTED_FORK = """
import os, signal
from orchestrator.isolation.child_process import call_in_child

process = os.getpid()
os.register_at_fork(after_in_parent=lambda: os.kill(process, signal.SIGINT))
try:
    for result in call_in_child(str, [1, 2]):
        pass
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_ctrl_c_during_a_fork_is_not_lost():
    command = [sys.executable, "-c", INTERRUPTED_FORK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted True\n", "")
