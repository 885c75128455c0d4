"""Speed of training: the engine with Appendix A's gradients against plain torch with autograd.

``python -m benchmarks.training``: one batch, the same groups, negative PSNR forward and backward
through the whole five-stage gray 5x5 network, in one run; then the engine's time per pixel for
crops of several sizes, which shows that the cost grows with the pixels and with nothing else.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.machine import describe_run
from benchmarks.report import format_table, write_json
from benchmarks.threads import limit_threads
from nlnet.network.config import NetworkConfig
from nlnet.parallel import available_cpus
from nlnet.torch import NLNet

RESULTS = Path(__file__).resolve().parent / "results" / "training.json"
CROPS = (64, 128, 256, 512)
SIGMA = 25.0


def main() -> None:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.training", description="Measure the speed of training."
    )
    parser.add_argument("--batch", type=int, default=4, help="crops of 128x128 a batch (4)")
    parser.add_argument("--repeats", type=int, default=5, help="the median is reported (5)")
    parser.add_argument("--threads", type=int, default=available_cpus(), help="of both (all CPUs)")
    parser.add_argument("--json", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with limit_threads(arguments.threads):
        steps, difference = compare_paths(arguments.batch, arguments.repeats, arguments.threads)
        growth = growth_with_pixels(arguments.batch, arguments.repeats, arguments.threads)
    ratio = steps["plain"] / steps["engine"]
    print(f"forward and backward, {arguments.batch} crops of 128x128, {arguments.threads} threads")
    rows = [(name, f"{1e3 * seconds:.1f}") for name, seconds in steps.items()]
    print(format_table(["path", "ms"], rows))
    print(f"plain / engine: {ratio:.1f}; gradients differ by {difference:.1e} of the largest\n")
    header = ["crop", "ns/pixel forward+backward", "ns/pixel matching"]
    print(
        format_table(header, [(f"{n}x{n}", f"{s:.0f}", f"{m:.0f}") for n, (s, m) in growth.items()])
    )
    write_json(
        {
            **describe_run(),
            "batch": arguments.batch,
            "threads": arguments.threads,
            "repeats": arguments.repeats,
            "seconds": steps,
            "plain_over_engine": ratio,
            "relative_gradient_difference": difference,
            "ns_per_pixel": {
                str(side): {"forward_backward": step, "matching": matching}
                for side, (step, matching) in growth.items()
            },
        },
        arguments.json,
    )


def compare_paths(batch: int, repeats: int, threads: int) -> tuple[dict[str, float], float]:
    """Return the seconds of a step by path, and the gradients' largest relative difference."""
    clean, noisy = make_batch(batch, 128)
    networks = {
        "engine": NLNet(NetworkConfig(), backend="engine", threads=threads),
        "plain": NLNet(NetworkConfig(), backend="plain"),
    }
    groups = networks["engine"].find_groups(noisy)
    rounds: dict[str, list[float]] = {name: [] for name in networks}
    for network in networks.values():
        step(network, clean, noisy, groups)  # warm
    for _ in range(repeats):
        for name, network in networks.items():
            rounds[name].append(seconds_of(functools.partial(step, network, clean, noisy, groups)))
    gradients = [
        torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
        for network in networks.values()
    ]
    difference = (gradients[0] - gradients[1]).abs().max() / gradients[1].abs().max()
    return {name: statistics.median(times) for name, times in rounds.items()}, float(difference)


def growth_with_pixels(batch: int, repeats: int, threads: int) -> dict[int, tuple[float, float]]:
    """Return ns per pixel of a step through the engine, and of matching, by the crops' side.

    The sizes take turns, so that a slow spell of the machine does not fall on one of them.
    """
    network = NLNet(NetworkConfig(), backend="engine", threads=threads)
    work: dict[int, tuple[Callable[[], object], Callable[[], object]]] = {}
    for side in CROPS:
        clean, noisy = make_batch(batch, side)
        groups = network.find_groups(noisy)
        work[side] = (
            functools.partial(step, network, clean, noisy, groups),
            functools.partial(network.find_groups, noisy),
        )
        work[side][0]()  # warm
    rounds = [
        {side: tuple(map(seconds_of, functions)) for side, functions in work.items()}
        for _ in range(repeats)
    ]
    figures = {}
    for side in CROPS:
        scale = 1e9 / (batch * side**2)
        steps, matchings = zip(*(times[side] for times in rounds), strict=True)
        figures[side] = scale * statistics.median(steps), scale * statistics.median(matchings)
    return figures


def make_batch(count: int, side: int) -> tuple[Tensor, Tensor]:
    """Return smooth (B, 1, side, side) images on the 0-255 scale, clean and noisy."""
    generator = torch.Generator().manual_seed(0)
    coarse = 255 * torch.rand((count, 1, 9, 9), generator=generator)
    clean = torch.nn.functional.interpolate(coarse, (side, side), mode="bilinear")
    return clean, clean + SIGMA * torch.randn(clean.shape, generator=generator)


def step(network: NLNet, clean: Tensor, noisy: Tensor, groups: Tensor) -> None:
    """Compute the loss of a batch and all its gradients."""
    network.zero_grad()
    output = network.run(noisy, noisy, groups)
    loss = 10 * torch.log10((output - clean).square().mean(dim=(1, 2, 3)) / 255**2).mean()
    loss.backward()


def seconds_of(function: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
