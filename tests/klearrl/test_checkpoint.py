"""Checkpoints: whole or not there, pruned, exported."""

from __future__ import annotations

import errno
import json
import os
import subprocess

import pytest
import tiny
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from klearbench.errors import DataError, DiskFull, RunConflict, UsageError
from klearrl import checkpoint
from klearrl.checkpoint import Checkpoints, export, publish

pytestmark = pytest.mark.train

IDS = torch.randint(4, 12, (4, 7), generator=torch.Generator().manual_seed(3))


def trained(zero_stage=0, bf16=False, steps=2):
    """A trainer some steps away from where it began."""
    trainer = tiny.trainer(tiny.model(), zero_stage, bf16)
    for step in range(steps):
        trainer.step((trainer(input_ids=IDS, labels=IDS, use_cache=False).loss for _ in range(1)), step)
    return trainer


@pytest.fixture
def stage(tmp_path):
    return Checkpoints(tmp_path / "checkpoints", keep_last=2)


def test_last_and_best_are_links_and_old_ones_go(stage):
    trainer, tokenizer = trained(), tiny.tokenizer()
    for step in (1, 2, 3, 10, 11):
        stage.save(step, trainer, tokenizer, {"cursor": 7 * step})
        assert os.readlink(stage.folder / "last") == f"step-{step}"
        if step == 2:
            stage.mark_best(2)
    assert stage.steps() == [2, 10, 11], "the best, and the last two by number, not by name"
    assert sorted(p.name for p in stage.folder.iterdir()) == ["best", "last", "step-10", "step-11", "step-2"]
    stage.mark_best(10)
    stage.save(12, trainer, tokenizer, {})
    assert stage.steps() == [10, 11, 12] and os.readlink(stage.folder / "best") == "step-10"
    assert stage.load(11, trainer)["cursor"] == 77
    assert stage.last() == 12


def test_what_is_not_whole_is_no_checkpoint(stage):
    trainer = trained()
    stage.save(3, trainer, tiny.tokenizer(), {})
    (stage.folder / ".step-4.tmp").mkdir()
    (stage.folder / "step-5").mkdir()
    (stage.folder / "step-x").mkdir()
    assert stage.last() == 3
    stage.save(4, trainer, tiny.tokenizer(), {})
    assert stage.steps() == [3, 4] and not (stage.folder / "step-5").exists()


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_another_failure_is_not_taken_for_a_full_disk(stage, monkeypatch):
    trainer = trained()
    monkeypatch.setattr(torch, "save", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("something else")))
    with pytest.raises(RuntimeError, match="something else"):
        stage.save(1, trainer, tiny.tokenizer(), {})
    assert list(stage.folder.iterdir()) == []


@pytest.mark.parametrize("where", ["torch.save", "skeleton", "state"])
def test_a_full_disk_keeps_what_was_there(stage, monkeypatch, where):
    trainer, tokenizer = trained(), tiny.tokenizer()
    stage.save(1, trainer, tokenizer, {})
    target, name = {
        "torch.save": (torch, "save"),
        "skeleton": (checkpoint, "save_skeleton"),
        "state": (checkpoint, "write_atomic"),
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(target, name, full)
        with pytest.raises(DiskFull, match="no space left on the disk; what was finished is kept"):
            stage.save(2, trainer, tokenizer, {})
    assert [p.name for p in stage.folder.iterdir() if p.name.startswith(".")] == []
    assert stage.steps() == [1] and os.readlink(stage.folder / "last") == "step-1"
    stage.save(2, trainer, tokenizer, {})
    assert stage.steps() == [1, 2]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 400 KiB, to be really filled."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", place], capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("zero_stage", [0, 2])
def test_a_disk_that_is_really_full(small_disk, zero_stage):
    """Neither torch nor safetensors says ENOSPC by an OSError of their own in every case."""
    trainer, tokenizer = trained(zero_stage), tiny.tokenizer()
    stage = Checkpoints(small_disk / "checkpoints", keep_last=50)
    with pytest.raises(DiskFull):
        for step in range(1, 50):
            stage.save(step, trainer, tokenizer, {})
    kept = stage.steps()
    assert kept and kept == list(range(1, kept[-1] + 1))
    assert [p.name for p in stage.folder.iterdir() if p.name.startswith(".")] == []
    assert stage.load(kept[-1], trainer)["step"] == kept[-1]
    with pytest.raises(DiskFull):
        for n in range(20):
            publish(lambda folder: checkpoint.save_model(
                trainer.module, trainer.module.state_dict(), tokenizer, folder), small_disk / f"model{n}")  # fmt: skip
    assert not [p for p in small_disk.iterdir() if p.name.startswith(".")]


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
def test_an_export_gives_the_trained_model(stage, tmp_path, zero_stage, bf16):
    trainer = trained(zero_stage, bf16)
    stage.save(2, trainer, tiny.tokenizer(), {})
    export(stage.folder / "last", tmp_path / "out")
    opened = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert opened.dtype == (torch.bfloat16 if bf16 else torch.float32)
    model = trainer.inference_model().eval()
    with torch.no_grad():
        assert torch.equal(opened(IDS).logits, model(IDS).logits)
    words = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert words.chat_template == tiny.tokenizer().chat_template
    config = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert config["eos_token_id"] == words.eos_token_id
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoints", "out"], "no temporary folder is left"


def test_an_untied_head_is_exported_too(stage, tmp_path):
    net = tiny.model()
    net.config.tie_word_embeddings = False
    net = type(net)(net.config)
    trainer = tiny.trainer(net)
    trainer.step([trainer(input_ids=IDS, labels=IDS, use_cache=False).loss], 0)
    stage.save(1, trainer, tiny.tokenizer(), {})
    export(stage.path(1), tmp_path / "out")
    opened = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    with torch.no_grad():
        assert torch.equal(opened(IDS).logits, net.eval()(IDS).logits)
    assert not torch.equal(opened.lm_head.weight, opened.model.embed_tokens.weight)


@pytest.mark.parametrize("zero_stage", [0, 3])
def test_the_generation_config_of_the_start_is_kept_but_for_the_end_of_turn(stage, tmp_path, zero_stage):
    net = tiny.model()
    net.generation_config.eos_token_id = [1, 5]
    net.generation_config.update(do_sample=True, top_k=7)
    trainer = tiny.trainer(net, zero_stage)
    assert trainer.inference_model().generation_config.eos_token_id == [1, 5], "rollouts stop where the model says"
    stage.save(1, trainer, tiny.tokenizer(), {})
    export(stage.path(1), tmp_path / "out")
    config = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert config["top_k"] == 7 and config["eos_token_id"] == tiny.tokenizer().eos_token_id


def test_export_refuses_what_it_can_t_use(stage, tmp_path):
    with pytest.raises(DataError, match="is no checkpoint"):
        export(tmp_path, tmp_path / "out")
    stage.save(1, trained(), tiny.tokenizer(), {})
    (tmp_path / "out").mkdir()
    with pytest.raises(UsageError, match="exists; choose another -o"):
        export(stage.path(1), tmp_path / "out")


def test_the_export_command(stage, tmp_path):
    stage.save(1, trained(), tiny.tokenizer(), {})
    done = tiny.klearrl("export", stage.folder / "last", "-o", tmp_path / "out")
    assert (done.code, done.text) == (0, f"model: {tmp_path / 'out'}\n")
    for checkpoint_, message in ((stage.folder / "last", "exists; choose another -o"), (tmp_path, "is no checkpoint")):
        done = tiny.klearrl("export", checkpoint_, "-o", tmp_path / "out")
        assert done.code == 2 and message in done.text and len(done.text.splitlines()) == 1


@pytest.mark.parametrize("zero_stage", [0, 1, 3])
def test_another_number_of_ranks_is_refused_where_the_state_is_spread(stage, zero_stage):
    trainer = trained(zero_stage)
    stage.save(1, trainer, tiny.tokenizer(), {})
    state = stage.path(1) / "state.json"
    state.write_text(json.dumps(json.loads(state.read_text()) | {"ranks": 2}))
    if zero_stage == 0:
        assert stage.load(1, trainer)["step"] == 1
    else:
        with pytest.raises(RunConflict, match="was written by 2 ranks, this command has 1"):
            stage.load(1, trainer)
