"""The paper, slowly: every operator as loops or as the matrix the paper writes, in float64.

This is the text the engine is checked against, so it is written from the paper alone and
shares no code with them. Images are (C, H, W) arrays on the 0-255 scale, in RGB if C is 3; a
"plane" is one (H, W) channel, and vec(plane) its pixels in row-major order. Everything is meant
for images of 8 to 16 pixels a side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters

Float64 = npt.NDArray[np.float64]
Offsets = npt.NDArray[np.int64]

# Luminance and two chrominances from RGB (section 3.3; the transform is CBM3D's).
OPPONENT: Float64 = np.array([[1 / 3, 1 / 3, 1 / 3], [1 / 2, 0, -1 / 2], [1 / 4, -1 / 2, 1 / 4]])


# --- Patches ---------------------------------------------------------------------------------


def reflect(index: int, length: int) -> int:
    """Return the pixel that symmetric padding shows at `index`: ... 1 0 | 0 1 2 | 2 1 ..."""
    index %= 2 * length
    return index if index < length else 2 * length - 1 - index


def patch_matrix(shape: tuple[int, int], patch_size: int, row: int, column: int) -> Float64:
    """P_r: the (P, N) binary matrix that picks the patch centred on pixel r = (row, column)."""
    height, width = shape
    radius = patch_size // 2
    matrix = np.zeros((patch_size**2, height * width))
    for i in range(patch_size):
        for j in range(patch_size):
            y = reflect(row + i - radius, height)
            x = reflect(column + j - radius, width)
            matrix[i * patch_size + j, y * width + x] = 1.0
    return matrix


def patch(plane: Float64, patch_size: int, row: int, column: int) -> Float64:
    """x_r = P_r x."""
    height, width = plane.shape
    return patch_matrix((height, width), patch_size, row, column) @ plane.ravel()


# --- Groups ----------------------------------------------------------------------------------


def match(plane: Float64, config: NetworkConfig) -> Offsets:
    """i_r for every pixel r: (H, W, K, 2) offsets (dy, dx) of the K nearest patches in the window.

    Nearest in squared Euclidean distance; of equally distant patches the one at the nearer offset,
    and of equally near offsets the first in row-major order. The patch itself, at distance and
    offset zero, therefore comes first.
    """
    height, width = plane.shape
    radius = config.window // 2
    patches = [[patch(plane, config.patch_size, y, x) for x in range(width)] for y in range(height)]
    groups = np.zeros((height, width, config.group_size, 2), np.int64)
    for y in range(height):
        for x in range(width):
            candidates = []
            for dy in range(-radius, radius + 1):
                for dx in range(-radius, radius + 1):
                    if 0 <= y + dy < height and 0 <= x + dx < width:
                        difference = patches[y][x] - patches[y + dy][x + dx]
                        distance = float(np.sum(difference**2))
                        candidates.append((distance, dy**2 + dx**2, dy, dx))
            candidates.sort()
            groups[y, x] = [(dy, dx) for *_, dy, dx in candidates[: config.group_size]]
    return groups


# --- The non-local operator ------------------------------------------------------------------


def operator(filters: Float64, group_weights: Float64, groups: Offsets) -> Float64:
    """L: the (R, F, N) stack of L_r = W F~ P_(i_r), the sum over k of w_k F P_(i_(r,k)).

    Eq. (NLSum) and (NLOperator). ``L[r]`` is L_r, and ``L[r].T`` its adjoint.
    """
    height, width, members, _ = groups.shape
    filter_count, patch_pixels = filters.shape
    patch_size = round(patch_pixels**0.5)
    result = np.zeros((height * width, filter_count, height * width))
    for y in range(height):
        for x in range(width):
            for k in range(members):
                dy, dx = groups[y, x, k]
                picked = patch_matrix((height, width), patch_size, y + dy, x + dx)
                result[y * width + x] += group_weights[k] * (filters @ picked)
    return result


def analysis(L: Float64, plane: Float64) -> Float64:
    """L x, as an (R, F) array whose row r is L_r x."""
    return np.array([L_r @ plane.ravel() for L_r in L])


def synthesis(L: Float64, responses: Float64, shape: tuple[int, int]) -> Float64:
    """L^T z, the sum over r of L_r^T z_r, as an (H, W) plane: Eq. (AdjointNLOperator)."""
    total = np.zeros(shape[0] * shape[1])
    for L_r, z_r in zip(L, responses, strict=True):
        total += L_r.T @ z_r
    return total.reshape(shape)


# --- The potential's derivative --------------------------------------------------------------


def psi(x: float, coefficients: Float64, config: NetworkConfig) -> float:
    """psi_i(x), the sum over j of pi_ij exp(-epsilon (x - mu_j)^2), at x clipped to the grid."""
    x = min(max(x, -config.rbf_range), config.rbf_range)
    epsilon = 1 / (2 * config.gaussian_std**2)
    mu = centres(config)
    return float(np.sum(coefficients * np.exp(-epsilon * (x - mu) ** 2)))


def psi_derivative(x: float, coefficients: Float64, config: NetworkConfig) -> float:
    """psi_i'(x) of appendix A; zero where the clip holds psi constant."""
    if abs(x) > config.rbf_range:
        return 0.0
    epsilon = 1 / (2 * config.gaussian_std**2)
    mu = centres(config)
    return float(-2 * epsilon * np.sum(coefficients * (x - mu) * np.exp(-epsilon * (x - mu) ** 2)))


def centres(config: NetworkConfig) -> Float64:
    """mu_j: M points, equidistant over the range."""
    return np.linspace(-config.rbf_range, config.rbf_range, config.rbf_count)


# --- Stage and network -----------------------------------------------------------------------


def to_opponent(image: Float64) -> Float64:
    """Channels the stages work on: gray as it is, RGB as luminance and chrominances."""
    return image if len(image) == 1 else np.einsum("ij,jhw->ihw", OPPONENT, image)


def from_opponent(planes: Float64) -> Float64:
    """The inverse of `to_opponent`."""
    return planes if len(planes) == 1 else np.einsum("ij,jhw->ihw", np.linalg.inv(OPPONENT), planes)


def project(planes: Float64) -> Float64:
    """P_C of opponent planes; the box is a box in RGB."""
    return to_opponent(np.clip(from_opponent(planes), 0.0, 255.0))


def stage(
    estimate: Float64,
    noisy: Float64,
    parameters: StageParameters,
    groups: Offsets,
    config: NetworkConfig,
    *,
    projected: bool,
) -> Float64:
    """P_C(x (1 - gamma) + gamma y - sum_r L_r^T psi(L_r x)), Eq. (stageMapMod).

    `estimate` (x) and `noisy` (y) are opponent planes, and so is the result; without `projected`
    it is the argument of P_C.
    """
    filters = parameters.filters.astype(np.float64)
    L = operator(filters, parameters.group_weights.astype(np.float64), groups)
    gamma = parameters.step_size
    planes = []
    for x, y, mixtures in zip(estimate, noisy, parameters.coefficients, strict=True):
        responses = analysis(L, x)
        for r in range(responses.shape[0]):
            for i in range(responses.shape[1]):
                responses[r, i] = psi(responses[r, i], mixtures[i].astype(np.float64), config)
        planes.append(x * (1 - gamma) + gamma * y - synthesis(L, responses, x.shape))
    result = np.array(planes)
    return project(result) if projected else result


def network(
    image: Float64,
    stages: Sequence[StageParameters],
    config: NetworkConfig,
    *,
    clip: bool = True,
    groups: Offsets | None = None,
) -> Float64:
    """All stages on one (C, H, W) image; the groups come from its first plane unless given.

    Without `clip` there is no box at all.
    """
    noisy = to_opponent(image.astype(np.float64))
    if groups is None:
        groups = match(noisy[0], config)
    estimate = noisy
    for number, parameters in enumerate(stages, start=1):
        last = number == len(stages)
        projected = clip and (config.project_every_stage or last)
        estimate = stage(estimate, noisy, parameters, groups, config, projected=projected)
    return from_opponent(estimate)
