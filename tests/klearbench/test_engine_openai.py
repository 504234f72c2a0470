"""The engine of OpenAI-compatible servers, against a real server that fails by plan: nothing lost, nothing doubled."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise

import pytest

pytest.importorskip("httpx")

from faultserver import ANYTIME, STREAMED, FaultServer, engine_of, told

from klearbench.engines.base import Request, Sampling, StreamingEngine, sample_seed
from klearbench.engines.openai import OpenAIEngine, load_engine
from klearbench.engines.openai_pace import Patience
from klearbench.errors import EngineDown, UsageError
from klearbench.types import FinishReason

SAMPLING = Sampling(max_tokens=100)


def requests(count: int, samples: int = 1) -> list[Request]:
    return [
        Request(({"role": "user", "content": f"q{i}"},), sample_seed(0, f"q{i}", k), (f"q{i}", k))
        for k in range(samples)
        for i in range(count)
    ]


def right(request: Request) -> str:
    return f"{request.prompt[0]['content']} -> {request.seed}"


def test_every_request_comes_back_once_with_its_own_completion_and_seed():
    with FaultServer() as server:
        engine = engine_of(server)
        assert isinstance(engine, StreamingEngine)
        made = list(engine.stream(iter(requests(20, 3)), SAMPLING))
        assert Counter(r.place for r, _ in made) == Counter(r.place for r in requests(20, 3))
        assert all(g.completion == right(r) and g.finish_reason is FinishReason.stop for r, g in made)
        assert {(g.prompt_tokens, g.completion_tokens) for _, g in made} == {(7, 5)}
        assert server.most_open <= 8
        assert Counter(call.seed for call in server.calls) == Counter(r.seed for r in requests(20, 3))
        assert [g.completion for g in engine.generate(requests(5), SAMPLING)] == [right(r) for r in requests(5)]
        assert list(engine.stream([], SAMPLING)) == []


def test_results_come_in_the_order_of_completion_and_requests_are_taken_as_there_is_room():
    """Three calls at a time, of which the first is held back until all others are done."""
    taken: list[str] = []

    def asked():
        for request in requests(12):
            taken.append(request.place[0])
            yield request

    together = threading.Barrier(3, timeout=30)

    def plan(call):
        question = call.body["messages"][0]["content"]
        if question in ("q0", "q1", "q2"):
            together.wait()  # breaks unless three run at once
        return "trickle" if question == "q0" else "ok"

    with FaultServer(plan) as server:
        places = []
        for request, _ in engine_of(server, 3, stream=True).stream(asked(), SAMPLING):
            places.append(request.place[0])
            assert len(taken) <= len(places) + 3
        assert sorted(places) == sorted(taken) and len(places) == 12
        assert places.index("q0") > 3
        assert server.most_open == 3


@pytest.mark.parametrize("fault", ANYTIME)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_fault_that_may_pass_is_tried_again_with_the_same_seed(fault, stream, caplog):
    caplog.set_level(logging.INFO, "klearbench.engines")
    with FaultServer(lambda call: fault if call.attempt <= 2 else "ok") as server:
        ((request, made),) = engine_of(server, 1, stream=stream).stream(requests(1), SAMPLING)
    assert made.completion == right(request)
    assert [call.seed for call in server.calls] == [request.seed] * 3
    assert len({json.dumps(call.body) for call in server.calls}) == 1, "a retry asks the same"
    told = [r.getMessage() for r in caplog.records if "retry" in r.getMessage()]
    assert [text.split(" in ")[0] for text in told] == [f"q0 sample 0: retry {n} of 6" for n in (1, 2)]
    assert "1 requests in 3 tries, 0 given up; tries that failed: 2 " in caplog.text


@pytest.mark.parametrize("fault", [*STREAMED, "silent"])
def test_a_stream_that_breaks_in_the_middle_is_begun_again(fault):
    patience = Patience(timeout_s=10, silence_s=0.2, backoff_s=0.01, down_s=0.5)
    with FaultServer(lambda call: fault if call.attempt == 1 else "ok") as server:
        ((request, made),) = engine_of(server, 1, patience, stream=True).stream(requests(1), SAMPLING)
    assert made.completion == right(request)
    assert [call.seed for call in server.calls] == [request.seed] * 2


@pytest.mark.parametrize("fault", ["trickle", "lingers"])
def test_a_slow_stream_is_waited_for_and_one_that_does_not_close_is_not(fault):
    patience = Patience(timeout_s=20, silence_s=10, retries=0)
    with FaultServer(lambda call: fault) as server:
        ((request, made),) = engine_of(server, 1, patience, stream=True).stream(requests(1), SAMPLING)
    assert made.completion == right(request)


def test_a_server_that_ignores_the_wish_to_stream_is_understood():
    with FaultServer() as server:
        events = server.events
        server.events = lambda call: pytest.fail("not streamed")
        engine = engine_of(server, 1, stream=True)
        server.plan = lambda call: call.body.pop("stream") and "ok"
        assert [g.completion for _, g in engine.stream(requests(3), SAMPLING)] == [right(r) for r in requests(3)]
        assert events


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_try_that_takes_too_long_is_given_up_and_retried_twice_at_most(stream):
    """The server is slow for two seeds: for one of them once, for the other one always."""
    first, second, third = requests(3)

    def plan(call):
        return "hang" if call.seed == second.seed or (call.seed == third.seed and call.attempt == 1) else "ok"

    patience = Patience(timeout_s=0.3, backoff_s=0.01)
    with FaultServer(plan) as server:
        made = {
            r.place: g
            for r, g in engine_of(server, 3, patience, stream=stream).stream([first, second, third], SAMPLING)
        }
        tries = Counter(call.seed for call in server.calls)
    assert made[first.place].completion == right(first) and made[third.place].completion == right(third)
    lost = made[second.place]
    assert lost.finish_reason is FinishReason.error and lost.completion == ""
    assert lost.detail == "3 tries failed, the last: timeout: no answer within 0.3 s (timeout_s)"
    assert tries == {first.seed: 1, second.seed: 3, third.seed: 2}


@pytest.mark.parametrize("seed", range(4))
def test_in_a_storm_of_faults_nothing_is_lost_nothing_is_doubled_and_seeds_stay(seed):
    rng, lock = random.Random(seed), threading.Lock()
    stream = bool(seed % 2)
    weather = [*ANYTIME, *(STREAMED if stream else ()), "429:0", "429:0.02", "503:0.01", "429", "trickle"]
    weather = [f for f in weather if stream or f != "trickle"]

    def plan(call):
        with lock:
            return rng.choice(weather) if call.attempt <= 4 and rng.random() < 0.5 else "ok"

    asked = requests(50, 4)
    with FaultServer(plan) as server:
        made = list(engine_of(server, 16, stream=stream).stream(iter(asked), SAMPLING))
    assert Counter(r.place for r, _ in made) == Counter(r.place for r in asked)
    assert all(g.completion == right(r) for r, g in made)
    assert {c.seed for c in server.calls} == {r.seed for r in asked}
    assert len(server.calls) > 250, "half of the first tries must have failed for this test to say anything"
    assert server.most_open <= 16


def test_a_rate_limit_holds_everybody_back_for_as_long_as_the_server_asks():
    """One call of eight is told to wait: there is a gap without any call, and most of the work comes after it."""
    asked = requests(60)
    with FaultServer(lambda call: "429:0.5" if call.seed == asked[9].seed and call.attempt == 1 else "ok") as server:
        made = list(engine_of(server, 8).stream(asked, SAMPLING))
        came = sorted(call.at for call in server.calls)
    assert all(g.completion == right(r) for r, g in made) and len(made) == 60
    gaps = [later - earlier for earlier, later in pairwise(came)]
    assert max(gaps) > 0.4, "calls on their way had 0.1 s of the pause"
    assert len(came) - gaps.index(max(gaps)) > 20


def test_a_rate_limit_costs_no_retry_and_is_told_once_a_pause(caplog):
    caplog.set_level(logging.INFO, "klearbench.engines")
    with FaultServer(lambda call: "429:0.02" if call.attempt <= 9 else "ok") as server:
        made = list(engine_of(server, 1).stream(requests(1), SAMPLING))
    assert made[0][1].finish_reason is FinishReason.stop
    assert len(server.calls) == 10
    warnings = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert warnings == [
        "rate limit (rate limit: this is a 429): all calls wait 0.0 s, then 1 at a time",
    ]
    assert "10 tries, 0 given up; tries that failed: 9 rate limit;" in caplog.text


def test_limits_that_an_answer_says_are_used_up_are_waited_for_before_they_are_hit():
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "300ms"}
    with FaultServer(headers=headers) as server:
        list(engine_of(server, 1).stream(requests(2), SAMPLING))
    assert server.calls[1].at - server.calls[0].at >= 0.3


def test_a_rate_limit_without_an_end_ends_the_run():
    with FaultServer(lambda call: "429:3000") as server, pytest.raises(EngineDown, match="a pause of 3000 s"):
        list(engine_of(server).stream(requests(5), SAMPLING))
    patience = Patience(backoff_s=0.01, limited_s=0.3)
    with FaultServer(lambda call: "429") as server, pytest.raises(EngineDown, match="nothing was let through for"):
        list(engine_of(server, 8, patience).stream(requests(5), SAMPLING))


def test_a_request_that_always_fails_is_an_engine_error_and_stops_nobody():
    asked = requests(30)
    with FaultServer(lambda call: "500" if call.seed == asked[3].seed else "ok") as server:
        made = {r.place: g for r, g in engine_of(server, 4).stream(asked, SAMPLING)}
    assert made[("q3", 0)].finish_reason is FinishReason.error
    assert made[("q3", 0)].detail == "7 tries failed, the last: status 500: this is a 500"
    assert [p for p, g in made.items() if g.finish_reason is FinishReason.error] == [("q3", 0)]
    assert len(made) == 30


def stream_until(engine: OpenAIEngine, asked, on_each=lambda count: None):
    """What a stream gives back, and what it ends with."""
    made = []
    try:
        for request, generation in engine.stream(asked, SAMPLING):
            made.append((request, generation))
            on_each(len(made))
    except EngineDown as error:
        return made, error
    return made, None


@pytest.mark.parametrize("concurrency", [1, 16])
def test_a_server_that_goes_down_for_good_ends_the_stream_after_what_was_finished(concurrency):
    with FaultServer() as server:
        engine = engine_of(server, concurrency)
        made, error = stream_until(engine, requests(200), lambda n: server.down() if n == 40 else None)
        assert error is not None and "is down" in str(error) and "rerun the same command" in str(error)
        assert 40 <= len(made) < 200
        assert all(g.completion == right(r) for r, g in made), "no sample counts as failed because the server is down"
        server.up()
        rest = [r for r in requests(200) if r.place not in {m.place for m, _ in made}]
        assert len(list(engine.stream(rest, SAMPLING))) == len(rest)


def test_a_server_that_comes_back_in_time_is_waited_for(caplog):
    patience = Patience(timeout_s=10, retries=6, backoff_s=0.02, backoff_cap_s=0.05, down_s=20)
    with FaultServer() as server:
        back = threading.Timer(0.8, server.up)

        def outage(count: int) -> None:
            if count == 30:
                server.down()
                back.start()

        made, error = stream_until(engine_of(server, 8, patience), requests(100), outage)
        back.join()
    assert error is None
    assert len(made) == 100 and all(g.completion == right(r) for r, g in made)
    assert "asking" in caplog.text and "answers; going on" in caplog.text


def test_a_server_that_lives_and_fails_every_request_ends_the_run():
    with FaultServer(lambda call: "500") as server:
        made, error = stream_until(engine_of(server, 4), requests(500))
    assert error is not None and "requests in a row failed for good (status 500: this is a 500)" in str(error)
    assert len(made) < 8 and all(g.finish_reason is FinishReason.error for _, g in made)
    assert len(server.calls) <= 8 * 7 + 4 * 7


def test_the_last_few_requests_notice_that_the_server_is_down_too():
    """With two of sixteen calls left, two failures in a row are not many; the server is asked all the same."""
    asked = requests(20)
    with FaultServer() as server:
        engine = engine_of(server, 16)
        server.plan = lambda call: "hang:0.5" if call.seed in (asked[-1].seed, asked[-2].seed) else "ok"
        made, error = stream_until(engine, asked, lambda n: server.down() if n == 18 else None)
    assert len(made) == 18 and all(g.completion == right(r) for r, g in made)
    assert error is not None and "is down" in str(error)


def test_what_is_finished_when_the_stream_fails_is_given_back_first():
    """While the first sample is being written the key is refused, and two more samples are finished after that."""

    def plan(call):
        question = call.body["messages"][0]["content"]
        if question in ("q1", "q2"):
            time.sleep(0.2)
        return told(b"{}", status=401) if question == "q3" else "ok"

    with FaultServer(plan) as server:
        made = []
        with pytest.raises(UsageError, match="answers 401"):
            for request, _ in engine_of(server, 4).stream(requests(4), SAMPLING):
                made.append(request.place[0])
                while len(server.calls) < 4 or server.open:
                    time.sleep(0.01)
                time.sleep(0.2)
    assert sorted(made) == ["q0", "q1", "q2"]


def test_closing_a_stream_gives_up_what_runs_at_once():
    with FaultServer(lambda call: "hang" if call.body["messages"][0]["content"] != "q0" else "ok") as server:
        begun = time.monotonic()
        with closing(engine_of(server, 8, Patience()).stream(requests(50), SAMPLING)) as stream:
            assert next(stream)[0].place == ("q0", 0)
        assert time.monotonic() - begun < 20
        assert not [t for t in threading.enumerate() if t.name == "openai"]


def test_an_error_of_the_requests_own_iterator_reaches_the_caller():
    def broken():
        yield from requests(3)
        raise RuntimeError("the plan is broken")

    with FaultServer() as server, pytest.raises(RuntimeError, match="the plan is broken"):
        list(engine_of(server, 2).stream(broken(), SAMPLING))
    assert not [t for t in threading.enumerate() if t.name == "openai"]


def test_memory_does_not_grow_with_the_number_of_requests():
    """A window of eight requests is alive at any time, out of six hundred."""
    import gc
    import weakref

    class Kept(str):
        """A text that can be watched."""

    alive = weakref.WeakSet()

    def asked():
        for i in range(600):
            text = Kept(f"q{i}")
            alive.add(text)
            yield Request(({"role": "user", "content": text},), i, (f"q{i}", 0))

    with FaultServer() as server:
        most = 0
        for count, _ in enumerate(engine_of(server, 8).stream(asked(), SAMPLING)):
            if count % 150 == 149:
                gc.collect()
                most = max(most, len(alive))
            server.calls.clear()
    assert most < 30


def test_load_engine_builds_what_the_command_line_names():
    with FaultServer() as server:
        engine = load_engine("m", server.url, concurrency=3, stream=True, extra_body='{"x": 1}')
        assert engine.batch_size == 3
        assert [g.completion for g in engine.generate(requests(2), SAMPLING)] == [right(r) for r in requests(2)]
        assert server.calls[0].body["x"] == 1 and server.calls[0].body["stream"] is True
        engine.close()
