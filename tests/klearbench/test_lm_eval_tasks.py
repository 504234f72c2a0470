"""Our suites as tasks of lm-eval: the same scores as `klearbench eval`, judge errors left out, no answer in sight."""

from __future__ import annotations

import json

import pytest
import yaml
from tools import ToyEngine, tiny, write_jsonl

from klearbench.engines.base import Sampling
from klearbench.errors import ConfigError
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.integrations.lm_eval import task_folder
from klearbench.store import read_records
from klearbench.suites import puzzles
from klearbench.suites.registry import SUITES
from klearbench.suites.suitefile import load_suite_file
from klearbench.types import Sample, Verdict

pytest.importorskip("lm_eval")

SECRET = "314159265"
SPECIAL = {"<unk>", "<pad>", "<|im_start|>", "<|im_end|>"}
GREEDY = {"max_gen_toks": 24, "do_sample": False, "temperature": 0.0}


def harness(model, task, *, folder=None, klear=None, **options):
    """What lm-eval itself says of a task: its results and its logged samples."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_path=folder or task_folder(), include_defaults=False, metadata={"klear": klear or {}})
    said = lm_eval.simple_evaluate(model, tasks=[task], task_manager=manager, bootstrap_iters=0, **options)
    return said["results"][task], said["samples"][task]


def scripted(reply):
    """A model of lm-eval that answers with `reply(text of the prompt, how often it was asked)`."""
    from lm_eval.api.model import LM

    class Scripted(LM):
        def generate_until(self, requests, disable_tqdm=False):
            seen: dict[str, int] = {}
            texts = []
            for request in requests:
                text = request.args[0]
                seen[text] = seen.get(text, -1) + 1
                texts.append(reply(text, seen[text]))
            return texts

        def loglikelihood(self, requests, disable_tqdm=False):
            raise AssertionError("not asked")

        loglikelihood_rolling = loglikelihood

    return Scripted()


def answer(text: str, index: int) -> str:
    """Right in every second puzzle and sample; no answer in one puzzle of seven, an open thought in some."""
    question = text.strip()
    place = sum(map(ord, question))
    if place % 7 == 0:
        return "I can't say."
    if place % 5 == 0:
        return "<think> let me see"
    return f"<think> hm </think> \\boxed{{{puzzles.solve(question) + (place + index) % 2}}}"


def test_every_suite_is_a_task_and_every_task_a_suite():
    tasks = [
        yaml.load(path.read_text().replace("!function", ""), yaml.SafeLoader) for path in task_folder().glob("*.yaml")
    ]
    assert {task["suite"]: task["task"] for task in tasks} == {n: "klear_" + n.replace("-", "_") for n in SUITES}


def test_the_score_is_that_of_klearbench_eval_on_the_same_completions(tmp_path):
    results, logged = harness(scripted(answer), "klear_puzzles", klear={"samples": 4}, limit=40)
    engine = ToyEngine(lambda request: answer(request.prompt[0]["content"], request.place[1]))
    (score,) = evaluate(tmp_path / "run", [puzzles.load()], engine, EvalOptions(samples=4, limit=40))
    assert 0 < score.avg < 100 and 0 < score.truncated_share < 1
    assert results["acc,klear"] == pytest.approx(score.avg / 100, abs=1e-12)
    assert results["truncated,klear"] == pytest.approx(score.truncated_share, abs=1e-12)
    assert results["judge_errors,klear"] == 0
    ours = {v.key: (v.status, v.extracted) for v in read_records(tmp_path / "run" / "verdicts.jsonl", Verdict)}
    theirs = [row for sample in logged for row in sample["filtered_resps"][0]]
    assert {("puzzles", r["problem_id"], r["sample_index"]): (r["status"], r["extracted"]) for r in theirs} == ours


@pytest.mark.parametrize("template", [True, False])
def test_a_real_model_completes_the_same_text_in_both(tmp_path, template):
    from klearbench.engines.hf import load_engine

    model = tiny(tmp_path / "model", context=256, template=template)
    arguments = {"pretrained": str(model), "dtype": "float32"}
    options = {"model_args": arguments, "batch_size": 4, "device": "cpu", "gen_kwargs": GREEDY}
    results, logged = harness("hf", "klear_puzzles", limit=8, apply_chat_template=template, **options)
    engine = load_engine(str(model), batch_size=4, dtype="float32")
    greedy = EvalOptions(limit=8, sampling=Sampling(0.0, 1.0, 0, 24))
    (score,) = evaluate(tmp_path / "run", [puzzles.load()], engine, greedy)
    ours = [sample.completion for sample in read_records(tmp_path / "run" / "samples.jsonl", Sample)]
    shown = [[word for word in text.split() if word not in SPECIAL] for text in ours]  # lm-eval leaves these out
    assert [sample["resps"][0][0].split() for sample in logged] == shown
    assert results["acc,klear"] == score.avg / 100


def test_programs_are_run_in_our_sandbox(tmp_path):
    def program(text, index):
        return "```python\ndef f(a, b):\n    return 0\n```" if index else "no program"

    results, logged = harness(scripted(program), "klear_puzzles_code", klear={"samples": 2}, limit=2)
    assert [[row["status"] for row in sample["filtered_resps"][0]] for sample in logged] == [
        ["no_answer", "wrong_answer"]
    ] * 2
    assert results["acc,klear"] == 0


def test_judge_errors_are_counted_and_are_no_zeros():
    import lm_eval  # noqa: F401  # its registries have to be complete before a task is made

    from klearbench.integrations.lm_eval_task import KlearTask

    task = KlearTask({"task": "t", "suite": "puzzles"})
    rows = [{"status": "correct"}, {"status": "judge_error"}, {"status": "wrong_answer"}, {"status": "truncated"}]
    some = task.process_results({}, [rows])
    none = task.process_results({}, [[{"status": "judge_error"}] * 2])
    assert some == {"judge_errors": 1, "acc": 1 / 3, "truncated": [1, 3]}
    assert none == {"judge_errors": 2}  # no "acc": the document is in no mean
    together = task.aggregation()
    assert together["judge_errors"]([1, 2]) == 3
    assert together["truncated"]([[1, 3], [1, 1]]) == 0.5


def test_an_answer_is_in_no_document_prompt_or_log(tmp_path):
    rows = [{"id": str(i), "problem": f"How much is {i}?", "answer": SECRET} for i in range(3)]
    file = write_jsonl(tmp_path / "own.jsonl", rows)
    where = "class: !function klearbench.integrations.lm_eval_task.KlearTask"
    (tmp_path / "own.yaml").write_text(f"task: klear_own\nsuite: {file}\n{where}\n")
    results, logged = harness(scripted(lambda *_: "\\boxed{2}"), "klear_own", folder=tmp_path)
    assert results["acc,klear"] == 0
    assert SECRET in str(load_suite_file(file).answers) and SECRET not in json.dumps(logged)


def test_a_system_instruction_takes_the_place_of_the_suites_own():
    from klearbench.integrations.lm_eval_task import KlearTask

    task = KlearTask({"task": "t", "suite": "puzzles"})
    doc = {"id": "x", "prompt": [{"role": "system", "content": "Old."}, {"role": "user", "content": "1 max 2 = ?"}]}
    assert task.fewshot_context(doc, 0) == "Old.\n\n1 max 2 = ?\n"
    assert task.fewshot_context(doc, 0, system_instruction="New.") == "New.\n\n1 max 2 = ?\n"
    turns = task.fewshot_context(doc, 0, apply_chat_template=True, chat_template=lambda messages: str(messages))
    assert turns == str(doc["prompt"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sample": 4}, "unknown key 'sample'; did you mean 'samples'?"),
        ({"samples": 0}, "samples is 0"),
        ({"samples": "4"}, "samples is '4'"),
        ({"errata": 1}, "errata is 1"),
    ],
)
def test_wrong_metadata_is_refused(given, said):
    from klearbench.integrations.lm_eval_task import read_options

    with pytest.raises(ConfigError) as caught:
        read_options(given)
    assert said in str(caught.value)
