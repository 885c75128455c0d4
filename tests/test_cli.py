from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pictures import random_image
from test_family import make_family

import nlnet
from nlnet.cli import main
from nlnet.engine import describe_engine
from nlnet.images import ImageFile, write_image
from nlnet.model.model import Model


def run_nlnet(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nlnet", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# evaluate


def test_evaluate_prints_a_table_and_writes_json(
    noisy_file: Path, gray_model_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_image(tmp_path / "second.png", ImageFile(random_image()))
    (tmp_path / "ids.txt").write_text("noisy\n")
    out = tmp_path / "result.json"
    arguments = ["evaluate", tmp_path, "--sigma", 25, "--model", gray_model_file, "--json", out]
    assert main([*map(str, arguments), "--ids", str(tmp_path / "ids.txt")]) == 0
    table = capsys.readouterr().out.splitlines()
    result = json.loads(out.read_text())
    assert table[1].split() == ["image", "PSNR", "SSIM", "seconds"]
    assert [line.split()[0] for line in table[2:]] == ["noisy.png", "-" * len(table[1]), "mean"]
    assert table[-1].split()[1] == f"{result['mean']['psnr']:.3f}"
    assert set(result) == {"mean", "images", "model", "sigma", "seed", "commit"}
    assert result["images"][0]["name"] == "noisy.png"
    assert result["model"] == "small-1"
    assert main([*map(str, arguments), "--seed", "5"]) == 0  # an older result is replaced
    assert len(json.loads(out.read_text())["images"]) == 2
    assert json.loads(out.read_text())["seed"] == 5


def test_evaluate_never_writes_over_an_image(
    noisy_file: Path, gray_model_file: Path, fails: Callable[..., str]
) -> None:
    before = noisy_file.read_bytes()
    options = ["--sigma", 25, "--model", gray_model_file, "--json", noisy_file]
    assert "'.json'" in fails("evaluate", noisy_file.parent, *options)
    assert noisy_file.read_bytes() == before


@pytest.mark.parametrize("option", ["--seed=-1", "--seed=x", "--ids=missing.txt"])
def test_bad_options_of_evaluate(noisy_file: Path, fails: Callable[..., str], option: str) -> None:
    fails("evaluate", noisy_file.parent, "--sigma", 25, "--model", "gray-5x5", option)


# models and import


def test_models_lists_what_is_shipped(
    gray_model: Model, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Model(
        gray_model.config,
        gray_model.stages,
        sigma=15,
        name="gray-5x5-s15",
        provenance={"recipe": "a short run"},
        figures={"bsd68_psnr": 31.4},
    )
    shipped = {"gray-5x5-s15": told, "untold": gray_model}
    monkeypatch.setattr("nlnet.model.loading.shipped_models", lambda: tuple(shipped))
    monkeypatch.setattr("nlnet.model.loading.load_model", shipped.__getitem__)
    every = make_family(gray_model.config, name="gray-7x7")
    measured = {"bsd68_psnr": {"10": 33.0, "15": 31.5, "50": 26.0}}
    shipped["gray-7x7"] = dataclasses.replace(every, figures=measured)
    assert main(["models"]) == 0
    header, first, second, third, fast, best = capsys.readouterr().out.splitlines()
    psnrs = ["PSNR", "15", "PSNR", "25", "PSNR", "50"]
    assert header.split() == ["name", "sigma", "parameters", *psnrs, "time", "trained"]
    size = f"{gray_model.parameter_count:,}"
    told = ["gray-5x5-s15", "15", size, "31.40", "-", "-", "1.0x", "a short run"]
    assert first.split(maxsplit=7) == told
    assert second.split() == ["untold", "25", size, "-", "-", "-", "-", "-"]
    assert third.split()[3:6] == ["31.50", "-", "26.00"]
    assert float(third.split()[6].removesuffix("x")) > 1
    assert fast == "--quality fast: gray for gray images, color for color"
    assert best.startswith("--quality best: ")


def test_import_checks_its_output_first(tmp_path: Path, fails: Callable[..., str]) -> None:
    source = tmp_path / "author.mat"
    source.write_bytes(b"no MATLAB file")
    kept = tmp_path / "kept.safetensors"
    kept.write_bytes(b"precious")
    assert "--overwrite" in fails("import", source, "-o", kept)
    assert "-o" in fails("import", source)
    assert ".safetensors" in fails("import", source, "-o", tmp_path / "model.mat")
    assert "author.mat" in fails("import", source, "-o", kept, "--overwrite")
    assert kept.read_bytes() == b"precious"
    assert set(tmp_path.iterdir()) == {source, kept}


def test_import_of_a_published_model(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "author.safetensors"
    source = shared / "reference" / "nlnet_5x5_std25_joint.mat"
    assert main(["import", str(source), "-o", str(out)]) == 0
    assert main(["import", str(source), "-o", str(out), "--overwrite"]) == 0
    assert "sigma 25" in capsys.readouterr().out
    assert nlnet.load_model(out).config.rbf_count == 51


# The program as a whole


@pytest.mark.parametrize(
    "command",
    [
        "",
        "denoise",
        "compare",
        "add-noise",
        "serve",
        "evaluate",
        "models",
        "import",
        "export",
        "train",
        "curves",
        "inspect",
        "completion",
    ],
)
def test_help_teaches_by_example(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), "--help"])
    assert stop.value.code == 0
    assert f"examples:\n  nlnet {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["polish"], ["denoise"], ["denoise", "a.png", "--sig"]])
def test_usage_errors_are_one_sentence(fails: Callable[..., str], arguments: list[str]) -> None:
    assert "--help" in fails(*arguments)


def test_version() -> None:
    told = run_nlnet("--version").stdout
    assert told == f"nlnet {nlnet.__version__} ({describe_engine()})\n"


def test_the_module_is_the_command() -> None:
    """``python -m nlnet`` calls itself nlnet, and does what nlnet does."""
    assert run_nlnet("--help").stdout.startswith("usage: nlnet [-h]")
    assert "gray-5x5-s25" in run_nlnet("models").stdout


def test_help_answers_in_a_blink() -> None:
    def seconds() -> float:
        # Of the process's own work: on a busy machine it may wait for long.
        before = os.times()
        assert run_nlnet("--help").returncode == 0
        after = os.times()
        work = after.children_user - before.children_user
        return work + after.children_system - before.children_system

    assert min(seconds() for _ in range(3)) < 0.5


def modules_after(*arguments: object) -> set[str]:
    """The modules a process has loaded once the command is done."""
    code = (
        "import sys; from nlnet.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('\\n' + ' '.join(sys.modules))"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_help_imports_nothing_heavy() -> None:
    loaded = modules_after("--help")
    assert "nlnet.cli.denoise" in loaded
    assert not loaded & {"numpy", "torch", "scipy", "pyvips", "tqdm", "safetensors"}


def test_denoise_does_not_import_torch(
    noisy_file: Path, gray_model_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.png"
    options = ["-o", out, "--sigma", 25, "--model", gray_model_file]
    loaded = modules_after("denoise", noisy_file, *options)
    assert out.exists()
    assert "torch" not in loaded


def test_errors_of_the_process_have_no_traceback(tmp_path: Path) -> None:
    done = run_nlnet("denoise", tmp_path / "missing.png", "-o", tmp_path / "o.png", "--sigma", 25)
    assert done.returncode == 2
    assert done.stderr.startswith("nlnet: error: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX pipe")
def test_a_closed_pipe_is_quiet() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "nlnet", "models"]
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b""
    assert done.returncode == 1


needs_devices = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


def in_a_shell(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in which nlnet is this nlnet."""
    return subprocess.run(
        ["sh", "-c", command.replace("nlnet", f"'{sys.executable}' -m nlnet")],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@needs_devices
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_standard_output_that_takes_nothing(unbuffered: str) -> None:
    done = in_a_shell("nlnet models >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    assert done.stderr == (
        "nlnet: error: Cannot write to the standard output: No space left on device.\n"
    )
    assert in_a_shell("nlnet denoise no.png -o o.png 2>/dev/full").returncode == 2


@needs_devices
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_that_are_closed(noisy_file: Path, gray_model_file: Path, closed: str) -> None:
    out = noisy_file.with_name("folder")
    options = f"--sigma 25 --model '{gray_model_file}'"
    for command in (f"'{noisy_file}' -o '{out}.png'", f"'{noisy_file}' -o '{out}/'"):
        done = in_a_shell(f"nlnet denoise {command} {options} {closed}")
        assert (done.returncode, done.stderr) == (0, "")
    assert out.with_suffix(".png").is_file()
    assert (out / noisy_file.name).is_file()
    failed = in_a_shell(f"nlnet denoise missing.png -o '{out}2.png' {closed}")
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert failed.stderr.count("\n") == (closed == ">&-")


@needs_devices
@pytest.mark.parametrize("closed", [">&-", ">/dev/full"])
def test_an_image_for_an_output_that_takes_nothing_is_an_error(
    noisy_file: Path, closed: str
) -> None:
    done = in_a_shell(f"nlnet denoise '{noisy_file}' -o - --sigma 25 {closed}")
    assert done.returncode == 2
    assert "tandard output" in done.stderr
    assert done.stderr.count("\n") == 1


def test_any_other_error_of_the_system_is_a_bug_and_looks_like_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(arguments: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("nlnet.cli.models.run", fail)
    with pytest.raises(OSError, match="Input/output error"):
        main(["models"])
