"""Threads that work on the engine's jobs: progress, callbacks, and how work ends early."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from cases import denoise_planes, noise, random_stages

from nlnet.engine.jobs import Job, threads_for
from nlnet.engine.library import load
from nlnet.engine.removal import Removal
from nlnet.network.block import prepare, prepare_blank
from nlnet.network.config import NetworkConfig
from nlnet.noise.record import White
from nlnet.noise.stabilisation import engine_noise
from nlnet.parallel import available_cpus

CONFIG = NetworkConfig(stages=3)
STAGES = [stage.astype(np.float32) for stage in random_stages(CONFIG)]
SHAPE = (1, 300, 280)


def test_small_images_do_not_start_threads():
    assert threads_for(100, 8) == 1
    assert threads_for(10**6, 8) == 8
    assert threads_for(10**9, None) == available_cpus()


def run(threads=3, progress=None, write=None) -> None:
    """Remove noise; the rows of the result are handed to a callback."""
    image = noise(*SHAPE).astype(np.float32)
    removal = Removal(image, engine_noise(White(25.0)))
    network = prepare(CONFIG, STAGES, sigma=25.0)
    removal.run([network], write or (lambda first, rows: None), threads=threads, progress=progress)


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_is_told_in_the_calling_thread(threads):
    callers, shares = set(), []

    def progress(share: float) -> None:
        callers.add(threading.current_thread())
        shares.append(share)

    run(threads, progress)
    assert callers == {threading.current_thread()}
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert shares == sorted(set(shares))
    assert len(shares) > 5


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_written_in_order_one_call_at_a_time(threads):
    alone, written = threading.Lock(), []

    def write(first: int, rows: np.ndarray) -> None:
        assert alone.acquire(blocking=False)
        written.extend(range(first, first + rows.shape[1]))
        time.sleep(0.001)
        alone.release()

    run(threads, write=write)
    assert written == list(range(SHAPE[1]))


class UnwantedError(Exception):
    pass


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("where", ["write", "progress"])
def test_an_exception_anywhere_ends_the_work_and_comes_out(threads, where):
    before = {*threading.enumerate()}
    calls = dict.fromkeys(["write", "progress"], 0)

    def count(name: str) -> None:
        calls[name] += 1
        if name == where and calls[name] == 2:
            raise UnwantedError(where)

    with pytest.raises(UnwantedError, match=where):
        run(threads, lambda share: count("progress"), lambda first, rows: count("write"))
    assert calls[where] == 2
    assert {*threading.enumerate()} <= before
    run(threads)  # as if nothing had happened


def test_the_first_of_several_exceptions_comes_out():
    failed = threading.Event()

    def fail(*_: object) -> None:
        failed.set()
        raise UnwantedError("first")

    def progress(share: float) -> None:
        if share > 0:
            assert failed.wait(10)
            time.sleep(0.05)  # until it is noted
            raise UnwantedError("later")

    with pytest.raises(UnwantedError, match="first"):
        run(3, progress, fail)


@pytest.mark.parametrize("main", [True, False], ids=["main thread", "other thread"])
def test_work_in_any_thread_gives_the_same(main):
    image = noise(1, 100, 90).astype(np.float32)
    wanted = denoise_planes(image, CONFIG, STAGES)
    results = []
    work = lambda: results.append(denoise_planes(image, CONFIG, STAGES, threads=2))  # noqa: E731
    if main:
        work()
    else:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    np.testing.assert_array_equal(results[0], wanted)


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import find_groups
from nlnet.network.parameters import initial_parameters
from nlnet.engine.removal import Removal
from nlnet.network.block import prepare
from nlnet.noise.record import White
from nlnet.noise.stabilisation import engine_noise

config = NetworkConfig()
image = np.random.default_rng(0).uniform(0, 255, (1, 1200, 1200)).astype(np.float32)
stages = [stage.astype(np.float32) for stage in initial_parameters(config)]

def denoise():
    removal = Removal(image, engine_noise(White(25.0)))
    removal.run([prepare(config, stages, sigma=25.0)], lambda first, rows: None, threads=2)

work = {"denoise": denoise, "match": lambda: find_groups(image, config, 2)}[sys.argv[1]]
work()  # that long it takes
start = time.monotonic()
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(100):
        work()
except KeyboardInterrupt:
    assert time.monotonic() - start < 10
    assert threading.active_count() <= 2
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("what", ["denoise", "match"])
def test_ctrl_c_ends_the_work(what):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, what], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "interrupted\n", done.stderr
    assert done.stderr == ""  # nothing was ignored on the way


def test_a_job_keeps_alive_what_it_works_on():
    images = noise(1, 40, 50).astype(np.float32)
    groups = np.empty((1, 40, 50, 8, 2), np.int8)
    config = NetworkConfig(stages=1)
    task = load().match_task(1, 40, 50, images.ctypes.data, groups.ctypes.data, 1)
    job = Job("match", prepare_blank(config).handle, task, (images, groups))
    references = sys.getrefcount(images)
    del job
    assert sys.getrefcount(images) < references
