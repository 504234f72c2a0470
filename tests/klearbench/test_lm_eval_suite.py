"""lm-eval tasks as suites of `klearbench eval`: the scores of lm-eval itself, in our run folder, on our engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from tools import CHAINS, ToyEngine, jsonl, ok, result, snapshot, tiny, write_jsonl

from klearbench.engines.base import Request, Sampling
from klearbench.errors import IncompleteError, UsageError
from klearbench.evaluate import EvalOptions, evaluate
from klearbench.integrations import lm_eval_worker
from klearbench.integrations.lm_eval_docs import Spec, after_thought
from klearbench.store import read_records
from klearbench.suites.registry import load_suite
from klearbench.types import FinishReason, Sample, Verdict

pytest.importorskip("lm_eval")

SPECIAL = {"<unk>", "<pad>", "<|im_start|>", "<|im_end|>"}
"""Tokens that lm-eval leaves out of a text."""
SECRET = "canary-271828"
RAW = "{% for message in messages %}{{ message.content }}{% endfor %}"
QUESTIONS = [f"{a} max {b} min {c} min {d} = ?" for a, b, c, d in ("7349", "1235", "0962", "8814", "5527", "3071")]

HEAD = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{train: {folder}/train.jsonl, test: {folder}/{name}.jsonl}}}}
fewshot_split: train
training_split: train
test_split: test
doc_to_text: question
fewshot_delimiter: " ; "
target_delimiter: " ~ "
"""
WRITES = """num_fewshot: 2
doc_to_target: answer
generation_kwargs: {until: [";"], max_gen_toks: 12}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
filter_list:
  - {name: digit, filter: [{function: regex, regex_pattern: '(\\d)'}, {function: take_first}]}
  - {name: all, filter: [{function: take_first}]}
"""
CHOOSES = """output_type: multiple_choice
num_fewshot: 1
doc_to_choice: ["0", "3", "7", "9"]
doc_to_target: gold
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""
HANGS = """doc_to_target: answer
process_results: !function own.process
metric_list: [{metric: good, aggregation: mean, higher_is_better: true}]
generation_kwargs: {until: [], max_gen_toks: 12}
"""
OWN = """import time


def process(doc, results):
    if results[0] == "hang":
        time.sleep(60)
    print("noise")
    return {"good": {"right": 1, "half": 0.5}.get(results[0], 0), "long": len(results[0])}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[SimpleNamespace]:
    """A folder of tasks with local data, and a tiny model."""
    folder = tmp_path_factory.mktemp("world")
    shots = [{"question": f"{chain} = ?", "answer": str(i), "gold": i, "hidden": ""} for i, chain in enumerate(CHAINS)]
    write_jsonl(folder / "train.jsonl", shots)
    for name in ("writes", "other", "chooses", "hangs"):
        rows = enumerate(QUESTIONS)
        docs = [{"question": q, "answer": str(i % 2 * 7), "gold": i % 4, "hidden": SECRET} for i, q in rows]
        write_jsonl(folder / f"{name}.jsonl", docs)
    for name, body in {"writes": WRITES, "other": WRITES, "chooses": CHOOSES, "hangs": HANGS}.items():
        (folder / f"{name}.yaml").write_text(HEAD.format(name=name, folder=folder) + body)
    (folder / "own.py").write_text(OWN)
    (folder / "raw.jinja").write_text(RAW)
    yield SimpleNamespace(folder=folder, model=tiny(folder / "model", context=256))


def task(world, name: str, prompt: str = "ours"):
    return load_suite(f"lm_eval:{name}", world.folder, prompt=prompt)


def harness(world, name: str, chat: bool):
    """What lm-eval says itself: the metrics of every document, with thoughts taken away as we do."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    said = lm_eval.simple_evaluate(
        "hf",
        model_args={"pretrained": str(world.model), "dtype": "float32", "think_end_token": "</think>"},
        tasks=[name],
        task_manager=TaskManager(include_path=str(world.folder), include_defaults=False),
        apply_chat_template=chat,
        fewshot_as_multiturn=chat,
        batch_size=1,
        device="cpu",
        bootstrap_iters=0,
    )
    return said["results"][name], said["samples"][name]


def learn_answers(world, logged) -> None:
    """Make some answers right: those that the model gave to every second document."""
    said = [row["filtered_resps"][0] for row in logged if row["filter"] == "digit"]
    rows = jsonl(world.folder / "writes.jsonl")
    for number, (row, given) in enumerate(zip(rows, said, strict=True)):
        row["answer"] = given if number % 2 else "none"
    write_jsonl(world.folder / "writes.jsonl", rows)


@pytest.mark.parametrize("chat", [True, False])
def test_a_task_that_writes_has_lm_evals_own_score_document_by_document(world, tmp_path, chat):
    from klearbench.engines.hf import load_engine

    learn_answers(world, harness(world, "writes", chat)[1])
    results, logged = harness(world, "writes", chat)
    suite = task(world, "writes", "ours" if chat else "official")
    template = None if chat else str(world.folder / "raw.jinja")
    engine = load_engine(str(world.model), batch_size=1, dtype="float32", chat_template=template)
    (score,) = evaluate(tmp_path / "run", [suite], engine, EvalOptions())
    assert 0 < score.avg < 100
    assert score.avg == 100 * results["exact_match,digit"]
    theirs = {str(row["doc_id"]): row for row in logged if row["filter"] == "digit"}
    for verdict in read_records(tmp_path / "run" / "verdicts.jsonl", Verdict):
        row = theirs[verdict.problem_id]
        assert (verdict.score, verdict.extracted) == (row["exact_match"], row["filtered_resps"][0])
    for sample in read_records(tmp_path / "run" / "samples.jsonl", Sample):
        said = [word for word in after_thought(sample.completion).split() if word not in SPECIAL]
        assert said == theirs[sample.problem_id]["resps"][0][0].split()


def test_a_task_that_chooses_has_lm_evals_own_score_and_its_answers_stay_away(world, tmp_path):
    words = (
        "eval",
        "--suite",
        "lm_eval:chooses",
        "--model",
        world.model,
        "--engine",
        "lm-eval",
        "-o",
        tmp_path / "run",
    )
    engine = ("--engine-arg", "model_args=dtype=float32", "--engine-arg", "device=cpu", "--chat-template", "raw")
    ok("klearbench", *words, *engine, "--prompt", "official", KLEARBENCH_LM_EVAL_PATH=str(world.folder))
    results, logged = harness(world, "chooses", chat=False)
    score = json.loads((tmp_path / "run" / "scores.json").read_text())["lm_eval:chooses"]
    assert 0 < score["avg"] < 100
    assert score["avg"] == pytest.approx(100 * results["acc,none"])
    verdicts = {v.problem_id: v.score for v in read_records(tmp_path / "run" / "verdicts.jsonl", Verdict)}
    assert verdicts == {str(row["doc_id"]): row["acc"] for row in logged}
    assert all(SECRET.encode() not in content for content in snapshot(tmp_path / "run").values())


def test_a_task_that_chooses_is_refused_for_an_engine_that_can_not_weigh(world, tmp_path):
    with pytest.raises(UsageError, match="use --engine lm-eval"):
        evaluate(tmp_path / "run", [task(world, "chooses")], ToyEngine(lambda _: ""), EvalOptions())
    assert not (tmp_path / "run").exists()


def test_lm_evals_models_write_what_ours_write(world):
    from klearbench.engines.hf import load_engine
    from klearbench.integrations.lm_eval_engine import load_engine as load_theirs

    suite = task(world, "writes")
    requests = [Request(problem.prompt, 1) for problem in suite.problems]
    sampling = Sampling(0.0, 1.0, 0, 12, stop=(";",))
    theirs = load_theirs(str(world.model), model_args="dtype=float32", device="cpu", batch_size=1)
    ours = load_engine(str(world.model), batch_size=1, dtype="float32")
    made = theirs.generate(requests, sampling)
    wanted = [ours.generate([request], sampling)[0] for request in requests]
    assert [g.completion.split() for g in made] == [g.completion.split() for g in wanted]
    assert [g.prompt_tokens for g in made] == [g.prompt_tokens for g in wanted]
    assert {g.finish_reason for g in made} <= {FinishReason.stop, FinishReason.length}


def test_an_interrupted_run_ends_as_an_undisturbed_one(world, tmp_path):
    suite = task(world, "writes")
    evaluate(tmp_path / "whole", [suite], ToyEngine(lambda r: f"~ {r.place[0]}", 2), EvalOptions(samples=2))

    def stop(request):
        if request.place == ("4", 0):
            raise KeyboardInterrupt
        return f"~ {request.place[0]}"

    with pytest.raises(KeyboardInterrupt):
        evaluate(tmp_path / "cut", [suite], ToyEngine(stop, 2), EvalOptions(samples=2))
    assert 0 < len(jsonl(tmp_path / "cut" / "samples.jsonl")) < 12
    evaluate(tmp_path / "cut", [suite], ToyEngine(lambda r: f"~ {r.place[0]}", 2), EvalOptions(samples=2))
    assert result(tmp_path / "cut") == result(tmp_path / "whole")
    config = json.loads((tmp_path / "whole" / "manifest.json").read_text())["config"]
    assert config["suite_sampling"] == {
        "lm_eval:writes": {"temperature": 0.0, "max_tokens": 12, "stop": [";"], "top_p": 1.0}
    }


def test_a_group_is_one_suite_with_a_subject_a_task(world):
    folder = world.folder / "group"
    folder.mkdir(exist_ok=True)
    (folder / "both.yaml").write_text("group: both\ntask: [writes, other]\n")
    from klearbench.integrations.lm_eval_load import load

    loaded, docs = load(Spec("both", paths=(str(world.folder),)))
    assert [p.id for p in loaded.problems] == [f"{name}/{i}" for name in ("writes", "other") for i in range(6)]
    assert [p.meta["subject"] for p in loaded.problems] == ["writes"] * 6 + ["other"] * 6
    assert {p.suite for p in loaded.problems} == {"lm_eval:both"} and len(docs) == 12


def test_the_parts_of_a_task_that_hold_answers_stay_in_its_process(world):
    suite = task(world, "hangs")
    assert SECRET not in repr(suite) and len(suite.problems) == len(QUESTIONS)


def test_a_score_that_never_comes_is_a_judge_error_and_costs_no_other(world, tmp_path, monkeypatch):
    monkeypatch.setattr(lm_eval_worker, "LIMIT_S", 1.0)
    suite = task(world, "hangs")
    texts = dict(
        zip(
            (p.id for p in suite.problems),
            ("right", "hang", "half", "", "<think> x </think>\nright", "wrong"),
            strict=True,
        )
    )
    engine = ToyEngine(lambda request: texts[request.place[0]])
    with pytest.raises(IncompleteError):
        evaluate(tmp_path / "run", [suite], engine, EvalOptions())
    verdicts = {v.problem_id: v for v in read_records(tmp_path / "run" / "verdicts.jsonl", Verdict)}
    told = [verdicts[problem.id] for problem in suite.problems]
    assert [(v.status.value, v.score) for v in told] == [
        ("correct", 1.0),
        ("judge_error", None),
        ("judge_error", None),
        ("wrong_answer", 0.0),
        ("correct", 1.0),
        ("wrong_answer", 0.0),
    ]
    assert "no score within 1 s" in told[1].detail and "only metrics of 0 or 1" in told[2].detail
    assert told[4].detail == "good=1, long=5"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (WRITES + "unsafe_code: true\n", "outside any sandbox"),
        (CHOOSES.replace("multiple_choice", "loglikelihood"), "what it weighs is the answer itself"),
        (WRITES.replace("max_gen_toks: 12", "num_beams: 4"), "beam search"),
        (WRITES.replace("max_gen_toks: 12", "typical_p: 0.5"), "unknown key 'typical_p'"),
        (WRITES.replace("aggregation: mean", "aggregation: median"), "no metric that is a mean"),
        (WRITES + "gen_prefix: '~'\n", "--prompt official"),
        (WRITES.replace("doc_to_target: answer", "doc_to_target: '{{ 1 / 0 }}'"), "can't load it (ZeroDivisionError"),
        ("", "can't load it"),
    ],
)
def test_a_task_that_can_not_be_run_is_refused_in_one_line(world, body, said):
    from klearbench.integrations.lm_eval_load import load

    path = world.folder / "writes.bad.yaml"
    path.write_text(HEAD.format(name="writes", folder=world.folder) + body)
    with pytest.raises(UsageError) as caught:
        load(Spec(str(path)))
    path.unlink()
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("writes@exact_matc", "unknown metric 'exact_matc'; did you mean 'exact_match'?"),
        ("writes@exact_match,digits", "unknown filter 'digits'; did you mean 'digit'?"),
        ("none/such.yaml", "no such file"),
    ],
)
def test_a_wrong_name_is_refused_in_one_line(world, name, said):
    from klearbench.integrations.lm_eval_load import load

    path, _, measure = name.partition("@")
    with pytest.raises(UsageError) as caught:
        load(Spec(path, measure, (str(world.folder),)))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_refusal_comes_out_of_the_worker_as_it_is(world):
    with pytest.raises(UsageError) as caught:
        task(world, "none/such.yaml")
    assert str(caught.value) == "none/such.yaml: no such file"


def test_the_metric_and_the_filter_can_be_named(world):
    from klearbench.integrations.lm_eval_load import load

    loaded, docs = load(Spec("writes", "exact_match,all", (str(world.folder),)))
    assert loaded.name == "lm_eval:writes@exact_match,all"
    score, shown, detail = docs[0].score("<think> 5 </think> 3 and 4")
    assert (score, shown, detail) == (0.0, "3 and 4", "exact_match=0")
