"""Published figures that our tables stand beside: mean PSNR on BSD68 in dB."""

from __future__ import annotations

from typing import NamedTuple

SIGMAS = (15, 25, 50)


class Row(NamedTuple):
    """A method, its number of learned values if it has any, and PSNR for each of `SIGMAS`."""

    method: str
    parameters: str
    psnr: tuple[float, float, float]


PAPER: dict[str, tuple[float, float, float]] = {
    "gray-5x5": (31.49, 28.98, 25.99),
    "gray-7x7": (31.52, 29.03, 26.07),
    "color-5x5": (33.69, 30.96, 27.64),
}
"""Tables 1 and 2 of the paper."""

GRAY = (
    Row("BM3D [[2]]", "", (31.08, 28.56, 25.62)),
    Row("DnCNN [[3]]", "556k", (31.73, 29.23, 26.23)),
    Row("FFDNet [[5]]", "485k", (31.63, 29.19, 26.29)),
    Row("GroupSC [[4]]", "68k", (31.70, 29.19, 26.18)),
    Row("NLNet 5x5, the paper [[1]]", "", PAPER["gray-5x5"]),
    Row("NLNet 5x5, the author's weights, our protocol", "", (31.490, 28.982, 25.984)),
    Row("NLNet 7x7, the paper [[1]]", "", PAPER["gray-7x7"]),
    Row("NLNet 7x7, the author's weights, our protocol", "", (31.514, 28.992, 26.042)),
)

COLOR = (
    Row("CBM3D [[2]]", "", (33.50, 30.69, 27.37)),
    Row("CDnCNN [[3]]", "668k", (33.90, 31.24, 27.95)),
    Row("FFDNet [[5]]", "854k", (33.87, 31.21, 27.96)),
    Row("CGroupSC [[4]]", "119k", (34.12, 31.41, 28.08)),
    Row("CNLNet 5x5, the paper [[1]]", "", PAPER["color-5x5"]),
    Row("CNLNet 5x5, the author's weights, our protocol", "", (33.807, 31.080, 27.734)),
)

REFERENCES = {
    "Lefkimmiatis, CVPR 2017": (
        "https://arxiv.org/abs/1611.06757",
        'S. Lefkimmiatis, "Non-local Color Image Denoising with Convolutional Neural Networks", '
        "CVPR 2017. The author later published weights that differ from the paper in some points.",
    ),
    "Dabov et al., IEEE TIP 2007": (
        "https://doi.org/10.1109/TIP.2007.901238",
        'K. Dabov et al., "Image Denoising by Sparse 3-D Transform-Domain Collaborative '
        'Filtering", IEEE TIP 2007, and in color: "Color Image Denoising via Sparse 3D '
        'Collaborative Filtering", ICIP 2007.',
    ),
    "Zhang et al., IEEE TIP 2017": (
        "https://arxiv.org/abs/1608.03981",
        'K. Zhang et al., "Beyond a Gaussian Denoiser: Residual Learning of Deep CNN for Image '
        'Denoising", IEEE TIP 2017.',
    ),
    "Lecouat et al., ECCV 2020": (
        "https://arxiv.org/abs/1912.02456",
        'B. Lecouat et al., "Fully Trainable and Interpretable Non-Local Sparse Models for Image '
        'Restoration", ECCV 2020.',
    ),
    "Zhang et al., IEEE TIP 2018": (
        "https://arxiv.org/abs/1710.04026",
        'K. Zhang et al., "FFDNet: Toward a Fast and Flexible Solution for CNN-Based Image '
        'Denoising", IEEE TIP 2018.',
    ),
}
"""Papers [1] to [5], in this order: short title, address, and the whole reference."""
