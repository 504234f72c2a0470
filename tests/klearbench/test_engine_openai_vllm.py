"""The OpenAI engine against a real vLLM server, started once: seeds, streams, counts, refusals, a run, its death.

The server is the plain one, without a reasoning parser: vLLM's parsers drop a space or a second tag when they stream.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("vllm")
pytest.importorskip("torch")
httpx = pytest.importorskip("httpx")

from tools import environment, jsonl, run  # noqa: E402
from vllmtools import long_requests  # noqa: E402

from klearbench.engines.base import Request, Sampling  # noqa: E402
from klearbench.engines.openai import OpenAIEngine, load_engine  # noqa: E402
from klearbench.errors import EngineDown, UsageError  # noqa: E402
from klearbench.types import FinishReason  # noqa: E402

pytestmark = [pytest.mark.vllm, pytest.mark.train, pytest.mark.slow]

CONTEXT = 256
FREE = Sampling(1.0, 1.0, 0, 60)


@dataclass(frozen=True)
class Served:
    url: str
    model: Path
    process: subprocess.Popen[bytes]

    def engine(self, **options) -> OpenAIEngine:
        return load_engine("tiny", self.url, **({"concurrency": 32, "timeout_s": 200} | options))


@pytest.fixture(scope="module")
def served(tmp_path_factory, vllm_model) -> Iterator[Served]:
    """A trained tiny model whose own generation_config.json says top_k 1: all is greedy, unless told otherwise."""
    folder = tmp_path_factory.mktemp("served")
    model = Path(shutil.copytree(vllm_model, folder / "model"))
    config = json.loads((model / "generation_config.json").read_text())
    (model / "generation_config.json").write_text(json.dumps(config | {"do_sample": True, "top_k": 1}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", "tiny",
        "--enforce-eager", "--dtype", "float32", "--max-model-len", CONTEXT, "--host", "127.0.0.1", "--port", port,
    ]  # fmt: skip
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = environment(VLLM_CPU_KVCACHE_SPACE="1", VLLM_NO_USAGE_STATS="1", PATH=path)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(list(map(str, words)), stdout=log, stderr=log, env=env, start_new_session=True)
    try:
        _await(f"http://127.0.0.1:{port}/health", process, folder / "log")
        yield Served(f"http://127.0.0.1:{port}/v1", model, process)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 500
    while time.monotonic() < deadline:
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(1)
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
    raise AssertionError("vLLM's server did not start in time: " + log.read_text(errors="replace")[-3000:])


@pytest.fixture(scope="module")
def whole(served):
    return served.engine().generate(long_requests(32), FREE)


def test_the_same_seeds_give_the_same_samples_streamed_or_whole_and_however_many_at_once(served, whole):
    texts = [made.completion for made in whole]
    assert len(set(texts)) == 32 and all(" max " in text or " min " in text for text in texts)
    assert served.engine(concurrency=5, stream=True).generate(long_requests(32), FREE) == whole
    other = [Request(r.prompt, r.seed ^ 1, r.place) for r in long_requests(32)]
    assert all(m.completion != t for m, t in zip(served.engine().generate(other, FREE), texts, strict=True))


def test_what_is_off_is_off_whatever_the_models_generation_config_says(served):
    """Left to itself the server takes top_k 1 from there: any seed gives the same completion."""
    (request,) = long_requests(1)
    seeds = range(6)

    def untold(seed: int) -> str:
        body = {"model": "tiny", "messages": list(request.prompt), "max_tokens": 60, "temperature": 1.5, "seed": seed}
        answer = httpx.post(f"{served.url}/chat/completions", json=body, trust_env=False, timeout=100)
        return answer.json()["choices"][0]["message"]["content"]

    assert len({untold(seed) for seed in seeds}) == 1
    hot = [Request(request.prompt, seed, ("q", seed)) for seed in seeds]
    assert len({made.completion for made in served.engine().generate(hot, Sampling(1.5, 1.0, 0, 60))}) == 6
    one = {made.completion for made in served.engine().generate(hot, Sampling(1.5, 1.0, 1, 60))}
    assert one == {untold(0)}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_tokens_are_the_servers_count(served, stream):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(served.model)
    asked = long_requests(8)
    engine = served.engine(stream=stream, extra_body={"skip_special_tokens": False})  # a text of all its tokens
    for request, made in zip(asked, engine.generate(asked, FREE), strict=True):
        messages = [dict(message) for message in request.prompt]
        prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
        assert made.prompt_tokens == len(prompt)
        ended = made.finish_reason is FinishReason.stop  # by the end-of-turn token, which counts and isn't shown
        assert made.completion_tokens == len(tokenizer(made.completion)["input_ids"]) + ended
        assert ended or made.completion_tokens == FREE.max_tokens


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_temperature_0_gives_what_the_transformers_engine_gives(served, stream):
    from klearbench.engines import hf

    asked, greedy = long_requests(12), Sampling(0.0, 1.0, 0, 60)
    ours = hf.load_engine(str(served.model), batch_size=12, dtype="float32").generate(asked, greedy)
    theirs = served.engine(stream=stream).generate(asked, greedy)
    same = [a.completion.strip() == b.completion.strip() for a, b in zip(ours, theirs, strict=True)]
    assert same.count(True) >= 11, "but for a near tie"


def test_limits_and_stop_texts_are_the_servers(served):
    asked = long_requests(4)
    engine = served.engine()
    full = engine.generate(asked, Sampling(0.0, 1.0, 0, 60))
    short = engine.generate(asked, Sampling(0.0, 1.0, 0, 60, stop=(" ; ",)))
    for whole, cut in zip(full, short, strict=True):
        assert cut.completion == whole.completion.split(" ; ")[0] and cut.finish_reason is FinishReason.stop
    everything = Sampling(0.7, 0.9, 20, 30, 0.05, 1.1)
    assert [made.completion_tokens for made in engine.generate(asked, everything)] == [30] * 4


def test_a_prompt_that_fills_the_context_is_that_requests_own_fault(served):
    long = Request(({"role": "user", "content": "7 max 3 " * 200},), 1, ("long", 0))
    lost, made = served.engine().generate([long, *long_requests(1)], FREE)
    assert lost.finish_reason is FinishReason.error
    assert "maximum context length is 256 tokens" in lost.detail
    assert made.finish_reason is not FinishReason.error
    with pytest.raises(UsageError, match="serves 'tiny' with 256 tokens"):
        served.engine().generate(long_requests(1), Sampling(max_tokens=CONTEXT + 1))


def test_the_identity_names_the_server_and_an_unknown_model_is_refused(served):
    identity = served.engine().identity()
    assert identity["server"] == {
        "id": "tiny", "root": str(served.model), "owned_by": "vllm", "max_model_len": CONTEXT,
    }  # fmt: skip
    import vllm

    assert identity["server_version"] == vllm.__version__
    with pytest.raises(UsageError, match=r"has no model 'tinny'; did you mean 'tiny'\? \(it lists tiny\)"):
        load_engine("tinny", served.url).generate(long_requests(1), FREE)


def test_a_killed_evaluation_ends_with_the_samples_of_an_undisturbed_one(served, tmp_path):
    def words(out: Path) -> list[object]:
        return [
            "eval", "--suite", "puzzles", "--engine", "openai", "--model", "tiny", "--base-url", served.url, "--limit",
            20, "--samples", 2, "--max-tokens", 60, "--temperature", 1, "--top-p", 1, "--concurrency", 8, "-o", out,
        ]  # fmt: skip

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run("klearbench", *words(whole)).returncode == 0
    assert run("klearbench", *words(killed), fault="half.samples.jsonl:13:kill").returncode == -signal.SIGKILL
    done = run("klearbench", *words(killed))
    assert done.returncode == 0, done.stderr

    def samples(out: Path) -> list[dict]:
        return sorted(jsonl(out / "samples.jsonl"), key=lambda row: (row["problem_id"], row["sample_index"]))

    assert len(samples(whole)) == 40
    assert samples(killed) == samples(whole)
    assert (killed / "scores.json").read_bytes() == (whole / "scores.json").read_bytes()


def test_a_server_that_is_killed_ends_the_stream_after_what_was_finished(served):
    """The last test of this file: the server does not come back."""
    made = []
    with pytest.raises(EngineDown, match="is down"):
        for request, generation in served.engine(concurrency=4, timeout_s=5).stream(long_requests(200), FREE):
            made.append((request, generation))
            if len(made) == 20:
                os.killpg(served.process.pid, signal.SIGKILL)
    assert 20 <= len(made) < 200
    assert all(generation.finish_reason is not FinishReason.error for _, generation in made)
