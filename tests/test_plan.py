from __future__ import annotations

import os
from pathlib import Path

import pytest
from messages import refused

from nlnet.errors import FileError, InputError
from nlnet.files.plan import Reason, make_plan


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of empty files; nothing of a plan depends on what is in them."""
    names = ("b.png", "a.TIF", "notes.txt", ".hidden.png", "sub/a.TIF", "sub/deep/c.npy")
    for name in (*names, ".cache/d.png"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def planned(*inputs: str, output: str = "out", recursive: bool = False) -> dict[str, str]:
    plan = make_plan(inputs, Path(output), recursive=recursive)
    assert plan.errors == ()
    return {job.source.as_posix(): job.target.as_posix() for job in plan.jobs}


def test_a_folder(tree: Path) -> None:
    assert planned("in") == {"in/a.TIF": "out/a.TIF", "in/b.png": "out/b.png"}


def test_raw_files_become_pictures(tree: Path) -> None:
    for name in ("IMG.CR3", "IMG.jpg", "x.unknown"):
        (tree / "in" / "sub" / name).touch()
    assert planned("in/sub") == {
        "in/sub/IMG.CR3": "out/IMG.tif",
        "in/sub/IMG.jpg": "out/IMG.jpg",
        "in/sub/a.TIF": "out/a.TIF",
    }
    (tree / "in" / "sub" / "a.dng").touch()
    assert planned("in/sub/a.dng") == {"in/sub/a.dng": "out/a.tif"}
    (tree / "in" / "sub" / "IMG.dng").touch()
    with refused(InputError, "both become"):
        planned("in/sub")


def test_the_tree_is_mirrored(tree: Path) -> None:
    assert planned("in", recursive=True) == {
        "in/a.TIF": "out/a.TIF",
        "in/b.png": "out/b.png",
        "in/sub/a.TIF": "out/sub/a.TIF",
        "in/sub/deep/c.npy": "out/sub/deep/c.npy",
    }


def test_files_go_right_into_the_folder(tree: Path) -> None:
    expected = {"in/b.png": "out/b.png", "in/sub/deep/c.npy": "out/c.npy"}
    assert planned("in/b.png", "in/sub/deep/c.npy") == expected
    assert planned("in/b.png", "in/b.png", "in/sub/deep/c.npy") == expected


def test_patterns_keep_what_lies_below_their_fixed_part(tree: Path) -> None:
    assert planned("in/*.png") == {"in/b.png": "out/b.png"}
    assert planned("in/*/*.TIF") == {"in/sub/a.TIF": "out/sub/a.TIF"}
    everything = planned(str(tree / "in" / "**" / "*"), recursive=True)
    assert sorted(everything.values()) == [
        "out/a.TIF",
        "out/b.png",
        "out/sub/a.TIF",
        "out/sub/deep/c.npy",
    ]


def test_a_name_with_brackets_is_a_name_first(tree: Path) -> None:
    (tree / "in" / "x[1].png").touch()
    assert planned("in/x[1].png") == {"in/x[1].png": "out/x[1].png"}


def test_results_inside_the_input_folder_are_no_inputs(tree: Path) -> None:
    first = planned("in", output="in/out", recursive=True)
    for target in first.values():
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    assert planned("in", output="in/out", recursive=True) == first


def test_two_inputs_never_become_one_output(tree: Path) -> None:
    with refused(InputError, "'in/a.TIF' and 'in/sub/a.TIF' would both become"):
        make_plan(["in/a.TIF", "in/sub/a.TIF"], Path("out"), recursive=False)


@pytest.mark.parametrize("output", ["in", "in/../in", "link"])
def test_results_never_replace_inputs(tree: Path, output: str) -> None:
    (tree / "link").symlink_to(tree / "in")
    with refused(FileError, "is one of the inputs"):
        make_plan(["in"], Path(output), recursive=True)


def test_a_result_is_not_another_input(tree: Path) -> None:
    (tree / "out").mkdir()
    (tree / "out" / "b.png").touch()
    with refused(FileError, "'out/b.png'", "one of the inputs"):
        make_plan(["in/b.png", "out/b.png"], Path("out"), recursive=False)


def test_links_do_no_harm(tree: Path) -> None:
    (tree / "in" / "sub" / "loop").symlink_to(tree / "in")
    (tree / "in" / "self.png").symlink_to(tree / "in" / "self.png")
    (tree / "in" / "gone.png").symlink_to(tree / "nowhere.png")
    jobs = planned("in", recursive=True)
    assert len(jobs) == 6
    assert {"in/self.png", "in/gone.png"} < set(jobs)  # to be reported when they are read


def test_nothing_to_do(tree: Path) -> None:
    (tree / "empty").mkdir()
    for inputs in (["empty"], ["in", "in/*.jpg"]):
        with refused(InputError, "no images in"):
            make_plan(inputs, Path("out"), recursive=False)
    with refused(FileError, "'missing.png': No such file"):
        make_plan(["missing.png"], Path("out"), recursive=False)


def test_a_folder_that_cannot_be_read_is_reported(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scandir = os.scandir

    def locked(path: str) -> object:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", locked)
    plan = make_plan(["in"], Path("out"), recursive=True)
    assert len(plan.jobs) == 3
    assert "Permission denied" in str(plan.errors[0])


def left_out(*inputs: str, recursive: bool) -> dict[str, Reason]:
    plan = make_plan(inputs, Path("in/out"), recursive=recursive)
    return {left.path.as_posix(): left.reason for left in plan.left_out}


def test_what_is_left_out_is_told(tree: Path) -> None:
    for name in ("photo.psd", "sub/icon.ico", "v.zarr/zarr.json", "v.zarr/c.png", "out/old.png"):
        (tree / "in" / name).parent.mkdir(exist_ok=True)
        (tree / "in" / name).touch()
    (tree / "in" / "link").symlink_to(tree / "in" / "sub")
    files = {"in/notes.txt": Reason.NO_IMAGE, "in/photo.psd": Reason.OTHER_FORMAT}
    others = {"in/v.zarr": Reason.ZARR, "in/link": Reason.LINK}
    assert left_out("in", recursive=False) == files | others | {"in/sub": Reason.FOLDER}
    assert left_out("in", recursive=True) == files | others | {"in/sub/icon.ico": Reason.NO_IMAGE}
    assert left_out("in/*", recursive=False) == files | {"in/v.zarr": Reason.ZARR}
    assert "in/v.zarr/c.png" not in planned("in", recursive=True)
