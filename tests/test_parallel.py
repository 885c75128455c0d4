"""The CPUs of the process, and the limit on BLAS."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import threadpoolctl

from nlnet.parallel import available_cpus, single_threaded_blas


def blas_threads() -> list[int]:
    """Threads that each BLAS of the process may use now."""
    info = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    return [library["num_threads"] for library in info]


@pytest.fixture
def several_blas_threads():
    """Let BLAS have three threads, so that a limit and its end can be told apart."""
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        if not blas_threads() or set(blas_threads()) != {3}:
            pytest.skip("no BLAS whose threads can be set")
        yield


@pytest.mark.usefixtures("several_blas_threads")
def test_blas_has_one_thread_inside_and_what_it_had_before_after():
    with single_threaded_blas:
        assert 1 in blas_threads()
    assert set(blas_threads()) == {3}
    with pytest.raises(ZeroDivisionError), single_threaded_blas:
        _ = 1 // 0
    assert set(blas_threads()) == {3}


@pytest.mark.usefixtures("several_blas_threads")
def test_overlapping_blocks_share_the_limit():
    # As when two threads of a program estimate noise: the limit is one of the whole process.
    single_threaded_blas.__enter__()
    with single_threaded_blas:
        single_threaded_blas.__exit__(None, None, None)
        assert 1 in blas_threads()
    assert set(blas_threads()) == {3}


@pytest.mark.usefixtures("several_blas_threads")
def test_blocks_of_other_threads_count_as_well():
    """Where another thread was the first to set a limit, and where two of them overlap."""
    with single_threaded_blas:
        assert 1 in blas_threads()

    def work():
        with single_threaded_blas:
            return blas_threads()

    with ThreadPoolExecutor(1) as pool:
        assert 1 in pool.submit(work).result()
        assert set(blas_threads()) == {3}
        pool.submit(single_threaded_blas.__enter__).result()
        assert 1 in blas_threads()
        with single_threaded_blas:
            pool.submit(single_threaded_blas.__exit__, None, None, None).result()
            assert 1 in blas_threads()
        assert set(blas_threads()) == {3}
        assert 1 in pool.submit(work).result()


def test_cpus_are_those_there_are():
    assert 1 <= available_cpus() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_cpus_are_those_the_process_may_use():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert available_cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)
