"""SFT: what it learns, and that an interrupted run ends where a straight one does."""

from __future__ import annotations

import json

import pytest
import tiny
import torch

pytestmark = pytest.mark.train

STEPS = 8  # of 8 rows each, over 36 rows: the first epoch ends within step 5
BOUNDARY = {"batch_size": 12, "steps": 6}  # an epoch is exactly three steps


def start(folder, **changes):
    data = tiny.write_dataset(folder / "data")
    stage = {**tiny.SFT_STAGE, **changes}
    return tiny.write_recipe(folder / "recipe.yaml", tiny.recipe(data, [stage]))


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight")
    done = tiny.klearrl("train", start(folder), "-o", folder / "run")
    assert done.code == 0, done.text
    return folder


def same_run(straight, run):
    assert tiny.difference(tiny.folder_weights(straight / "model"), tiny.folder_weights(run / "model")) == 0.0
    assert tiny.metrics(run) == tiny.metrics(straight)


def test_the_loop_equals_plain_torch(straight):
    """The same rows, order and schedule in a loop of ten lines."""
    from klearrl.data import Order, tokenize_sft

    examples, _ = tokenize_sft(tiny.SFT_ROWS, tiny.tokenizer(), 32)
    order, net = Order(36, 5, "sft"), tiny.model(seed=5)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.0)
    seen = []
    for step in range(STEPS):
        batch = [examples[i] for i in order.take(8 * step, 8)]
        nll = [
            torch.nn.functional.cross_entropy(
                net(torch.tensor([e.ids])).logits[0, e.prompt_length - 1 : -1],
                torch.tensor(e.ids[e.prompt_length :]),
                reduction="sum",
            )
            for e in batch
        ]
        loss = sum(nll) / sum(e.label_tokens for e in batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = 1e-2 * min(1.0, (step + 1) / 2)
        optimizer.step()
        seen.append(loss.item())
    assert [row["loss"] for row in tiny.metrics(straight / "run")] == pytest.approx(seen, rel=1e-5)
    assert tiny.difference(tiny.weights(net), tiny.folder_weights(straight / "run" / "model")) < 1e-5
    assert seen[-1] < seen[0] - 0.3


def test_the_numbers_are_kept(straight):
    rows = tiny.metrics(straight / "run")
    assert [(row["stage"], row["step"]) for row in rows] == [("sft", n) for n in range(1, STEPS + 1)]
    assert [row["lr"] for row in rows] == [0.005] + [0.01] * (STEPS - 1)
    assert all(row["label_tokens"] == 8 * 5 for row in rows), "four words and the end of turn a row"
    assert all(row["grad_norm"] > 0 for row in rows)
    lines = tiny.log_lines(straight / "run", "optimizer step")
    assert lines == [f"optimizer step: sft {n}" for n in range(1, STEPS + 1)]


@pytest.mark.parametrize(
    ("fault", "made"),
    [
        ("optimizer.step:1:kill", 0),
        ("optimizer.step:5:kill", 4),
        ("checkpoint.write:3:kill", 3),
        ("checkpoint.write:8:kill", 8),
        ("half.metrics.jsonl:4:kill", 4),
    ],
)
def test_a_killed_run_ends_with_the_same_bytes(straight, tmp_path, fault, made):
    recipe = start(tmp_path)
    assert tiny.klearrl("train", recipe, "-o", tmp_path / "run", fault=fault).code == -9
    assert len(tiny.log_lines(tmp_path / "run", "optimizer step")) == made
    assert not (tmp_path / "run" / "model").exists()
    done = tiny.klearrl("train", recipe, "-o", tmp_path / "run")
    assert done.code == 0, done.text
    same_run(straight / "run", tmp_path / "run")
    again = len(tiny.log_lines(tmp_path / "run", "optimizer step")) - made
    assert again in (STEPS - made, STEPS - made + 1), "the missing steps, and one more at most"


@pytest.mark.parametrize("fault", ["optimizer.step:4:kill", "checkpoint.write:2:kill"])
def test_a_resume_at_an_epoch_s_end_goes_on(tmp_path, fault):
    """Killed with a checkpoint exactly at the end of the first epoch: the second is trained, no row twice."""
    runs = {}
    for name, at in (("straight", ""), ("killed", fault)):
        (tmp_path / name).mkdir()
        recipe = start(tmp_path / name, **BOUNDARY, save_every=3)
        for attempt in [at, ""] if at else [""]:
            done = tiny.klearrl("train", recipe, "-o", tmp_path / name / "run", fault=attempt)
            assert done.code == (-9 if attempt else 0), done.text
        runs[name] = tmp_path / name / "run"
    same_run(runs["straight"], runs["killed"])
    assert len(tiny.metrics(runs["killed"])) == 6


@pytest.mark.parametrize(("signal", "code"), [("term", 143), ("int", 130)])
def test_a_signal_ends_with_its_exit_code_and_the_same_command_goes_on(straight, tmp_path, signal, code):
    recipe = start(tmp_path)
    done = tiny.klearrl("train", recipe, "-o", tmp_path / "run", fault=f"optimizer.step:3:{signal}")
    assert done.code == code
    assert "the same command goes on from here" in done.text.splitlines()[-1]
    assert tiny.klearrl("train", recipe, "-o", tmp_path / "run").code == 0
    same_run(straight / "run", tmp_path / "run")


def test_micro_batches_and_saving_don_t_change_the_result(straight, tmp_path):
    recipe = start(tmp_path, micro_batch_size=3, save_every=50)
    assert tiny.klearrl("train", recipe, "-o", tmp_path / "run").code == 0
    wanted, got = (tiny.folder_weights(r / "model") for r in (straight / "run", tmp_path / "run"))
    assert tiny.difference(wanted, got) < 1e-5


def test_rows_that_are_left_out_are_said(tmp_path):
    done = tiny.klearrl("train", start(tmp_path, max_length=14, steps=1), "-o", tmp_path / "run")
    assert done.code == 0
    longer = sum(len(row["messages"][0]["content"].split()) > 4 for row in tiny.SFT_ROWS)
    assert 0 < longer < 36
    assert f"epochs of {36 - longer} rows, {longer} rows longer than 14 tokens left out" in done.text


def test_the_batch_arithmetic_is_said(straight, tmp_path):
    done = tiny.klearrl("train", start(tmp_path, steps=9), "-o", tmp_path / "run")
    line = next(line for line in done.text.splitlines() if "optimizer steps x" in line)
    assert line == "sft: 9 optimizer steps x 8 sequences (1 ranks x 2 micro-batches of 4) = 2.00 epochs of 36 rows"


def test_tensorboard_holds_the_same_numbers(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    recipe = start(tmp_path)
    run = tmp_path / "run"
    on = ("--set", "tensorboard=true")
    assert tiny.klearrl("train", recipe, "-o", run, *on, fault="optimizer.step:6:kill").code == -9
    assert tiny.klearrl("train", recipe, "-o", run, *on).code == 0
    board = EventAccumulator(str(run / "tensorboard" / "sft"))
    board.Reload()
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for name in ("loss", "grad_norm", "lr", "label_tokens", "seconds"):
        shown = {event.step: event.value for event in board.Scalars(name)}
        assert shown == {row["step"]: pytest.approx(row[name], rel=1e-6) for row in rows}
