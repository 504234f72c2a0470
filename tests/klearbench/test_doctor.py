"""doctor and suites: every line true on this machine, with a remedy for what is missing."""

from __future__ import annotations

import builtins
import importlib.util
import shutil

import pytest
from tools import ok, write_jsonl

from klearbench import doctor
from klearbench.sandbox import image
from klearbench.sandbox.base import SandboxUnavailable
from klearbench.suites.registry import SUITES


def lines(folder=None) -> dict[str, str]:
    return dict(line.partition(": ")[::2] for line in doctor.doctor_lines(folder) if ": " in line)


def test_suites_lists_each_with_its_count_and_whether_its_data_is_here(tmp_path):
    write_jsonl(tmp_path / "aime24.jsonl", [])
    listed = {line.split()[0]: line for line in doctor.suite_lines(tmp_path)}
    assert list(listed) == list(SUITES)
    for name, info in SUITES.items():
        assert (
            f" {info.count} problems" in listed[name] and info.licence in listed[name] and info.source in listed[name]
        )
    assert "embedded" in listed["puzzles"]
    assert "present" in listed["aime24"]
    assert f"absent: {tmp_path / 'gsm8k_test.jsonl'}" in listed["gsm8k"]


def test_suites_without_a_folder_say_how_to_name_one(monkeypatch):
    monkeypatch.delenv("KLEARBENCH_DATA", raising=False)
    listed = {line.split()[0]: line for line in doctor.suite_lines(None)}
    assert "absent: aime24.jsonl in KLEARBENCH_DATA" in listed["aime24"]


def test_a_missing_package_comes_with_its_remedy(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("torch", "vllm") else real(name))
    found = lines()
    assert found["extra hf"] == "missing torch (remedy: pip install 'klearbench[hf]')"
    assert found["extra vllm"] == "missing vllm (remedy: pip install 'klearbench[vllm]')"
    assert "without torch (remedy: pip install 'klearbench[hf]')" in found["devices"]


@pytest.mark.parametrize(
    ("probed", "wanted"),
    [
        (("namespaces", ""), "ok, local sandbox by namespaces"),
        (
            ("landlock", "namespaces: refused"),
            "local sandbox by landlock only (namespaces: refused; remedy: user names",
        ),
        (("", "landlock: too old"), "no local sandbox (landlock: too old; remedy: user namespaces, as sysctl"),
    ],
)
def test_the_local_sandboxs_tier_comes_with_its_reason_and_a_better_ones_remedy(monkeypatch, probed, wanted):
    monkeypatch.setattr("klearbench.sandbox.local.probe", lambda: probed)
    assert lines()["code judge"].startswith(wanted)


def test_the_packages_of_submissions_are_named_or_come_with_their_remedy(monkeypatch, tmp_path):
    monkeypatch.delenv("KLEARBENCH_SOLUTIONS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert lines()["packages of submissions"].endswith("(remedy: klearbench doctor --fix)")
    monkeypatch.setenv("KLEARBENCH_SOLUTIONS", str(tmp_path))
    assert lines()["packages of submissions"] == f"ok ({tmp_path})"
    monkeypatch.setenv("KLEARBENCH_SOLUTIONS", str(tmp_path / "absent"))
    assert "no such folder (remedy: " in lines()["packages of submissions"]


def test_an_engine_that_does_not_answer_comes_with_its_remedy(monkeypatch, tmp_path):
    pytest.importorskip("docker")
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/docker")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    assert lines()["docker"].startswith(f"no Docker engine answers at unix://{tmp_path}/none (remedy: ")


def test_fix_makes_the_packages_and_is_content_without_an_engine(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    monkeypatch.setattr("klearbench.sandbox.environment.ensure_environment", lambda say: say("made"))
    said: list[str] = []
    doctor.fix(said.append)
    assert said == ["made"]


@pytest.mark.docker
@pytest.mark.slow
def test_fix_builds_an_image_that_is_absent_or_stale(docker_host, monkeypatch):
    from klearbench.sandbox import image

    assert lines()["docker"].endswith(f"ok (image {image.DEFAULT_IMAGE})")
    built: list[str] = []
    monkeypatch.setattr(image, "build_image", lambda engine: built.append(engine.version()["Version"]))
    said: list[str] = []
    doctor.fix(said.append)
    assert built == [], "the right image is there"
    monkeypatch.setattr(image, "content_hash", lambda: "other")
    assert "was built from other sources (remedy: klearbench doctor --fix)" in lines()["docker"]
    doctor.fix(said.append)
    assert len(built) == 1 and said == [f"building the image {image.DEFAULT_IMAGE}"]


@pytest.mark.train
def test_what_is_here_is_named_with_its_version():
    from importlib import metadata

    found = lines()
    assert f"torch {metadata.version('torch')}" in found["extra hf"]
    assert found["extra train"].startswith("ok (deepspeed ")
    assert f"math-verify {metadata.version('math-verify')}" in found["math judge"]


def test_no_docker_client_comes_with_its_remedy(monkeypatch):
    def absent(timeout_s):
        raise SandboxUnavailable("no Docker engine answers")

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(image, "connect", absent)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    assert lines()["docker"] == "no client (remedy: install Docker or podman)"


def test_an_engine_that_was_named_and_does_not_answer_is_named_again(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert lines()["docker"].startswith("no Docker engine answers at unix:///nowhere/docker.sock (remedy: ")


def test_absent_data_is_named_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.delenv("KLEARBENCH_DATA", raising=False)
    write_jsonl(tmp_path / "aime24.jsonl", [])
    said = lines(tmp_path)["data"]
    assert "absent: aime25, aime26, hmmt25, amc23, math500, gsm8k, olympiad, humaneval, mbpp, mbpp-test, lcb-v5" in said
    assert "(remedy: --data-dir DIR or KLEARBENCH_DATA=DIR; klearbench suites says how to get each)" in said
    assert lines(None)["data"].startswith("no folder; absent: aime24, ")


@pytest.mark.shared
def test_every_suite_of_the_shared_folder_is_present_but_the_one_that_is_not_to_be_had(shared):
    assert "; absent: lcb-v6 (remedy: " in lines(shared / "data")["data"]
    listed = {line.split()[0]: line for line in doctor.suite_lines(shared / "data")}
    assert [name for name, line in listed.items() if " present " not in line and " embedded " not in line] == ["lcb-v6"]


def test_every_suite_of_a_whole_folder_is_present(tmp_path):
    for info in SUITES.values():
        if info.file:
            write_jsonl(tmp_path / info.file, [])
    assert lines(tmp_path)["data"].endswith("every suite present")


def test_an_absent_suite_says_how_to_get_it_from_a_file_or_the_hub(tmp_path):
    for file in ("test.jsonl", *(f"test{n}.jsonl" for n in range(2, 6)), "mbpp.jsonl"):
        write_jsonl(tmp_path / file, [])
    listed = {line.split()[0]: line for line in doctor.suite_lines(tmp_path)}
    assert listed["gsm8k"].endswith(
        "; get gsm8k_test.jsonl (--data-dir), or once from the hub: openai/gsm8k (main, split test)"
    )
    for name, info in SUITES.items():
        assert (" present " in listed[name]) is (name in ("lcb-v5", "mbpp", "mbpp-test"))
        if " absent: " in listed[name]:
            assert f"get {info.file} (--data-dir), or once from the hub: {info.hub}" in listed[name]


def test_the_commands_print_these_lines(tmp_path):
    assert ok("klearbench", "suites", "--data-dir", tmp_path).splitlines() == list(doctor.suite_lines(tmp_path))
    printed = ok("klearbench", "doctor", "--data-dir", tmp_path).splitlines()
    assert printed[0].startswith("klearbench ") and printed[-1].startswith(f"data: {tmp_path}")


def test_doctor_works_where_torch_cannot_be_imported(monkeypatch):
    """A broken torch is a finding, not a crash."""
    real = builtins.__import__

    def broken(name, *arguments, **more):
        if name == "torch":
            raise ImportError("libcudart.so: cannot open shared object file")
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", broken)
    assert "libcudart" in lines()["devices"]
