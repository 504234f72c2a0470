"""The vLLM engine against the transformers engine, and what becomes of requests when processes die.

What is promised of samples: each has a random stream of its own seed, so batches, replicas and resumes change nothing
but the last bits of the logits. On a CPU in float32 these are some 1e-6; a token can change only where two tokens are
as near to each other as that.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("vllm")
torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tools import jsonl, run  # noqa: E402
from vllmtools import by_transformers, long_requests, vllm_engine, vllm_model  # noqa: E402, F401

from klearbench.engines import hf, vllm  # noqa: E402
from klearbench.engines.base import Generation, Request, Sampling, StreamingEngine  # noqa: E402
from klearbench.errors import ConfigError, EngineDown, UsageError  # noqa: E402
from klearbench.evaluate import EvalOptions, evaluate  # noqa: E402
from klearbench.suites.registry import load_suite  # noqa: E402
from klearbench.types import FinishReason  # noqa: E402

pytestmark = [pytest.mark.vllm, pytest.mark.train, pytest.mark.slow]

FREE = Sampling(1.0, 1.0, 0, 48)
ALL = Sampling(0.7, 0.9, 20, 64, min_p=0.05, repetition_penalty=1.1)
TIE = 1e-4


@pytest.fixture(scope="module")
def hf_engine(vllm_model):  # noqa: F811
    return hf.load_engine(str(vllm_model), batch_size=64, dtype="float32")


def batched(engine, requests, sampling) -> list[Generation]:
    return [g for i in range(0, len(requests), 64) for g in engine.generate(requests[i : i + 64], sampling)]


def logits_of(engine, made: Generation):
    """[T, V]: what the transformers model thinks before each token of a completion, read at once."""
    ids = [*made.prompt_ids, *made.token_ids]
    with torch.no_grad():
        return engine.model(torch.tensor([ids])).logits[0, len(made.prompt_ids) - 1 : -1].float()


def parting(one: Generation, other: Generation) -> int | None:
    """The first place at which two completions differ."""
    pairs = zip(one.token_ids, other.token_ids, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), None)


def ties(engine, ours: list[Generation], theirs: list[Generation]) -> list[tuple[int, int, float]]:
    """(sample, place, distance in log-probability) of each parting of greedy completions."""
    found = []
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        at = parting(one, other)
        if at is not None:
            logp = torch.log_softmax(logits_of(engine, one)[at], -1)
            found.append((number, at, abs(float(logp[one.token_ids[at]] - logp[other.token_ids[at]]))))
    return found


def processes(where: Callable[[Path], bool]) -> dict[int, str]:
    """pid -> title of the live processes for whose folder in /proc `where` is true."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if stat(entry)[0] != "Z" and where(entry):
                found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
    return found


def stat(entry: Path) -> list[str]:
    """State, parent, group, ... of a process."""
    return (entry / "stat").read_text().rpartition(")")[2].split()


def group(leader: int) -> dict[int, str]:
    return processes(lambda entry: int(stat(entry)[2]) == leader)


def gone(alive: Callable[[], dict[int, str]], within_s: float = 60.0) -> bool:
    """Whether such processes end in time."""
    end = time.monotonic() + within_s
    while left := alive():
        assert time.monotonic() < end, f"still there: {left}"
        time.sleep(0.1)
    return True


def test_greedy_completions_are_those_of_transformers_but_for_ties(vllm_engine, hf_engine, capsys):  # noqa: F811
    requests, greedy = long_requests(120), Sampling(0.0, 1.0, 0, 96)
    theirs, ours = vllm_engine.generate(requests, greedy), batched(hf_engine, requests, greedy)
    assert sum(g.completion_tokens >= 64 for g in theirs) >= 100
    assert len({g.token_ids for g in theirs}) > 100
    found = ties(hf_engine, ours, theirs)
    print("ties:", found)
    assert all(distance <= TIE for _, _, distance in found), found
    tied = {number for number, _, _ in found}
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert one.prompt_ids == other.prompt_ids
        if number not in tied:
            assert replace(one, logprobs=None) == replace(other, logprobs=None)
            assert one.logprobs == pytest.approx(other.logprobs, abs=TIE)


def reference(engine, made: Generation, top_p: float) -> list[float]:
    """The log-probabilities of a completion's tokens by transformers' processors."""
    sampling, logits = replace(ALL, top_p=top_p), logits_of(engine, made)
    ids, start = [*made.prompt_ids, *made.token_ids], len(made.prompt_ids)
    return [
        float(by_transformers(sampling, torch.tensor([ids[: start + at]]), logits[at : at + 1])[token])
        for at, token in enumerate(made.token_ids)
    ]


@pytest.mark.parametrize("name", ["vllm", "hf"])
def test_both_engines_give_the_log_probabilities_of_what_they_drew(vllm_engine, hf_engine, name):  # noqa: F811
    engine = {"vllm": vllm_engine, "hf": hf_engine}[name]
    checked = edges = 0
    for made in batched(engine, long_requests(24), ALL):
        low, middle, high = (reference(hf_engine, made, ALL.top_p + d) for d in (-1e-5, 0.0, 1e-5))
        for ours, a, b, c in zip(made.logprobs, low, middle, high, strict=True):
            if a == b == c:  # else the last token of the nucleus hangs on the last bits of a sum
                assert ours == pytest.approx(b, abs=TIE)
                checked += 1
            else:
                edges += 1
    assert checked > 1000 and edges < checked / 100


def test_stop_texts_end_a_completion_alike_in_both_engines(vllm_engine, hf_engine):  # noqa: F811
    """`= 3 ;` spans three tokens, `ax 6 =` a part of one and two more."""
    requests, greedy = long_requests(60, seed=11), Sampling(0.0, 1.0, 0, 96)
    stopping = replace(greedy, stop=("= 3 ;", "ax 6 =", "= 5 ;"))
    theirs, ours = vllm_engine.generate(requests, stopping), batched(hf_engine, requests, stopping)
    whole = batched(hf_engine, requests, greedy)
    tied = {number for number, _, _ in ties(hf_engine, ours, theirs)}
    stopped = 0
    for number, (one, other, free) in enumerate(zip(ours, theirs, whole, strict=True)):
        if number not in tied:
            assert replace(one, logprobs=None) == replace(other, logprobs=None)
        cut = min((at for text in stopping.stop if (at := free.completion.find(text)) >= 0), default=None)
        assert one.completion == free.completion[:cut]
        assert one.token_ids == free.token_ids[: one.completion_tokens]
        if cut is not None:
            stopped += 1
            assert one.finish_reason is FinishReason.stop and one.completion_tokens == len(one.logprobs)
            without_last = hf_engine.tokenizer.decode(one.token_ids[:-1])
            assert not any(text in without_last for text in stopping.stop)
    assert stopped > 15


def test_the_promised_form_of_an_engine(vllm_engine, vllm_model):  # noqa: F811
    assert isinstance(vllm_engine, StreamingEngine)
    identity = dict(vllm_engine.identity())
    other = vllm.load_engine(str(vllm_model), data_parallel=2, max_num_seqs=3, gpu_memory=0.5, prefix_caching=False)
    assert other.identity() == identity and other.pids() == []
    assert (identity["name"], identity["dtype"], identity["device"]) == ("vllm", "float32", "cpu")
    yarn = vllm.load_engine(str(vllm_model), rope_scaling="yarn:2", thinking=None)
    assert (yarn.identity()["max_model_len"], yarn.identity()["rope_scaling"]) == (512, "yarn:2")
    assert vllm.load_engine(str(vllm_model), dtype="bfloat16").identity()["dtype"] == "bfloat16"


def test_bad_requests_are_one_line_and_leave_the_engine_usable(vllm_engine):  # noqa: F811
    prompt_of = long_requests(3)
    long = Request(({"role": "user", "content": "1 " * 260},), 0)
    with pytest.raises(UsageError, match=r"^a prompt has 26\d tokens, the model's context is 256$"):
        vllm_engine.generate([*prompt_of, long], FREE)
    with pytest.raises(UsageError, match=r"vLLM does not take these sampling parameters: temperature .* got 2.5"):
        vllm_engine.generate(prompt_of, replace(FREE, temperature=2.5))
    with pytest.raises(ConfigError, match=r"temperature is 0.001; vLLM samples at 0 \(greedy\), or from 0.01"):
        vllm_engine.generate(prompt_of, replace(FREE, temperature=0.001))
    stream = vllm_engine.stream(iter(long_requests(60)), FREE)
    first = [next(stream) for _ in range(3)]
    stream.close()
    assert len({id(request) for request, _ in first}) == 3
    assert [g.prompt_ids for g in vllm_engine.generate(prompt_of, FREE)] == [
        tuple(vllm_engine.render(r.prompt)) for r in prompt_of
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_num_seqs": 0}, "max_num_seqs is 0; a whole number from 1"),
        ({"data_parallel": "two"}, "data_parallel is 'two'; a whole number from 1"),
        ({"gpu_memory": 90}, "gpu_memory is 90; a share above 0"),
        ({"max_model_len": 999}, "max_model_len is 999, the model's context is 256"),
        ({"dtype": "int4"}, "dtype is 'int4'"),
        ({"rope_scaling": "yarn"}, "write yarn:FACTOR"),
        ({"thinking": True}, "has no such switch"),
        ({"chat_template": "absent.jinja"}, "absent.jinja: No such file"),
    ],
)
def test_a_bad_option_is_one_line(vllm_model, options, message):  # noqa: F811
    with pytest.raises(ConfigError, match=message) as caught:
        vllm.load_engine(str(vllm_model), **options)
    assert "\n" not in str(caught.value)


def same_but_for_ties(ours: list[Generation], theirs: list[Generation]) -> None:
    """At most one sample in a hundred parts, and until then the log-probabilities agree."""
    apart = 0
    for one, other in zip(ours, theirs, strict=True):
        at = parting(one, other)
        apart += at is not None
        assert one.logprobs[:at] == pytest.approx(other.logprobs[:at], abs=TIE)
        if at is None:
            assert replace(one, logprobs=None) == replace(other, logprobs=None)
    assert apart <= len(ours) / 100


def test_two_replicas_with_few_sequences_make_the_same_samples_though_one_dies(vllm_engine, vllm_model, caplog):  # noqa: F811
    caplog.set_level(logging.INFO, "klearbench.engines")
    requests = long_requests(150)
    wanted = vllm_engine.generate(requests, FREE)
    few = vllm.load_engine(str(vllm_model), data_parallel=2, max_num_seqs=3)
    asked, made = [], {}
    coming = (asked.append(r) or r for r in requests)
    try:
        for count, (request, generation) in enumerate(few.stream(coming, FREE)):
            assert request.place not in made
            made[request.place] = generation
            if count == 0:
                assert len(few.pids()) == 2 and len(asked) <= 4 * 2 * 4, "no more than four windows are read ahead"
            if count == 20:
                first, second = few.pids()
                os.kill(first, signal.SIGKILL)
        same_but_for_ties([made[r.place] for r in requests], wanted)
        assert few.pids() == [second] and gone(lambda: group(first))
        assert "replica 0 of 2 ended (signal 9)" in caplog.text

        stream = few.stream(iter(requests), FREE)
        kept = [next(stream) for _ in range(5)]
        os.kill(second, signal.SIGKILL)
        with pytest.raises(EngineDown, match="all 2 replicas ended, the last by signal 9"):
            kept += list(stream)
        assert 5 <= len(kept) < 150
        with pytest.raises(EngineDown):
            few.generate(requests[:2], FREE)
    finally:
        few.close()
    assert gone(lambda: group(first) | group(second))


def test_positions_are_stretched_as_in_transformers_and_a_killed_core_is_told(vllm_model, tmp_path, monkeypatch):  # noqa: F811
    """With vLLM's processes as on a GPU: the engine core is a child of the replica."""
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "1")
    options = {"rope_scaling": "yarn:2.5", "chat_template": "plain", "dtype": "float32"}
    ours = hf.load_engine(str(vllm_model), batch_size=8, **options)
    engine = vllm.load_engine(str(vllm_model), max_num_seqs=8, **options)
    try:
        far = [replace(r, prompt=({"role": "user", "content": "4 max 3 min " * 110},)) for r in long_requests(4)]
        for made in engine.generate(far, replace(FREE, max_tokens=24)):
            assert made.prompt_tokens > 256
            logp = torch.log_softmax(logits_of(ours, made), -1)
            wanted = logp[range(len(made.token_ids)), list(made.token_ids)]
            assert made.logprobs == pytest.approx(wanted.tolist(), abs=TIE)
        (leader,) = engine.pids()
        (core,) = [pid for pid, title in group(leader).items() if title.startswith("VLLM::EngineCore")]
        stream = engine.stream(iter(long_requests(100)), replace(FREE, max_tokens=200))
        kept = [next(stream) for _ in range(3)]
        os.kill(core, signal.SIGKILL)
        with pytest.raises(EngineDown, match="all 1 replicas ended, the last by EngineDeadError"):
            kept += list(stream)
        assert 3 <= len(kept) < 100 and gone(lambda: group(leader))
    finally:
        engine.close()


def test_a_vllm_that_cannot_start_is_one_line(vllm_model, tmp_path, monkeypatch):  # noqa: F811
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("print('a lot')\nraise RuntimeError('no kernel\\nfor this device')")
    engine = vllm.load_engine(str(vllm_model), data_parallel=2)
    monkeypatch.setattr(engine, "_environments", [e | {"PYTHONPATH": str(tmp_path)} for e in engine._environments])
    with pytest.raises(UsageError, match=r"the vLLM engine can't start: RuntimeError: no kernel") as caught:
        engine.generate(long_requests(1), FREE)
    assert "\n" not in str(caught.value) and engine.pids() == []


def samples(folder: Path) -> dict[tuple[str, int], dict]:
    rows = jsonl(folder / "samples.jsonl")
    found = {(row["problem_id"], row["sample_index"]): row for row in rows}
    assert len(found) == len(rows), "no sample twice"
    return found


def test_a_suite_killed_and_interrupted_on_the_command_line_has_the_samples_of_an_undisturbed_run(
    vllm_engine,  # noqa: F811
    vllm_model,  # noqa: F811
    tmp_path,
):
    """With another number of sequences at a time, too. SIGKILL, then Ctrl-C, each after 20 more samples."""
    options = EvalOptions(samples=2, limit=30, sampling=Sampling(1.0, 1.0, 0, 40))
    evaluate(tmp_path / "whole", [load_suite("puzzles", None)], vllm_engine, options)
    out = tmp_path / "run"
    words = ["eval", "--suite", "puzzles", "--engine", "vllm", "--model", vllm_model, "--dtype", "float32"]
    words += ["--engine-arg", "max_num_seqs=4", "--limit", 30, "--samples", 2, "--temperature", 1, "--top-p", 1]
    words += ["--top-k", 0, "--max-tokens", 40, "-o", out]
    for fault, code, least in (("kill", -signal.SIGKILL, 18), ("int", 130, 38), ("", 0, 60)):
        done = run("klearbench", *words, fault=f"engine.call:20:{fault}" if fault else "", cwd=tmp_path)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr and "WARNING" not in done.stderr
        assert least <= len(jsonl(out / "samples.jsonl")) <= least + 3
        assert gone(lambda: processes(lambda entry: os.readlink(entry / "cwd") == str(tmp_path)))
    whole, again = (json.loads((tmp_path / n / "manifest.json").read_text())["config"] for n in ("whole", "run"))
    assert whole == again
    one, other = (samples(tmp_path / name) for name in ("whole", "run"))
    assert len(one) == len(other) == 60
    assert {key: row["seed"] for key, row in one.items()} == {key: row["seed"] for key, row in other.items()}
    assert sum(one[key] != other[key] for key in one) <= 1
    (score,) = json.loads((out / "scores.json").read_text()).values()
    assert score["complete"] and 0 < score["avg"] < 100, "the model says sensible things, right ones and wrong ones"
