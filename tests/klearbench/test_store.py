"""Files that survive: kills in mid-line, full disks, corrupt lines, odd characters."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from klearbench import store
from klearbench.errors import DataError, DiskFull
from klearbench.store import JsonlWriter, content_hash, read_records, read_rows, text_hash, write_atomic
from klearbench.types import Answer

WRITE_30 = """
import sys
from pathlib import Path
from klearbench.store import JsonlWriter
path = Path(sys.argv[1])
with JsonlWriter(path) as writer:
    done = sum(1 for _ in path.open())
    for i in range(done, 30):
        writer.append({"i": i, "text": "x" * 50})
print(30 - done)
"""


def write_30(path: Path, fault: str = "") -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "KLEAR_FAULT"} | ({"KLEAR_FAULT": fault} if fault else {})
    return subprocess.run([sys.executable, "-c", WRITE_30, str(path)], env=env, capture_output=True, text=True)


def rows(path: Path) -> list[int]:
    return [row["i"] for _, row in read_rows(path, ours=True)]


@pytest.mark.parametrize(("point", "half"), [("append.log.jsonl", False), ("half.log.jsonl", True)])
def test_kill_9_loses_no_whole_line_and_a_rerun_finishes(tmp_path, point, half):
    path = tmp_path / "log.jsonl"
    killed = write_30(path, f"{point}:17:kill")
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes().endswith(b"\n") is not half
    assert rows(path) == list(range(16))
    again = write_30(path)
    assert again.stdout == "14\n"
    assert [json.loads(line)["i"] for line in path.read_text().splitlines()] == list(range(30))


def test_a_half_written_last_line_is_cut_off_at_the_next_start(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"i":0}\n{"i":1}\n{"i":2')
    assert rows(path) == [0, 1]
    with JsonlWriter(path) as writer:
        writer.append({"i": 3})
    assert path.read_bytes() == b'{"i":0}\n{"i":1}\n{"i":3}\n'


@pytest.mark.parametrize("tail", [b'{"i":9}', b"x" * 200_000])
def test_a_last_line_without_newline_is_dropped_even_if_it_is_long_or_valid(tmp_path, tail):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"i":0}\n' + tail)
    assert rows(path) == [0]
    JsonlWriter(path).close()
    assert path.read_bytes() == b'{"i":0}\n'


def test_a_file_of_nothing_but_half_a_line_becomes_empty(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"i"')
    JsonlWriter(path).close()
    assert path.read_bytes() == b""


def test_another_persons_file_may_end_without_a_newline(tmp_path):
    path = tmp_path / "theirs.jsonl"
    path.write_bytes(b'{"i":0}\n\n  \n{"i":1}')
    assert list(read_rows(path)) == [(1, {"i": 0}), (4, {"i": 1})]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b'{"i": 16,', "not valid JSON"),
        (b"[1]", "a JSON object was expected, found list"),
        (b'{"t": "\xff"}', "not UTF-8"),
        (b'{"i": NaN}', "NaN is no JSON number; write null"),
        (b'{"i": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"i": ' + b"[" * 100_000, "not valid JSON"),
    ],
)
def test_corrupt_line_17_is_named(tmp_path, bad, message):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(b'{"i":%d}\n' % i for i in range(16)) + bad + b'\n{"i":17}\n')
    with pytest.raises(DataError) as caught:
        list(read_rows(path, ours=True))
    assert str(caught.value).startswith(f"{path}:17: ")
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_record_of_another_shape_is_named_with_its_line(tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"problem_id":"a","answer":"1"}\n{"problem_id":"a","answer":1}\n')
    with pytest.raises(DataError, match=r"answers.jsonl:2: answer is 1 \(int\); str is expected"):
        read_records(path, Answer)
    assert read_records(tmp_path / "absent.jsonl", Answer) == []


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(DataError, match=r"absent.jsonl: no such file"):
        list(read_rows(tmp_path / "absent.jsonl"))
    with pytest.raises(DataError, match="is a folder, a JSONL file was expected"):
        list(read_rows(tmp_path))
    with pytest.raises(DataError, match="no such file or folder"):
        content_hash(tmp_path / "absent")


def test_lone_surrogates_and_nul_survive(tmp_path):
    text = "\ud83d \x00 \udc00\ud800 \u2028"
    with JsonlWriter(tmp_path / "log.jsonl") as writer:
        writer.append({"t": text})
    assert (tmp_path / "log.jsonl").read_bytes().isascii()
    assert [row["t"] for _, row in read_rows(tmp_path / "log.jsonl", ours=True)] == [text]
    assert text_hash(text) != text_hash(text.replace("\ud83d", "?"))


def test_nan_is_never_written(tmp_path):
    with JsonlWriter(tmp_path / "log.jsonl") as writer:
        with pytest.raises(ValueError):
            writer.append({"score": float("nan")})
        writer.append({"score": None})
    assert (tmp_path / "log.jsonl").read_text() == '{"score":null}\n'


def test_half_a_line_that_met_a_full_disk_is_cut_off_at_once(tmp_path):
    path = tmp_path / "log.jsonl"
    failed = write_30(path, "half.log.jsonl:5:enospc")
    assert failed.returncode == 1 and "DiskFull" in failed.stderr
    assert path.read_bytes().count(b"\n") == 4 and path.read_bytes().endswith(b"\n")
    assert write_30(path).stdout == "26\n"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a tmpfs can't be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_keeps_whole_lines_only(small_disk):
    path = small_disk / "log.jsonl"
    writer = JsonlWriter(path)
    written = 0
    with pytest.raises(DiskFull, match=r"log.jsonl: no space left on the disk; .* rerun the same command"):
        for written in range(1000):
            writer.append({"i": written, "text": "x" * 700})
    assert 50 < written < 100
    assert path.read_bytes().endswith(b"\n")
    assert rows(path) == list(range(written))


def test_a_full_disk_leaves_the_old_file(small_disk):
    path = small_disk / "manifest.json"
    write_atomic(path, "old")
    with pytest.raises(DiskFull, match=r"manifest.json: no space left"):
        write_atomic(path, b"x" * 100_000)
    assert path.read_text() == "old"
    assert [p.name for p in small_disk.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_full_only_at_fsync_is_named(tmp_path, monkeypatch, code):
    def fsync(fd: int) -> None:
        raise OSError(code, os.strerror(code))

    writer = JsonlWriter(tmp_path / "log.jsonl")
    writer.append({"i": 0})
    monkeypatch.setattr(store.os, "fsync", fsync)
    with pytest.raises(DiskFull):
        writer.close()
    with pytest.raises(DiskFull):
        write_atomic(tmp_path / "whole", "new")
    assert rows(tmp_path / "log.jsonl") == [0]


def test_other_errors_of_the_system_pass_as_they_are(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        write_atomic(tmp_path / "file" / "below", "x")


def test_write_atomic_replaces_the_whole_file(tmp_path):
    path = tmp_path / "new" / "file"
    write_atomic(path, "a" * 1000)
    write_atomic(path, "b")
    assert path.read_text() == "b"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


def test_a_kill_during_write_atomic_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    code = (
        f"from pathlib import Path; from klearbench.store import write_atomic; write_atomic(Path({str(path)!r}), 'n')"
    )
    env = os.environ | {"KLEAR_FAULT": "write_atomic:1:kill"}
    assert subprocess.run([sys.executable, "-c", code], env=env).returncode == -signal.SIGKILL
    assert path.read_text() == "old"
    write_atomic(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_content_hash_sees_names_and_bytes_and_no_hidden_files(tmp_path):
    (tmp_path / "sub" / ".cache").mkdir(parents=True)
    (tmp_path / "sub" / "a").write_text("1")
    before = content_hash(tmp_path)
    (tmp_path / "sub" / ".cache" / "x").write_text("x")
    (tmp_path / ".hidden").write_text("x")
    assert content_hash(tmp_path) == before
    (tmp_path / "sub" / "a").write_text("2")
    changed = content_hash(tmp_path)
    (tmp_path / "sub" / "a").rename(tmp_path / "sub" / "b")
    assert len({before, changed, content_hash(tmp_path)}) == 3


def test_content_hash_of_a_hidden_file_that_is_asked_for(tmp_path):
    path = tmp_path / ".data.jsonl"
    path.write_text("1")
    one = content_hash(path)
    path.write_text("2")
    assert content_hash(path) != one
