"""Two gloo ranks against one: gradients at every ZeRO stage, SFT and RL runs, and who writes what.

Sampling on two ranks cuts the rollouts into other batches, and floating point makes slightly other logits of another
batch shape. With one sequence an engine call the shapes are equal, so that the same tokens are sampled.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import tiny
import torch

from klearrl.losses import lm_loss, token_logprobs

pytestmark = pytest.mark.train

LENGTHS = (4, 31)  # 3 and 30 label tokens
ROWS = [torch.randint(4, 12, (1, n), generator=torch.Generator().manual_seed(n)) for n in LENGTHS]


def step_losses(trainer, rows, micro_batches):
    """A rank's part: its rows, then nothing, as often as the other rank has micro-batches."""
    for i in range(micro_batches):
        ids = rows[i] if i < len(rows) else torch.zeros(1, 2, dtype=torch.long)
        keep = torch.ones_like(ids[:, 1:]) if i < len(rows) else torch.zeros_like(ids[:, 1:])
        logits = trainer(input_ids=ids, use_cache=False).logits[:, :-1]
        yield lm_loss(token_logprobs(logits, ids[:, 1:]), keep, denominator=33)


def uneven_steps(out: str) -> None:
    """Two steps at each ZeRO stage: rank 0 has 3 label tokens, rank 1 has 30; then rank 1 has all and rank 0 none."""
    from klearrl import distributed

    distributed.setup()
    rank, world = distributed.rank(), distributed.world_size()
    results = {}
    for stage in range(4):
        trainer = tiny.trainer(tiny.model(), stage)
        mine = ROWS if world == 1 else ROWS[rank : rank + 1]
        first = trainer.step(step_losses(trainer, mine, 3 - world), 0)
        mine = ROWS if world == 1 or rank == 1 else []
        second = trainer.step(step_losses(trainer, mine, 2), 1)
        total = distributed.total({"loss": first["loss"]})["loss"]
        norms = (first["grad_norm"], second["grad_norm"])
        results[stage] = (tiny.weights(trainer.inference_model()), norms, total)
    torch.save(results, f"{out}/{world}-{rank}.pt")


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    out = tmp_path_factory.mktemp("uneven")
    for ranks in (1, 2):
        done = tiny.spawn(uneven_steps, (str(out),), ranks)
        assert done.code == 0, done.text
    return {name: torch.load(out / f"{name}.pt") for name in ("1-0", "2-0", "2-1")}


@pytest.mark.parametrize("zero_stage", range(4))
def test_3_and_30_label_tokens_on_two_ranks_equal_one_process(uneven, zero_stage):
    """Means of means would weigh each of the 3 tokens ten times as much."""
    wanted, norms, loss = uneven["1-0"][zero_stage]
    for name in ("2-0", "2-1"):
        got, got_norms, got_loss = uneven[name][zero_stage]
        assert got_norms == pytest.approx(norms, rel=1e-5)
        assert got_loss == pytest.approx(loss, rel=1e-6)
        assert tiny.difference(got, wanted) < 1e-6


def run(folder: Path, stages: list[dict], ranks: int, zero_stage: int = 0, fault: str = "") -> tiny.Done:
    data = tiny.write_dataset(folder / "data")
    recipe = tiny.recipe(data, stages, deepspeed={"zero_stage": zero_stage})
    path = tiny.write_recipe(folder / "recipe.yaml", recipe)
    return tiny.klearrl("train", path, "-o", folder / "run", ranks=ranks, fault=fault)


def numbers(row: dict) -> dict:
    return {name: value for name, value in row.items() if name != "stage"}


SFT = {**tiny.SFT_STAGE, "batch_size": 7, "micro_batch_size": 2, "steps": 6, "optimizer": {"lr": 3e-3}}


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one-rank")
    done = run(folder, [SFT], 1)
    assert done.code == 0, done.text
    return folder / "run"


@pytest.mark.parametrize("zero_stage", [0, 2, 3])
def test_sft_on_two_ranks_equals_one(one_rank, tmp_path, zero_stage):
    """Seven rows a step: one rank has four of them, the other three and an empty place."""
    done = run(tmp_path, [SFT], 2, zero_stage)
    assert done.code == 0, done.text
    wanted, got = (tiny.folder_weights(r / "model") for r in (one_rank, tmp_path / "run"))
    assert tiny.difference(wanted, got) < 1e-5
    for a, b in zip(tiny.metrics(one_rank), tiny.metrics(tmp_path / "run"), strict=True):
        assert numbers(a) == pytest.approx(numbers(b), rel=1e-4)
    assert len(tiny.metrics(tmp_path / "run")) == 6, "one rank writes"
    assert len(tiny.log_lines(tmp_path / "run", "optimizer step")) == 6
    assert done.text.count("optimizer steps x") == done.text.count("model:") == 1, "one rank speaks"


def test_a_checkpoint_of_two_zero_3_ranks_is_exported_whole(tmp_path):
    """No weight of size 0, and the logits of the model that the run left."""
    from transformers import AutoModelForCausalLM

    assert run(tmp_path, [{**SFT, "steps": 2}], 2, 3).code == 0
    last = tmp_path / "run" / "stages" / "sft" / "checkpoints" / "last"
    assert tiny.klearrl("export", last, "-o", tmp_path / "out").code == 0
    ids = torch.tensor([[4, 5, 6, 7, 8]])
    a, b = (AutoModelForCausalLM.from_pretrained(p) for p in (tmp_path / "out", tmp_path / "run" / "model"))
    with torch.no_grad():
        assert torch.equal(a(ids).logits, b(ids).logits)
    assert min(p.numel() for p in a.parameters()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("zero_stage", [0, 2])
def test_two_ranks_resume_bit_by_bit(tmp_path, zero_stage):
    folders = [tmp_path / "straight", tmp_path / "killed"]
    for folder, fault in zip(folders, ("", "optimizer.step:4:kill"), strict=True):
        folder.mkdir()
        if fault:
            assert run(folder, [SFT], 2, zero_stage, fault).code == -9
        done = run(folder, [SFT], 2, zero_stage)
        assert done.code == 0, done.text
    wanted, got = (tiny.folder_weights(f / "run" / "model") for f in folders)
    assert tiny.difference(wanted, got) == 0.0
    assert tiny.metrics(folders[0] / "run") == tiny.metrics(folders[1] / "run")


def test_a_run_of_two_ranks_does_not_go_on_with_one(tmp_path):
    assert run(tmp_path, [SFT], 2, 2, "optimizer.step:4:kill").code == -9
    done = run(tmp_path, [SFT], 1, 2)
    assert done.code == 2 and "was written by 2 ranks, this command has 1" in done.text


RL = {**tiny.RL_STAGE, "steps": 2, "rollout_batch_size": 1, "micro_batch_size": 3, "optimizer": {"lr": 1e-3}}


def test_rl_on_two_ranks_equals_one(tmp_path):
    stages = [{**tiny.SFT_STAGE, "steps": 25, "save_every": 25, "optimizer": {"lr": 3e-3}}, RL]
    folders = [tmp_path / "one", tmp_path / "two"]
    for ranks, folder in enumerate(folders, start=1):
        folder.mkdir()
        done = run(folder, stages, ranks)
        assert done.code == 0, done.text
    places = [f / "run" / "stages" / "rl" / "rollouts" for f in folders]
    for file in ("step-00001.parquet", "step-00002.parquet"):
        one, two = (pq.read_table(p / file).to_pylist() for p in places)
        assert [(r["group"], r["token_ids"], r["reward"], r["dropped"]) for r in one] == [
            (r["group"], r["token_ids"], r["reward"], r["dropped"]) for r in two
        ], "another sample was drawn: the comparison of weights would mean nothing"
    wanted, got = (tiny.folder_weights(f / "run" / "model") for f in folders)
    assert tiny.difference(wanted, got) < 1e-5
    for a, b in zip(*(tiny.metrics(f / "run") for f in folders), strict=True):
        assert numbers(a) == pytest.approx(numbers(b), rel=1e-3, abs=1e-5)
    assert sum(row["updates"] for row in tiny.metrics(folders[0] / "run") if row["stage"] == "rl") > 0


def test_evaluation_on_two_ranks(tmp_path):
    """Rank 0 evaluates; the other waits, also in a second run that finds the evaluation done."""
    data = tiny.write_dataset(tmp_path / "data")
    evaluation = {"suites": ["puzzles"], "samples": 1, "limit": 4, "max_tokens": 4}
    stage = {**SFT, "steps": 2, "eval_every": 1}
    path = tiny.write_recipe(tmp_path / "r.yaml", tiny.recipe(data, [stage], evaluation=evaluation))
    for fault in ("append.samples.jsonl:6:kill", "", ""):
        done = tiny.klearrl("train", path, "-o", tmp_path / "run", ranks=2, fault=fault)
        assert done.code == (-9 if fault else 0), done.text
    assert sorted(p.name for p in (tmp_path / "run" / "evals").iterdir()) == ["sft-1", "sft-2"]
    assert "sft: finished (2 steps)" in done.text
