"""What the commands print, in one form for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nlnet.file_denoising import Findings


def error_line(message: object) -> str:
    """Return an error as one line, whatever names with line breaks it quotes."""
    return "nlnet: error: " + " ".join(str(message).split())


def findings_lines(findings: Findings) -> list[str]:
    """Say what was found in a file and what was converted."""
    return [*_estimate(findings), *findings.notes]


def _estimate(findings: Findings) -> list[str]:
    from nlnet.denoising import NO_NOISE

    if findings.noise:
        return [findings.noise]
    if not findings.estimated:
        return []
    sigmas = findings.sigmas
    low, high = f"{min(sigmas):.2f}", f"{max(sigmas):.2f}"
    found = low if low == high else f"{low} to {high}"
    lines = [f"estimated sigma {found}"]
    clean = sum(sigma < NO_NOISE for sigma in sigmas)
    if clean:
        which = "" if len(sigmas) == 1 else f"{clean} of {len(sigmas)} pages "
        lines.append(
            f"{which}left as it is, with noise below {NO_NOISE:g} (--sigma S removes it anyway)"
        )
    return lines
