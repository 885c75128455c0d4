"""Threads over tasks: order, errors, scratch memory, and the limit on BLAS."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import threadpoolctl

from nlnet.network.parallel import Task, Workers, available_cpus


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


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(threads):
    def slow_first(task: int) -> int:
        time.sleep(0.02 if task == 0 else 0)
        return task * task

    counts: list[int] = []
    with Workers(threads) as workers:
        assert workers.map(slow_first, range(20), counts.append) == [n * n for n in range(20)]
        assert counts == sorted(counts)
        assert counts[-1] == 20
        assert workers.map(slow_first, []) == []


def test_tasks_run_at_the_same_time():
    barrier = threading.Barrier(3, timeout=10)  # broken unless three tasks wait together
    with Workers(3) as workers:
        workers.map(lambda _: barrier.wait(), range(3))


def test_the_calling_thread_is_one_of_them():
    with Workers(1) as workers:
        names = workers.map(lambda _: threading.current_thread(), range(3))
    assert set(names) == {threading.current_thread()}
    with Workers(2) as workers:
        barrier = threading.Barrier(2, timeout=10)

        def meet(_: int) -> threading.Thread:
            barrier.wait()
            return threading.current_thread()

        names = workers.map(meet, range(2))
    assert threading.current_thread() in names
    assert len(set(names)) == 2


def test_done_is_called_in_the_calling_thread():
    callers = []
    with Workers(2) as workers:
        workers.map(str, range(5), lambda _: callers.append(threading.current_thread()))
    assert set(callers) == {threading.current_thread()}


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_a_task_comes_out_and_the_rest_is_dropped(threads):
    started: list[int] = []
    seen = threading.Event()

    def work(task: int) -> None:
        started.append(task)
        if task == 1:
            raise RuntimeError("task 1")
        if task > 1:
            seen.wait(0.2)

    with Workers(threads) as workers:
        with pytest.raises(RuntimeError, match="task 1"):
            workers.map(work, range(50))
        seen.set()
        assert workers.map(str, [7]) == ["7"]  # still usable
    assert len(started) <= 2 + threads


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_of_done_stops_the_work(threads):
    started: list[int] = []
    seen = threading.Event()

    def work(task: int) -> None:
        started.append(task)
        if task > 0:
            seen.wait(0.2)

    def stop(count: int) -> None:
        raise KeyboardInterrupt

    with Workers(threads) as workers:
        with pytest.raises(KeyboardInterrupt):
            workers.map(work, range(50), stop)
        seen.set()
    assert len(started) <= 2 * threads


class Chain:
    """Tasks of which each is ready when the one before has ended, two at a time."""

    def __init__(self, length: int, work: Callable[[], object] = lambda: None) -> None:
        self.length, self.work = length, work
        self.begun, self.ended = 0, 0

    def next_task(self) -> Task | None:
        if self.begun == self.length or self.begun > self.ended + 1:
            return None
        self.begun += 1
        return Task(self.work, self.end)

    def end(self, _: object) -> None:
        self.ended += 1


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_tasks_become_ready_as_others_end(threads):
    chain = Chain(200, lambda: time.sleep(1e-4))
    callers = []
    with Workers(threads) as workers:
        workers.run(chain.next_task, lambda: callers.append(threading.current_thread()))
    assert (chain.begun, chain.ended) == (200, 200)
    assert set(callers) <= {threading.current_thread()}
    assert callers or threads > 1


def test_no_two_threads_ask_for_tasks_or_end_them_at_once():
    lock = threading.Lock()
    chain = Chain(300)

    def alone(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: object) -> Any:
            assert lock.acquire(blocking=False)
            result = function(*arguments)
            time.sleep(1e-5)
            lock.release()
            return result

        return call

    def next_task() -> Task | None:
        task = chain.next_task()
        return task and Task(task.work, alone(task.end))

    with Workers(4) as workers:
        workers.run(alone(next_task), lambda: None)
    assert chain.ended == 300


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("where", ["work", "end", "next_task"])
def test_an_error_anywhere_stops_a_run(threads, where):
    calls = 0

    def fail(result: object = None) -> None:
        nonlocal calls
        calls += 1
        time.sleep(1e-3)
        if calls > 5:
            raise RuntimeError(where)

    def nothing(result: object = None) -> None:
        pass

    def next_task() -> Task:  # without end: only an error stops it
        (fail if where == "next_task" else nothing)()
        return Task(fail if where == "work" else nothing, fail if where == "end" else nothing)

    with Workers(threads) as workers:
        with pytest.raises(RuntimeError, match=where):
            workers.run(next_task, nothing)
        assert workers.map(str, [7]) == ["7"]  # still usable


def test_scratch_is_kept_per_thread_and_name():
    barrier = threading.Barrier(2, timeout=10)

    def work(value: int) -> tuple[int, bool]:
        memory = workers.scratch("patches", (40,), np.float64)
        memory[:] = value
        other = workers.scratch("features", (40,), np.float64)
        other[:] = -1
        barrier.wait()
        again = workers.scratch("patches", (5, 8), np.float64)
        return again.__array_interface__["data"][0], bool((again == value).all())

    with Workers(2) as workers:
        (first, kept), (second, also_kept) = workers.map(work, [1, 2])
    assert kept
    assert also_kept
    assert first != second


def test_scratch_grows_and_has_the_shape_and_type_asked_for():
    with Workers(1) as workers:
        small = workers.scratch("x", (3,), np.float32)
        large = workers.scratch("x", (30, 2), np.float64)
    assert (small.shape, small.dtype) == ((3,), np.float32)
    assert (large.shape, large.dtype) == ((30, 2), np.float64)
    assert large.flags.c_contiguous
    assert large.flags.aligned


@pytest.mark.usefixtures("several_blas_threads")
@pytest.mark.parametrize("threads", [1, 2])
def test_blas_has_one_thread_inside_and_what_it_had_before_after(threads):
    with Workers(threads):
        assert 1 in blas_threads()
    assert set(blas_threads()) == {3}
    with pytest.raises(ZeroDivisionError), Workers(threads) as workers:
        workers.map(lambda task: 1 // task, [0])
    assert set(blas_threads()) == {3}


@pytest.mark.usefixtures("several_blas_threads")
def test_overlapping_blocks_share_the_limit():
    # As when two threads of a program denoise at once: the limit is one of the whole process.
    first, second = Workers(2), Workers(2)
    first.__enter__()
    with second:
        first.__exit__(None, None, None)
        assert 1 in blas_threads()
    assert set(blas_threads()) == {3}


def test_threads_default_to_the_cpus_of_the_process():
    cpus = available_cpus()
    assert 1 <= cpus <= (os.cpu_count() or 1)
    assert Workers().threads == cpus


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_cpus_are_those_the_process_may_use():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert available_cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)
