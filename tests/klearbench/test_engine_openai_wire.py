"""What the OpenAI engine sends and reads: fields, reasoning, ends, counts of tokens, events cut anywhere."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("httpx")

from faultserver import FaultServer, engine_of

from klearbench.engines.base import Request, Sampling
from klearbench.engines.openai import load_engine
from klearbench.engines.openai_wire import Events, Reply, take_event
from klearbench.errors import ConfigError, UsageError
from klearbench.types import FinishReason

SAMPLING = Sampling(max_tokens=100)
SEED = 2**63 - 1


def request(text: str = "q", seed: int = SEED) -> Request:
    return Request(({"role": "system", "content": "s"}, {"role": "user", "content": text}), seed, (text, 0))


def sent(sampling: Sampling = SAMPLING, model: dict | None = None, **extras) -> dict:
    """The body of one request as the server gets it."""
    with FaultServer(model=model or {}) as server:
        engine_of(server, **extras).generate([request()], sampling)
        return dict(server.calls[0].body)


PLAIN = {
    "model": "m",
    "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}],
    "temperature": 0.6,
    "top_p": 0.95,
    "max_tokens": 100,
    "seed": SEED,
}


def test_a_request_has_what_openai_knows_and_more_only_when_it_is_on():
    assert sent() == PLAIN
    full = Sampling(0.0, 0.5, 20, 7, 0.05, 1.1, ("END", "\n\n"))
    assert sent(full) == PLAIN | {
        "temperature": 0.0, "top_p": 0.5, "top_k": 20, "max_tokens": 7, "min_p": 0.05, "repetition_penalty": 1.1,
        "stop": ["END", "\n\n"],
    }  # fmt: skip


@pytest.mark.parametrize("owner", ["vllm", "sglang", "llamacpp"])
def test_servers_with_defaults_of_their_own_are_countswhat_is_off(owner):
    """vLLM would take top_k 20 from a model's generation_config.json, and no manifest would name it."""
    off = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    assert sent(model={"owned_by": owner}) == PLAIN | off
    assert sent(Sampling(max_tokens=100, top_k=5), {"owned_by": owner}) == PLAIN | off | {"top_k": 5}
    assert sent(model={"owned_by": "system"}) == PLAIN


def test_thinking_streaming_and_extra_fields_reach_the_body():
    assert sent(thinking=False) == PLAIN | {"chat_template_kwargs": {"enable_thinking": False}}
    extra = {"chat_template_kwargs": {"depth": 3}, "priority": 7}
    assert sent(thinking=True, extra_body=extra) == PLAIN | {
        "chat_template_kwargs": {"depth": 3, "enable_thinking": True}, "priority": 7,
    }  # fmt: skip
    assert sent(stream=True) == PLAIN | {"stream": True, "stream_options": {"include_usage": True}}
    assert sent(stream=True, extra_body={"stream_options": None, "seed": None}) == {
        k: v for k, v in (PLAIN | {"stream": True}).items() if k != "seed"
    }


def test_a_prompt_of_odd_characters_reaches_the_server_as_it_is():
    text = 'lone \ud800, NUL \x00, line \u2028, quote ", é 日本'
    with FaultServer(reply=lambda call: {"content": "x"}) as server:
        made = engine_of(server).generate([request(text)], SAMPLING)
        assert server.calls[0].body["messages"][1]["content"] == text
    assert made[0].finish_reason is FinishReason.stop


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency is 0 (a whole number from 1 is expected)"),
        ({"concurrency": 2.5}, "concurrency is 2.5 (a whole number"),
        ({"retries": -1}, "retries is -1"),
        ({"retries": True}, "retries is True"),
        ({"timeout_s": 0}, "timeout_s is 0 (a number from 0.001"),
        ({"timeout_s": float("inf")}, "timeout_s is inf"),
        ({"timeout_s": "soon"}, "timeout_s is 'soon'"),
        ({"stream": "yes"}, "stream is 'yes' (allowed: true, false)"),
        ({"thinking": 1}, "thinking is 1 (allowed: true, false, none)"),
        ({"extra_body": "{"}, "extra_body is no JSON"),
        ({"extra_body": "[1]"}, "extra_body is a list; a JSON object is expected"),
        ({"extra_body": {"n": 2}}, "extra_body sets 'n', which is this engine's own"),
        ({"extra_body": {"stream": True}}, "extra_body sets 'stream'"),
        ({"extra_body": {"messages": None}}, "extra_body sets 'messages'"),
        ({"extra_body": {"temperature": 1}}, "extra_body sets 'temperature'; use the run's own option"),
        ({"extra_body": {"chat_template_kwargs": 3}}, "chat_template_kwargs is no JSON object"),
        (
            {"thinking": True, "extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
            "contradicts the option thinking",
        ),
    ],
)
def test_options_that_are_not_allowed_are_refused_in_one_line(options, message):
    with pytest.raises(ConfigError) as raised:
        load_engine("m", "http://127.0.0.1:9/v1", **options)
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_field_can_be_left_out_only_where_the_servers_default_is_what_the_run_says():
    with FaultServer() as server:
        engine = engine_of(server, extra_body={"temperature": None, "top_p": None})
        with pytest.raises(UsageError, match=r"leaves temperature out, and the run asks for 0\.6; use --temperature 1"):
            engine.generate([request()], SAMPLING)
        assert server.calls == []
        engine.generate([request()], Sampling(1.0, 1.0, max_tokens=100))
        assert {"temperature", "top_p"}.isdisjoint(server.calls[0].body)


# What comes back.


def reply(message: dict, finish: str | None = "stop", usage: dict | None = None, stream: bool = False):
    with FaultServer(reply=lambda call: message, finish=finish, usage=usage) as server:
        return engine_of(server, stream=stream).generate([request("x" * 40)], SAMPLING)[0]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_that_a_server_took_out_is_put_back_before_the_content(stream, field):
    made = reply({field: "\nfirst\nsecond\n", "content": "\n\nthe answer"}, stream=stream)
    assert made.completion == "<think>\nfirst\nsecond\n</think>\n\nthe answer"
    assert reply({field: "half a thou", "content": None}, "length", stream=stream).completion == "<think>\nhalf a thou"
    assert reply({field: "", "content": "\n plain \n"}, stream=stream).completion == "\n plain \n"
    assert reply({field: None, "content": "plain"}, stream=stream).completion == "plain"


def test_reasoning_that_is_sent_under_both_names_counts_once():
    made = reply({"reasoning": "r", "reasoning_content": "r", "content": "a"})
    assert made.completion == "<think>\nr\n</think>\n\na"


TEXT = "line\u2028sep\u2029para\x85next\x1cfs\u000bvt é 日本 \U0001f600 \\n \n end\r\n"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_every_character_of_a_completion_survives(stream):
    """Streamed as raw UTF-8, cut within characters; U+2028, U+2029 and U+0085 end lines elsewhere."""
    assert reply({"content": TEXT}, stream=stream).completion == TEXT


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=5), st.data())
def test_events_are_the_same_however_the_bytes_are_cut(texts, data):
    whole = "".join(f"data: {json.dumps(t, ensure_ascii=False)}\r\n\n: no\nid: 3\n" for t in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    events = Events()
    found = []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        found += events.feed(whole[start:end])
    assert [json.loads(event) for event in found] == texts


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "stop"), ("length", "length"), ("eos_token", "stop"), ("max_tokens", "length"), ("end_turn", "stop")],
)
def test_finish_reasons_are_understood(finish, reason, stream):
    assert reply({"content": "x"}, finish, stream=stream).finish_reason == reason


@pytest.mark.parametrize("finish", ["content_filter", "tool_calls", "function_call", "repetition", "surprise"])
def test_an_end_that_the_model_did_not_choose_is_an_engine_error_and_is_not_tried_again(finish):
    with FaultServer(finish=finish) as server:
        made = engine_of(server).generate([request()], SAMPLING)[0]
        assert len(server.calls) == 1
    assert made.finish_reason is FinishReason.error and made.completion == ""
    assert made.detail == f"the server ended the completion with finish_reason '{finish}'"


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 3}, {"prompt_tokens": -1, "completion_tokens": 2}])
def test_tokens_that_a_server_does_not_count_are_estimated_and_it_says_so(usage, caplog):
    """Four bytes a token: 41 of the prompt, 10 of the completion; a streamed piece (3 characters here) is a token."""
    whole = reply({"content": "0123456789"}, usage=usage)
    assert (whole.prompt_tokens, whole.completion_tokens) == (11, 3)
    assert [r.getMessage().split(" tells ")[1] for r in caplog.records if r.levelname == "WARNING"] == [
        "no usage: the counts of tokens are estimates"
    ]
    streamed = reply({"content": "0123456789"}, usage=usage, stream=True)
    assert (streamed.prompt_tokens, streamed.completion_tokens) == (11, 4)
    assert reply({"content": "0123456789"}, "length", usage=usage).completion_tokens == 100


def test_a_count_that_comes_before_the_last_event_is_kept():
    """Some servers count with every piece, some with the last one that has a text."""
    found = Reply()
    for usage, text in (((7, 1), "a"), ((7, 2), "b"), (None, "")):
        counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if usage else None
        assert take_event(found, json.dumps({"choices": [{"delta": {"content": text}}], "usage": counts}))
    assert not take_event(found, "[DONE]")
    assert (found.usage, found.text, found.pieces) == ((7, 2), "ab", 2)
