"""The policy update against plain torch, and RL runs that are killed, starved of signal, or fed by a wrong engine."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
import tiny
import torch

from klearbench.errors import IncompleteError
from klearbench.judging.judge import MathJudge
from klearbench.types import FinishReason, Status
from klearrl.advantages import group_advantages
from klearrl.config import RlStage, TrainRecipe
from klearrl.context import Context
from klearrl.data import Order, split_rl_rows
from klearrl.metrics import Metrics
from klearrl.rl import collate, update
from klearrl.rollouts.base import Rollout, RolloutBatch
from klearrl.rollouts.collect import Source, collect

pytestmark = pytest.mark.train


def context(folder, **changes):
    recipe = TrainRecipe.model_validate(tiny.recipe(folder, [{**tiny.RL_STAGE, **changes}]))
    return recipe.stages[0], Context(recipe, folder, None, Metrics(folder, tensorboard=False), (), print)


def sampled(stage: RlStage, net, seed=0) -> RolloutBatch:
    """Fresh rollouts of the tiny policy on prompts of four different lengths."""
    prompts, answers = split_rl_rows(tiny.RL_ROWS)
    with MathJudge() as judge:
        origin = Source(prompts, answers, Order(12, seed, "rl"), judge, tiny.tokenizer(), seed, lambda _: None)
        return collect(stage, origin, net, 0, 0)


@pytest.mark.parametrize("zero_stage", [0, 3])
@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
def test_fresh_rollouts_have_a_ratio_of_1(tmp_path, temperature, zero_stage):
    """One prompt length a row: left padding must shift no position, and the temperature must be on both sides."""
    stage, about = context(tmp_path, prompts=8, mini_batches=1, temperature=temperature, micro_batch_size=5)
    trainer = tiny.trainer(tiny.policy(), zero_stage, total=5)
    batch = sampled(stage, trainer.inference_model())
    assert len({len(r.prompt_ids) for r in batch.rollouts if not r.dropped}) > 1
    numbers = update(stage, about, trainer, tiny.tokenizer(), batch, 0)
    assert numbers["mismatch"] < 1e-5 and numbers["kl"] < 1e-8
    assert numbers["high_pos"] == numbers["low_neg"] == 0
    assert numbers["tokens"] == sum(len(r.token_ids) for g in batch.groups() for r in g)


def plain_update(net, stage, batch, adamw, seed):
    """GPPO by its table of weights, one unpadded rollout at a time, in plain torch; how many tokens each cell has."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=adamw.lr, betas=adamw.betas, weight_decay=adamw.weight_decay)
    groups = batch.groups()
    random.Random(f"{seed}/{stage.name}/0").shuffle(groups)
    size = stage.prompts // stage.mini_batches
    cells = {"high_pos": 0, "low_neg": 0, "inside": 0, "right": 0}
    for first in range(0, len(groups), size):
        mini = groups[first : first + size]
        advantages = group_advantages([[r.reward for r in g] for g in mini])
        pairs = [(r, a) for g, row in zip(mini, advantages, strict=True) for r, a in zip(g, row, strict=True)]
        tokens = sum(len(r.token_ids) for r, _ in pairs)
        right = sum(len(r.token_ids) for r, _ in pairs if r.reward == 1.0)
        optimizer.zero_grad()
        for rollout, advantage in pairs:
            ids = torch.tensor([[*rollout.prompt_ids, *rollout.token_ids]])
            logits = net(input_ids=ids).logits[0, len(rollout.prompt_ids) - 1 : -1] / stage.temperature
            for t, token in enumerate(rollout.token_ids):
                logp = logits[t].log_softmax(-1)[token]
                ratio = math.exp(logp.item() - rollout.logprobs[t])
                weight, cell = ratio, "inside"
                if advantage > 0 and ratio > 1.28:
                    weight, cell = 1.28, "high_pos"
                if advantage < 0 and ratio < 0.8:
                    weight, cell = 0.8, "low_neg"
                cells[cell] += 1
                loss = -weight * advantage * logp / tokens
                if rollout.reward == 1.0:
                    cells["right"] += 1
                    loss = loss - 0.1 * logp / right
                loss.backward(retain_graph=True)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    return cells


@pytest.mark.parametrize("zero_stage", [0, 2])
@pytest.mark.parametrize(("micro", "minis", "temperature"), [(3, 2, 1.0), (16, 4, 0.7), (1, 1, 1.0)])
def test_an_update_equals_plain_gppo(tmp_path, micro, minis, temperature, zero_stage):
    """With stale log-probs, so that all cells of the clip occur; several micro-batches and mini-batches."""
    changes = {"micro_batch_size": micro, "mini_batches": minis, "temperature": temperature, "max_mismatch": 9.0}
    stage, about = context(tmp_path, **changes)
    fresh = sampled(stage, tiny.policy())
    noise = random.Random(1)
    stale = tuple(replace(r, logprobs=tuple(x + noise.uniform(-0.7, 0.7) for x in r.logprobs)) for r in fresh.rollouts)
    batch = RolloutBatch(stale, fresh.cursor, fresh.rounds)
    assert len(batch.groups()) == 4
    net = tiny.policy()
    cells = plain_update(net, stage, batch, stage.optimizer, about.recipe.seed)
    assert min(cells.values()) > 0, "each cell must occur"
    trainer = tiny.trainer(tiny.policy(), zero_stage, adamw=stage.optimizer)
    numbers = update(stage, about, trainer, tiny.tokenizer(), batch, 0)
    assert tiny.difference(tiny.weights(trainer.module), tiny.weights(net)) < 1e-6
    assert tiny.difference(tiny.weights(net), tiny.weights(tiny.policy())) > 1e-4
    assert numbers["updates"] == minis
    if minis == 1:
        assert numbers["high_pos"] * numbers["tokens"] == pytest.approx(cells["high_pos"])
        assert numbers["low_neg"] * numbers["tokens"] == pytest.approx(cells["low_neg"])


def rollout(group=0, tokens=(9, 1), reward=1.0, dropped="", finish=FinishReason.stop):
    logprobs = tuple(-1.0 for _ in tokens)
    return Rollout("p", group, (2, 4, 5), tokens, logprobs, "x", finish, Status.correct, reward, dropped)


def test_a_batch_without_a_signal_changes_nothing(tmp_path):
    stage, about = context(tmp_path)
    trainer = tiny.trainer(tiny.model())
    before = tiny.weights(trainer.module)
    batch = RolloutBatch(tuple(rollout(dropped="all_right") for _ in range(8)), 4, 4)
    assert update(stage, about, trainer, tiny.tokenizer(), batch, 0) == {"updates": 0}
    assert tiny.difference(before, tiny.weights(trainer.module)) == 0.0


def test_fewer_groups_than_asked_for_make_fewer_updates(tmp_path):
    stage, about = context(tmp_path, max_mismatch=9.0)  # 4 prompts, 2 a mini-batch
    batch = RolloutBatch(tuple(rollout(g, reward=float(i)) for g in range(3) for i in (0, 1)), 4, 4)
    trainer = tiny.trainer(tiny.model())
    numbers = update(stage, about, trainer, tiny.tokenizer(), batch, 0)
    assert numbers["updates"] == 2 and numbers["tokens"] == 12
    assert all(math.isfinite(v) for v in numbers.values())


def test_an_empty_micro_batch_counts_nothing():
    t = collate([], 0, torch.device("cpu"))
    assert t.ids.shape == (1, 2) and not t.mask.any() and t.advantage.tolist() == [0.0]


def test_positions_start_at_each_prompt():
    short, long = replace(rollout(), prompt_ids=(4,)), replace(rollout(), prompt_ids=(2, 4, 5, 6), token_ids=(9,))
    t = collate([(short, 1.0), (replace(long, logprobs=(-1.0,)), -1.0)], 0, torch.device("cpu"))
    assert t.ids.tolist() == [[0, 0, 0, 4, 9, 1], [2, 4, 5, 6, 9, 0]]
    assert t.positions.tolist() == [[0, 0, 0, 0, 1, 2], [0, 1, 2, 3, 4, 4]]
    assert t.attention.tolist() == [[0, 0, 0, 1, 1, 1], [1, 1, 1, 1, 1, 0]]
    assert t.mask.tolist() == [[True, True], [True, False]] and t.old_logp.tolist() == [[-1.0, -1.0], [-1.0, 0.0]]


@pytest.mark.parametrize("zero_stage", [0, 3])
def test_rollouts_of_other_weights_stop_the_run(tmp_path, zero_stage):
    """The engine samples from weights that were never synced: no silent training on them."""
    stage, about = context(tmp_path, max_mismatch=0.05)
    trainer = tiny.trainer(tiny.policy(), zero_stage)
    batch = sampled(stage, tiny.policy())
    update(stage, about, trainer, tiny.tokenizer(), batch, 0)  # the right weights pass
    other = tiny.trainer(tiny.model(seed=3), zero_stage)
    with pytest.raises(IncompleteError, match=r"differ by .* does not sample from the trained weights; .*step-00001"):
        update(stage, about, other, tiny.tokenizer(), batch, 0)


# Whole runs, in processes of their own


def start(folder, **changes):
    data = tiny.write_dataset(folder / "data", rl=changes.pop("rows", None))
    stages = [{**tiny.SFT_STAGE, "steps": 25, "save_every": 25}, {**tiny.RL_STAGE, **changes}]
    return tiny.write_recipe(folder / "recipe.yaml", tiny.recipe(data, stages))


def train(folder, **kwargs):
    return tiny.klearrl("train", folder / "recipe.yaml", "-o", folder / "run", **kwargs)


def engine_calls(run):
    return len(tiny.log_lines(run, "engine call"))


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight-rl")
    start(folder)
    done = train(folder)
    assert done.code == 0, done.text
    return folder / "run"


@pytest.mark.parametrize(
    ("fault", "calls_again", "steps_again"),
    [
        ("optimizer.step:26:kill", 0, 0),  # rollouts on disk, no update made
        ("optimizer.step:27:kill", 0, 1),  # between the two updates of the first batch
        ("optimizer.step:30:kill", 0, 1),  # the last update of all
        ("checkpoint.write:3:kill", 0, 2),
        ("half.metrics.jsonl:27:kill", 0, 2),
        ("rollout.call:2:kill", 1, 2),
    ],
)
def test_a_killed_run_ends_with_the_same_bytes(straight, tmp_path, fault, calls_again, steps_again):
    """Rollouts that lie on disk are used again; only a batch that was not yet written is sampled anew."""
    start(tmp_path)
    run = tmp_path / "run"
    assert train(tmp_path, fault=fault).code == -9
    done = train(tmp_path)
    assert done.code == 0, done.text
    assert tiny.difference(tiny.folder_weights(straight / "model"), tiny.folder_weights(run / "model")) == 0.0
    assert tiny.metrics(run) == tiny.metrics(straight)
    assert engine_calls(run) - engine_calls(straight) <= calls_again
    counted = [len(tiny.log_lines(r, "optimizer step: rl")) for r in (run, straight)]
    assert counted[0] - counted[1] <= steps_again
    files = [sorted((r / "stages" / "rl" / "rollouts").glob("*.parquet")) for r in (run, straight)]
    assert [pq.read_table(f).to_pylist() for f in files[0]] == [pq.read_table(f).to_pylist() for f in files[1]]


def test_resume_is_exact_when_checkpoints_are_rare(straight, tmp_path):
    """No checkpoint between: all three batches are trained again from disk, none is sampled again."""
    start(tmp_path, save_every=50)
    assert train(tmp_path, fault="optimizer.step:30:kill").code == -9
    assert train(tmp_path).code == 0
    assert tiny.difference(tiny.folder_weights(straight / "model"), tiny.folder_weights(tmp_path / "run/model")) == 0.0
    assert tiny.metrics(tmp_path / "run") == tiny.metrics(straight)
    assert engine_calls(tmp_path / "run") == engine_calls(straight)


def test_the_numbers_agree_with_the_rollouts(straight):
    rows = [row for row in tiny.metrics(straight) if row["stage"] == "rl"]
    assert [row["step"] for row in rows] == [1, 2, 3]
    for row in rows:
        batch = pq.read_table(straight / "stages" / "rl" / "rollouts" / f"step-{row['step']:05d}.parquet").to_pylist()
        assert row["reward"] == pytest.approx(sum(r["reward"] for r in batch) / len(batch))
        assert row["truncated"] == sum(r["finish_reason"] == "length" for r in batch) / len(batch)
        assert row["length_max"] == max(len(r["token_ids"]) for r in batch)
        assert row["tokens"] == sum(len(r["token_ids"]) for r in batch if not r["dropped"])
        assert row["groups_kept"] == len({r["group"] for r in batch if not r["dropped"]})
        assert row["mismatch"] < 1e-5 and row["updates"] == 2


@pytest.mark.parametrize(
    ("changes", "counted"),
    [
        ({"rows": [{**row, "answer": "77"} for row in tiny.RL_ROWS]}, "groups_all_wrong"),
        ({"max_tokens": 1}, "groups_all_wrong"),
        ({"max_tokens": 1, "mask_truncated": True}, None),
    ],
)
def test_a_run_without_any_signal_ends_well_and_changes_nothing(tmp_path, changes, counted):
    start(tmp_path, **changes, steps=2, max_rounds=2)
    done = train(tmp_path)
    assert done.code == 0, done.text
    rows = [row for row in tiny.metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert [row["updates"] for row in rows] == [0, 0]
    assert all(row["groups_kept"] == 0 and row["rounds"] == 2 for row in rows)
    if counted:
        assert [row[counted] for row in rows] == [8, 8]
    if "max_tokens" in changes:
        assert all(row["truncated"] > 0.9 and row["length_mean"] == 1.0 for row in rows)
    stages = tmp_path / "run" / "stages"
    before, after = (tiny.folder_weights(stages / name / "model") for name in ("sft", "rl"))
    assert tiny.difference(before, after) == 0.0


def test_the_reward_rises(tmp_path):
    """A policy that guesses among three learns which answer pays: the loop as a whole points uphill."""
    rows = [{**row, "answer": "2"} for row in tiny.RL_ROWS]
    start(tmp_path, rows=rows, steps=15, prompts=8, group_size=8, rollout_batch_size=64, micro_batch_size=64,
          save_every=15, optimizer={"lr": 5e-3})  # fmt: skip
    assert train(tmp_path).code == 0
    rewards = [row["reward"] for row in tiny.metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert sum(rewards[:2]) / 2 < 0.4
    assert sum(rewards[-2:]) / 2 > 0.7, rewards
