"""Rollout batches: what is sampled, judged, dropped and refilled, and how it lies on disk."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tiny
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from klearbench.engines.base import Generation
from klearbench.errors import DataError
from klearbench.judging.judge import MathJudge
from klearbench.types import Answer, FinishReason, Status, Verdict
from klearrl.config import RlStage
from klearrl.data import Order, RlPrompt, split_rl_rows
from klearrl.model import new_model
from klearrl.rl import collate, with_advantages
from klearrl.rollouts import collect as collecting
from klearrl.rollouts.base import Rollout, RolloutBatch, load_batch, save_batch
from klearrl.rollouts.collect import Source, collect, drop_counts, screen

pytestmark = pytest.mark.train

RIGHT, WRONG = "right", "wrong"


def stage(**changes) -> RlStage:
    return RlStage.model_validate({**tiny.RL_STAGE, **changes})


class Judge:
    """Right if the answer is the completion's last word; "broken" breaks it. Remembers what it was given."""

    def __init__(self):
        self.seen = []

    def judge(self, items):
        self.seen += items
        return [self._one(sample, answer) for sample, answer in items]

    def _one(self, sample, answer):
        word = sample.completion.split()[-1]
        status = Status.correct if word == answer.answer else Status.wrong_answer
        status = Status.judge_error if word == "broken" else status
        score = None if status is Status.judge_error else float(status is Status.correct)
        return Verdict(sample.suite, sample.problem_id, sample.sample_index, status, score)


class InOrder(Order):
    """Prompt after prompt, so that a test knows which one comes when."""

    def _shuffled(self, epoch):
        return list(range(self._size))


def source(prompts, judge=None, answers=None, tokenizer=None):
    rows = [RlPrompt(p, ({"role": "user", "content": p},)) for p in prompts]
    answers = answers or {p: Answer(p, RIGHT) for p in prompts}
    order = InOrder(len(rows), 0, "rl")
    return Source(rows, answers, order, judge or Judge(), tokenizer or tiny.tokenizer(), 0, lambda _: None)


@pytest.fixture
def script(monkeypatch):
    """Replace the engine: prompt -> the words of its rollouts, by index. "..." at a word's end: ran into the limit."""
    requests_seen = []

    def install(plan):
        def sample(engine, requests, sampling, log):
            requests_seen.extend(requests)
            return [made(plan[r.prompt[0]["content"]][r.place[1]]) for r in requests]

        monkeypatch.setattr(collecting, "sample", sample)
        return requests_seen

    return install


def made(word):
    reason = FinishReason.length if word.endswith("...") else FinishReason.stop
    return Generation(word.removesuffix("..."), reason, 3, 2, token_ids=(5, 1), logprobs=(-0.5, -0.25))


def run(settings, origin, step=0, cursor=0):
    return collect(settings, origin, tiny.model(), step, cursor)


MIXED, ALL_RIGHT, ALL_WRONG = [RIGHT, WRONG] * 2, [RIGHT] * 4, [WRONG] * 4


def test_groups_without_a_signal_are_dropped_on_both_sides_and_refilled(script):
    script({"a": MIXED, "b": ALL_RIGHT, "c": ALL_WRONG, "d": MIXED, "e": ALL_WRONG, "f": MIXED, "g": MIXED, "h": MIXED})
    batch = run(stage(prompts=4), source("abcdefgh"))
    assert [g[0].prompt_id for g in batch.groups()] == ["a", "d", "f", "g"]
    assert (batch.rounds, batch.cursor) == (2, 8)
    assert drop_counts(batch) == {
        "groups_kept": 4, "groups_all_right": 1, "groups_all_wrong": 2, "groups_all_equal": 0,
        "groups_no_rewards": 0, "groups_surplus": 1,
    }  # fmt: skip
    assert len(batch.rollouts) == 8 * 4, "the dropped ones are kept for the reader"
    assert {r.dropped for r in batch.rollouts if r.prompt_id == "h"} == {"surplus"}


def test_refilling_stops_at_the_cap(script):
    script(dict.fromkeys("abcdefgh", ALL_WRONG) | {"c": MIXED})
    batch = run(stage(prompts=2, max_rounds=3), source("abcdefgh"))
    assert (batch.rounds, batch.cursor, len(batch.groups())) == (3, 6, 1)


def test_the_next_batch_goes_on_in_the_order(script):
    requests = script(dict.fromkeys("abcdef", MIXED))
    run(stage(prompts=2), source("abcdef"), step=1, cursor=4)
    assert [r.prompt[0]["content"] for r in requests] == ["e"] * 4 + ["f"] * 4


def test_more_prompts_may_be_sampled_than_are_kept(script):
    script(dict.fromkeys("abcd", MIXED) | {"b": ALL_RIGHT})
    batch = run(stage(prompts=2, mini_batches=1, sample_prompts=4), source("abcd"))
    assert (batch.rounds, batch.cursor) == (1, 4)
    assert [g[0].prompt_id for g in batch.groups()] == ["a", "c"] and drop_counts(batch)["groups_surplus"] == 1


def test_a_broken_judge_drops_the_rollout_and_not_the_group(script):
    script({"a": [RIGHT, "broken", WRONG, WRONG], "b": [RIGHT, "broken", RIGHT, RIGHT], "c": ["broken"] * 4})
    batch = run(stage(prompts=3, mini_batches=1, max_rounds=1), source("abc"))
    [group] = batch.groups()
    assert [r.reward for r in group] == [1.0, 0.0, 0.0]
    by_prompt = {p: [r.dropped for r in batch.rollouts if r.prompt_id == p] for p in "abc"}
    assert by_prompt["a"] == ["", "judge_error", "", ""]
    assert by_prompt["b"] == ["all_right", "judge_error", "all_right", "all_right"], "an unjudged one is no difference"
    assert by_prompt["c"] == ["judge_error"] * 4
    # (r - mean) / (std + 1e-6) over the three: mean 1/3, unbiased std sqrt(1/3)
    assert [a for _, a in with_advantages([group], "grpo")] == pytest.approx([1.1547, -0.57735, -0.57735], abs=1e-4)


def test_what_ran_into_the_limit_is_wrong_or_left_out(script):
    script({"a": [RIGHT + "...", RIGHT, WRONG, RIGHT], "b": [RIGHT + "...", RIGHT, RIGHT, RIGHT]})
    batch = run(stage(prompts=2, mini_batches=1, max_rounds=1), source("ab"))
    assert [[r.reward for r in g] for g in batch.groups()] == [[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]]
    masked = run(stage(prompts=2, mini_batches=1, max_rounds=1, mask_truncated=True), source("ab"))
    assert [[r.reward for r in g] for g in masked.groups()] == [[1.0, 0.0, 1.0]]
    assert [r.dropped for r in masked.rollouts] == ["truncated", "", "", "", "truncated", *["all_right"] * 3]


def test_everything_truncated_leaves_nothing_to_train_on(script):
    script(dict.fromkeys("ab", [RIGHT + "..."] * 4))
    for masked, reason in ((False, "all_wrong"), (True, "truncated")):
        batch = run(stage(prompts=2, max_rounds=1, mask_truncated=masked), source("ab"))
        assert batch.groups() == [] and {r.dropped for r in batch.rollouts} == {reason}


def test_the_same_prompt_twice_in_a_batch_makes_two_groups(script):
    """Two prompts, four groups: each rollout keeps the reward of its own completion."""
    requests = script({"a": MIXED, "b": [WRONG, WRONG, WRONG, RIGHT]})
    batch = run(stage(prompts=4), source("ab"))
    groups = batch.groups()
    assert [g[0].prompt_id for g in groups] == ["a", "b", "a", "b"] and [len(g) for g in groups] == [4] * 4
    for group in groups:
        assert len({r.group for r in group}) == 1
        assert [r.reward for r in group] == [float(r.completion == RIGHT) for r in group]
    assert len({r.seed for r in requests}) == 16, "no two rollouts share a seed, not even of one prompt"


def test_seeds_depend_on_the_step_and_on_nothing_that_changes(script):
    requests = script(dict.fromkeys("ab", MIXED))
    for step in (0, 0, 1):
        run(stage(prompts=2), source("ab"), step=step)
    first, again, later = ([r.seed for r in requests[i : i + 8]] for i in (0, 8, 16))
    assert first == again and not set(first) & set(later)


def test_no_answer_reaches_a_request(script):
    """A canary in every answer: in no request, and in the judge, which gets equal rollouts once."""
    rows = [{**row, "answer": f"canary{i}"} for i, row in enumerate(tiny.RL_ROWS)]
    prompts, answers = split_rl_rows(rows)
    requests = script({p.prompt[0]["content"]: MIXED for p in prompts})
    judge = Judge()
    origin = Source(prompts, answers, InOrder(12, 0, "rl"), judge, tiny.tokenizer(), 0, lambda _: None)
    batch = run(stage(prompts=4, max_rounds=2), origin)
    assert len(requests) == 32 and "canary" not in repr(requests)
    assert "canary" not in repr(batch), "not in what is written to disk"
    assert [a.answer for _, a in judge.seen[::2]] == [f"canary{i}" for i in range(8)]


def test_all_equal_rewards_between_0_and_1_are_named():
    [one] = [made(RIGHT)]
    rollout = collecting.Rollout(
        "p", 0, (1,), one.token_ids, one.logprobs, "x", one.finish_reason, Status.wrong_answer, 0.5
    )
    assert {r.dropped for r in screen([rollout] * 3)} == {"all_equal"}
    assert {r.dropped for r in screen([rollout])} == {"all_equal"}, "a group of one has no signal"
    assert {r.dropped for r in screen([rollout, replace(rollout, reward=0.6)])} == {""}


def test_a_batch_comes_back_from_disk_as_it_was(script, tmp_path):
    script({"a": [RIGHT, "broken", WRONG, "half \ud800 \x00..."], "b": ALL_WRONG})
    batch = run(stage(prompts=2, max_rounds=1), source("ab"))
    save_batch(tmp_path / "rollouts" / "x.parquet", batch)
    loaded = load_batch(tmp_path / "rollouts" / "x.parquet")
    shown = replace(batch.rollouts[3], completion="half \ufffd \ufffd")
    assert loaded == replace(batch, rollouts=(*batch.rollouts[:3], shown, *batch.rollouts[4:]))


def test_another_parquet_file_is_no_batch(tmp_path):
    tiny.write_dataset(tmp_path)
    with pytest.raises(DataError, match="is no rollout batch"):
        load_batch(tmp_path / "data" / "train-rl.parquet")


def two_ways():
    """Tokens a, b and ab: "ab" can be sampled as two tokens, and is always encoded as one."""
    vocabulary = {token: i for i, token in enumerate(["<e>", "a", "b", "ab", "u"])}
    core = Tokenizer(models.BPE(vocabulary, [("a", "b")]))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.decoder = decoders.Fuse()
    template = "{% for m in messages %}{{ m.content }} u {% endfor %}"
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<e>", eos_token="<e>", chat_template=template)


def test_trained_ids_are_the_sampled_ids():
    tokenizer = two_ways()
    net = new_model(tiny.SPEC, tokenizer, 0)
    with MathJudge() as judge:
        origin = source(["a b", "ab a"], judge, {p: Answer(p, "1") for p in ("a b", "ab a")}, tokenizer)
        batch = collect(
            stage(prompts=2, group_size=16, max_rounds=1, temperature=4.0, max_tokens=12), origin, net, 0, 0
        )
    encoded = [tuple(tokenizer(r.completion, add_special_tokens=False)["input_ids"]) for r in batch.rollouts]
    sampled = [tuple(i for i in r.token_ids if i) for r in batch.rollouts]
    assert sum(a != b for a, b in zip(encoded, sampled, strict=True)) > 3, "the case must occur"
    t = collate([(r, 0.0) for r in batch.rollouts], tokenizer.pad_token_id, torch.device("cpu"))
    for row, rollout in enumerate(batch.rollouts):
        n, p = len(rollout.token_ids), len(rollout.prompt_ids)
        assert t.labels[row, :n].tolist() == list(rollout.token_ids)
        assert t.ids[row, t.ids.shape[1] - t.labels.shape[1] - p :][: p + n].tolist() == [
            *rollout.prompt_ids,
            *rollout.token_ids,
        ]
        assert t.mask[row].tolist() == [True] * n + [False] * (t.mask.shape[1] - n), "the end of turn is trained"


def test_every_group_is_counted_under_one_reason(script):
    rollout = Rollout("p", 0, (1,), (2,), (0.0,), "", FinishReason.stop, Status.correct, 1.0)
    broken = replace(rollout, status=Status.judge_error, reward=None, dropped="judge_error")
    groups = [
        screen([broken, rollout, rollout]),
        screen([replace(broken, group=1), replace(broken, group=1)]),
        screen([replace(broken, group=2), replace(rollout, group=2), replace(rollout, group=2, reward=0.0)]),
    ]
    counts = drop_counts(RolloutBatch(tuple(r for group in groups for r in group), 3, 1))
    assert counts["groups_all_right"] == counts["groups_no_rewards"] == counts["groups_kept"] == 1
    assert sum(counts.values()) == 3
