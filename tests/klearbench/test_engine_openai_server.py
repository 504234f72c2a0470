"""What the OpenAI engine makes of refusals, addresses, keys and waits, and how it names a server."""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import time

import pytest

pytest.importorskip("httpx")

from faultserver import FaultServer, engine_of, told

from klearbench import __version__
from klearbench.engines.base import Request, Sampling
from klearbench.engines.openai import load_engine
from klearbench.engines.openai_pace import Gate, Patience, asked_wait, used_up
from klearbench.errors import EngineDown, UsageError
from klearbench.types import FinishReason

SAMPLING = Sampling(max_tokens=100)


def many(count: int) -> list[Request]:
    return [Request(({"role": "user", "content": f"q{i}"},), i, (f"q{i}", 0)) for i in range(count)]


# What a server refuses.


def refusal(status: int, error: dict | str, requests: int = 1, sampling: Sampling = SAMPLING, **options):
    """What becomes of requests that are all answered by one error."""
    body = {"error": {"message": error}} if isinstance(error, str) else error
    answer = told(json.dumps(body).encode(), status=status)
    with FaultServer(lambda call: answer, model={"id": options.pop("listed", "m")}) as server:
        return engine_of(server, patience=Patience(timeout_s=10, retries=1, backoff_s=0.01), **options).generate(
            many(requests), sampling
        )


VLLM_CONTEXT = (
    "This model's maximum context length is 256 tokens. However, your prompt contains 300 input tokens, which exceeds"
    " this limit even without any output tokens."
)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": VLLM_CONTEXT, "param": "input_tokens", "code": 400}),
        (400, {"message": "max_tokens must be at least 1, got -5.", "param": "max_tokens", "code": 400}),
        (400, {"message": "Please reduce the length", "param": "messages", "code": "context_length_exceeded"}),
        (413, {"message": "too long"}),
        (422, {"message": "prompt is empty"}),
    ],
)
def test_what_one_request_holds_is_its_own_fault(status, error):
    (made,) = refusal(status, {"error": error})
    assert made.finish_reason is FinishReason.error
    assert made.detail == f"the server refuses this request: {error['message']}"


@pytest.mark.parametrize(
    ("status", "name", "body", "remedy"),
    [
        (400, "top_k", {"error": {"message": "Unrecognized request argument supplied: top_k"}}, "use --top-k 0"),
        (400, "min_p", {"error": {"message": "Unknown parameter: 'min_p'.", "param": "min_p"}}, "use --min-p 0"),
        (422, "seed", {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra"}]}, "null"),
        (400, "repetition_penalty", {"message": "repetition_penalty is not supported"}, "use --repetition-penalty 1"),
        (
            400,
            "max_tokens",
            {"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
                                  " 'max_completion_tokens' instead.", "param": "max_tokens"}},
            "max_completion_tokens",
        ),
        (400, "temperature", {"error": {"message": "Must be 1.", "param": "temperature"}}, "use --temperature 1"),
        (400, "stop", {"error": {"message": "'stop' is not supported with this model.", "param": "stop"}}, "no --stop"),
        (400, "stream_options", {"error": "unknown field stream_options"}, "'extra_body={\"stream_options\": null}'"),
        (422, "chat_template_kwargs", {"detail": "Unexpected field: chat_template_kwargs"}, "neither --thinking"),
        (400, "priority", {"error": {"message": "Unknown parameter: 'priority'"}}, "take it out of extra_body"),
    ],
)  # fmt: skip
def test_a_field_that_the_server_does_not_take_ends_the_run_with_a_remedy(status, name, body, remedy):
    sampling = Sampling(0.6, 0.95, 20, 100, 0.1, 1.1, ("END",))
    with pytest.raises(UsageError) as raised:
        refusal(status, body, sampling=sampling, thinking=True, extra_body={"priority": 1}, stream=True)
    assert f"does not take {name} (" in str(raised.value)
    assert str(raised.value).partition(");")[2].strip() and remedy in str(raised.value)


def test_when_every_request_is_refused_the_run_ends():
    with pytest.raises(UsageError, match="refuses every request; it says: too bad"):
        refusal(400, "too bad", requests=20)
    made = refusal(400, "too bad", requests=7)
    assert [g.finish_reason for g in made] == [FinishReason.error] * 7


def test_one_answer_is_enough_to_blame_the_requests_and_not_the_run():
    with FaultServer(lambda call: "ok" if call.seed == 0 else "400") as server:
        made = engine_of(server, concurrency=1).generate(many(20), SAMPLING)
    assert [g.finish_reason for g in made] == [FinishReason.stop] + [FinishReason.error] * 19


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_error_in_an_answer_of_status_200_counts_as_its_code(stream):
    made = refusal(200, {"error": {"message": VLLM_CONTEXT, "code": 400}}, stream=stream)
    assert made[0].detail == f"the server refuses this request: {VLLM_CONTEXT}"
    made = refusal(200, {"error": {"message": "fell over", "code": "internal"}}, stream=stream)
    assert made[0].detail == "2 tries failed, the last: status 500: fell over"


def test_an_unknown_model_is_named_with_what_the_server_offers(caplog):
    with pytest.raises(UsageError) as raised:
        refusal(404, "The model `m` does not exist.", listed="m2")
    assert "has no model 'm'; did you mean 'm2'? (it lists m2); it says: The model `m`" in str(raised.value)
    assert "does not list the model 'm' (it lists m2)" in caplog.text


def test_a_404_after_answers_may_pass():
    with FaultServer(lambda call: "404" if call.seed == 1 and call.attempt == 1 else "ok") as server:
        made = engine_of(server, concurrency=1).generate(many(3), SAMPLING)
    assert [g.finish_reason for g in made] == [FinishReason.stop] * 3


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_not_accepted_ends_the_run_and_is_never_shown(status, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(UsageError, match=rf"answers {status}: put the server's key into SOME_KEY"):
        refusal(status, "no key")
    monkeypatch.setenv("SOME_KEY", "sk-top-secret")
    with pytest.raises(UsageError, match=r"the key in SOME_KEY is not accepted .*says: bad key: \*\*\*$") as raised:
        refusal(status, "bad key: sk-top-secret")
    assert "top-secret" not in str(raised.value) + caplog.text


def test_a_server_that_wants_to_be_paid_ends_the_run_and_may_be_asked_again_later():
    with pytest.raises(EngineDown, match="wants to be paid first; it says: no credit"):
        refusal(402, "no credit")
    with pytest.raises(EngineDown, match="wants to be paid first"):
        refusal(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})


def test_a_context_that_max_tokens_fills_is_refused_before_any_call():
    with FaultServer(model={"max_model_len": 99}) as server:
        with pytest.raises(UsageError, match=r"max_tokens is 100, and .* serves 'm' with 99 tokens"):
            engine_of(server).generate(many(1), SAMPLING)
        assert server.calls == []


def test_a_servers_text_is_shown_on_one_line_without_control_characters():
    made = refusal(400, "two\nlines \x1b[31mred\x1b[0m\r" + "long " * 200)
    assert made[0].detail.isprintable() and len(made[0].detail) < 400


# Addresses, keys, identities.


def test_the_identity_says_what_decides_and_holds_no_secret(monkeypatch):
    monkeypatch.setenv("SOME_KEY", " sk-top-secret\n")
    version = {"/version": (200, "application/json", b'{"version": "0.32.0"}')}
    model = {"root": "/models/m", "max_model_len": 4096, "owned_by": "vllm", "created": 17, "permission": [{"id": 9}]}
    with FaultServer(model=model, gets=version) as server:
        url = server.url.replace("http://", "http://user:hidden@") + "/chat/completions/?api-version=7#x"
        engine = engine_of(server, url=url, thinking=True, extra_body={"a": 1})
        assert engine.identity() == {
            "name": "openai",
            "version": __version__,
            "model": "m",
            "base_url": server.url,
            "server": {"id": "m", "root": "/models/m", "owned_by": "vllm", "max_model_len": 4096},
            "server_version": "0.32.0",
            "thinking": True,
            "extra_body": {"a": 1},
            "seeds": "sent; the server promises what they do",
        }
        assert json.dumps(engine.identity())
        other = load_engine("m", server.url, concurrency=9, timeout_s=5, retries=1, stream=True)
        assert {k: v for k, v in other.identity().items() if k not in ("thinking", "extra_body")} == {
            k: v for k, v in engine.identity().items() if k not in ("thinking", "extra_body")
        }
        assert "/v1/models?api-version=7" in server.asked
        assert engine_of(server, extra_body={"seed": None}).identity()["seeds"] == "not sent"


def test_the_key_is_sent_and_none_where_there_is_none(monkeypatch):
    with FaultServer() as server:
        engine_of(server).generate(many(1), SAMPLING)
        assert "Authorization" not in server.calls[0].headers
        monkeypatch.setenv("SOME_KEY", " sk-1\n")
        engine_of(server).generate(many(1), SAMPLING)
        assert server.calls[1].headers["Authorization"] == "Bearer sk-1"
        monkeypatch.setenv("SOME_KEY", "sk-é")
        with pytest.raises(UsageError, match="the key in SOME_KEY holds characters that no key has"):
            engine_of(server)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_not_used_for_this_machine(name, monkeypatch):
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FaultServer() as server:
        assert engine_of(server).generate(many(1), SAMPLING)[0].finish_reason is FinishReason.stop
    monkeypatch.setenv("ALL_PROXY", "nonsense://x")
    with FaultServer() as server, pytest.raises(UsageError, match="a proxy that the environment names can't be used"):
        engine_of(server)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "", "ftp://x/v1", "http://", "http://[::1/v1", "/v1"])
def test_what_is_no_address_is_refused_with_an_example(url):
    with pytest.raises(UsageError, match="as http://localhost:8000/v1"):
        load_engine("m", url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://nowhere.invalid/v1", f"http://{'a' * 70}.invalid/v1"])
def test_a_server_that_is_not_there_ends_the_command_as_one_that_is_down(url):
    with pytest.raises(EngineDown, match=r"no answer from .*start the server, or give its address") as raised:
        load_engine("m", url)
    assert "\n" not in str(raised.value)


HTML = (200, "text/html", b"<html>hello</html>")


def test_an_address_without_v1_is_mended_in_the_message():
    with FaultServer() as server, pytest.raises(UsageError) as raised:
        engine_of(server, url=server.url.removesuffix("/v1"))
    assert f"--base-url {server.url} is one" in str(raised.value)


def test_a_web_page_is_no_api():
    with FaultServer(gets={"/x/models": HTML, "/x/v1/models": HTML}) as server, pytest.raises(UsageError) as raised:
        engine_of(server, url=server.url.replace("/v1", "/x"))
    assert "is no OpenAI-compatible API (/models answers 200, text/html)" in str(raised.value)


def test_a_redirect_names_where_it_leads():
    with FaultServer(gets={"/v1/models": (307, "text/plain", b"")}) as server, pytest.raises(UsageError) as raised:
        engine_of(server)
    assert "redirects to http://elsewhere/v1; give that address" in str(raised.value)


def test_a_server_without_a_list_of_models_will_do():
    gets = {"/v1/models": (404, "application/json", b'{"detail": "Not Found"}')}
    with FaultServer(gets=gets) as server:
        engine = engine_of(server)
        assert engine.generate(many(1), SAMPLING)[0].finish_reason is FinishReason.stop
    assert engine.identity()["server"] == {} and engine.identity()["server_version"] is None


def test_a_server_that_stumbles_once_while_it_is_asked_is_asked_again():
    answers = iter([(503, "text/plain", b"loading"), (200, "application/json", b'{"data": [{"id": "m"}]}')])

    class Once(dict):
        def __getitem__(self, key):
            return next(answers)

    with FaultServer(gets=Once({"/v1/models": None})) as server:
        assert engine_of(server).identity()["server"] == {"id": "m"}


# Waits.


def test_the_waits_that_servers_ask_for_are_read_in_every_form():
    later = email.utils.formatdate(time.time() + 90, usegmt=True)
    assert asked_wait({"retry-after": "7"}) == 7.0
    assert asked_wait({"retry-after": "0.5"}) == 0.5
    assert asked_wait({"retry-after-ms": "250", "retry-after": "1"}) == 0.25
    assert 85 < asked_wait({"retry-after": later}) <= 91
    assert asked_wait({"retry-after": email.utils.formatdate(0, usegmt=True)}) == 0.0
    for nonsense in ("", "soon", "-5", "nan", "inf", "1e9", "9" * 400):
        assert asked_wait({"retry-after": nonsense}) is None, nonsense


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20ms", 0.02), ("1s", 1.0), ("6m0s", 360.0), ("1h2m3.5s", 3723.5), ("12", 12.0), ("x", None), ("1s!", None)],
)
def test_the_resets_of_rate_limits_are_read(text, seconds):
    headers = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": text}
    assert used_up(headers) == seconds
    assert used_up(headers | {"x-ratelimit-remaining-tokens": "1"}) is None


def test_the_longest_of_two_used_up_limits_counts():
    both = {"remaining-requests": "0", "reset-requests": "3s", "remaining-tokens": "0", "reset-tokens": "1m"}
    assert used_up({f"x-ratelimit-{name}": value for name, value in both.items()}) == 60.0


def test_backoff_stays_within_twice_as_long_each_time_and_its_cap():
    patience = Patience(backoff_s=0.5, backoff_cap_s=3.0)
    for failures, most in ((1, 0.5), (2, 1.0), (3, 2.0), (4, 3.0), (500, 3.0)):
        waits = [patience.backoff(failures) for _ in range(400)]
        assert 0 <= min(waits) < 0.1 * most and 0.9 * most < max(waits) <= most


def test_a_rate_limit_halves_the_calls_at_a_time_and_successes_bring_them_back():
    async def inside(gate: Gate) -> int:
        """How many get in at once."""
        count = 0
        try:
            while count < 20:
                await asyncio.wait_for(gate.__aenter__(), 0.05)
                count += 1
        except TimeoutError:
            pass
        for _ in range(count):
            await gate.__aexit__()
        return count

    async def check() -> list[int]:
        gate = Gate(8, Patience())
        found = [await inside(gate)]
        gate.limited(0.0, "429")
        found.append(await inside(gate))
        for _ in range(3):
            gate.limited(0.0, "429")
            await asyncio.sleep(0.001)
        found.append(await inside(gate))
        for _ in range(50):
            gate.worked()
        found.append(await inside(gate))
        await gate.shut(True)
        found.append(await inside(gate))
        return found

    assert asyncio.run(check()) == [8, 4, 1, 8, 0]
