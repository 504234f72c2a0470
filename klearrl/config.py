"""Training recipes: pydantic models that import without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PositiveInt, model_validator

from klearbench.config import Section, load_recipe

Unit = Annotated[float, Field(ge=0, le=1)]
NonNegative = Annotated[float, Field(ge=0)]


class NewModel(Section):
    """A model made from nothing: the Qwen3 architecture in any size, with a tokenizer of whole words."""

    hidden_size: PositiveInt = 96
    layers: PositiveInt = 2
    heads: PositiveInt = 4
    kv_heads: PositiveInt = 2
    head_dim: PositiveInt = 24
    intermediate_size: PositiveInt = 256
    context: PositiveInt = 64
    """Longest prompt + completion, in tokens."""
    init_std: float = 0.05
    """Standard deviation of the initial weights."""

    @model_validator(mode="after")
    def _heads_divide(self) -> NewModel:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads ({self.kv_heads}) must divide heads ({self.heads})")
        return self


class ModelConfig(Section):
    """The starting point: a transformers folder or hub name (`path`), or a new model (`new`)."""

    path: str | None = None
    new: NewModel | None = None
    chat_template: str | None = None
    """A Jinja file that replaces the tokenizer's chat template; None keeps it."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """bfloat16 keeps fp32 master weights in DeepSpeed."""

    @model_validator(mode="after")
    def _one_of_both(self) -> ModelConfig:
        if (self.path is None) == (self.new is None):
            raise ValueError("give exactly one of path and new")
        return self


class DataConfig(Section):
    """Which rows a stage reads: a dataset folder, or any name that `datasets.load_dataset` takes."""

    path: str | None = None
    """None takes the recipe's `data`."""
    config: str | None = None
    split: str = "train"


class OptimizerConfig(Section):
    """AdamW with a warm-up and a schedule; the learning rate is a pure function of the step."""

    lr: NonNegative
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    floor: Unit = 0.0
    """The lowest learning rate of the schedule, as a share of `lr`."""
    weight_decay: NonNegative = 0.0
    betas: tuple[Unit, Unit] = (0.9, 0.95)
    grad_clip: NonNegative = 1.0
    """Largest global gradient norm; 0 is off."""


class StageBase(Section):
    """What SFT and RL stages share."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
    data: DataConfig = DataConfig()
    optimizer: OptimizerConfig
    micro_batch_size: PositiveInt = 8
    """Sequences a forward pass on one rank."""
    save_every: PositiveInt = 50
    """Steps between checkpoints: what a kill can cost."""
    keep_last: PositiveInt = 2
    """Checkpoints kept besides the best one."""
    eval_every: Annotated[int, Field(ge=0)] = 0
    """Steps between evaluations of the checkpoint; 0: at the stage's end alone."""


class SftStage(StageBase):
    """Supervised fine-tuning on the assistant's last turn, token mean over the global batch."""

    kind: Literal["sft"] = "sft"
    steps: PositiveInt
    """Optimizer steps."""
    batch_size: PositiveInt = 64
    """Sequences an optimizer step, over all ranks."""
    max_length: PositiveInt = 4096
    """Rows with more tokens are left out and counted."""


class LossConfig(Section):
    """The policy loss; see `klearrl.losses.policy_loss`."""

    kind: Literal["gppo", "ppo", "clip_higher", "cispo", "ce_gppo", "gspo"] = "gppo"
    clip_low: NonNegative = 0.2
    clip_high: NonNegative = 0.28
    beta_low: NonNegative = 1.0
    beta_high: NonNegative = 1.0
    dual_clip: Annotated[float, Field(gt=1)] | None = None
    normalize: Literal["token", "sequence", "constant"] = "token"
    lm_coef: NonNegative = 0.1
    """Weight of the language-model loss on rollouts whose reward is exactly 1; 0 is off."""


class RlStage(StageBase):
    """Reinforcement learning from verifiable rewards: rollouts, rewards from klearbench's judges, policy updates."""

    kind: Literal["rl"] = "rl"
    steps: PositiveInt
    """Rollout batches."""
    prompts: PositiveInt = 128
    """Prompts with a signal (rewards that differ) a rollout batch."""
    group_size: Annotated[int, Field(ge=2)] = 8
    """Rollouts a prompt."""
    mini_batches: PositiveInt = 8
    """Optimizer steps a rollout batch; must divide `prompts`."""
    sample_prompts: PositiveInt | None = None
    """Prompts sampled a round before those without a signal are dropped; None: as many as `prompts`."""
    max_rounds: PositiveInt = 4
    """Rounds of sampling at most; then the batch is trained with fewer prompts."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    max_tokens: PositiveInt = 32768
    """Longest completion."""
    rollout_batch_size: PositiveInt = 64
    """Sequences an engine call on one rank."""
    reward: Literal["soft", "hard"] = "soft"
    """What a program earns that passes some of its tests: soft, their share; hard, nothing. Math is right or wrong."""
    sandbox: Literal["local", "docker"] = "local"
    """Where programs run (code data)."""
    judge_workers: PositiveInt = 1
    """Judge processes, and sandbox slots, of one rank."""
    advantage: Literal["grpo", "dr_grpo"] = "grpo"
    """grpo divides by the group's standard deviation, dr_grpo does not."""
    mask_truncated: bool = False
    """Drop rollouts that ran into the token limit instead of giving them reward 0."""
    max_mismatch: NonNegative = 0.5
    """Stop when engine and trainer differ by more, in mean absolute log-probability of fresh rollouts."""
    loss: LossConfig = LossConfig()

    @model_validator(mode="after")
    def _divides(self) -> RlStage:
        if self.prompts % self.mini_batches:
            raise ValueError(f"mini_batches ({self.mini_batches}) must divide prompts ({self.prompts})")
        return self


GateMetric = Literal["avg@k", "truncated", "length", "judge-errors"]
Drop = Annotated[float, Field(ge=0, lt=100)]


def _for_all(value: Any) -> Any:
    """One number is the allowed drop of every test."""
    return {"": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


class GateConfig(Section):
    """What every evaluation is compared with, by `klearbench regress`."""

    against: str = "previous"
    """`previous`, `first` or `best`: that evaluation of the same stage; or a path: a baseline file or an eval run."""
    metrics: tuple[GateMetric, ...] = ("avg@k",)
    max_drop: Annotated[dict[str, Drop], BeforeValidator(_for_all)] = Field(default_factory=dict)
    """Drop that is allowed, in points (lengths: a rise in percent): a number, or a mapping from a suite, a metric or
    SUITE:METRIC ("" is the rest) to numbers."""
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    """1 - the share of false alarms of one evaluation."""
    prove: bool = False
    """Pass only what is shown to drop less than max_drop."""
    max_judge_errors: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Percent of a suite's samples that a judge may have failed on."""
    on_regression: Literal["warn", "stop"] = "warn"
    """stop: end the training with exit code 1 (3 where the gate can't decide), its state saved."""

    @model_validator(mode="after")
    def _metrics_once(self) -> GateConfig:
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ValueError("metrics: name at least one, and each once")
        return self


class EvaluationConfig(Section):
    """How checkpoints are scored by klearbench, and what follows from the scores."""

    suites: tuple[str, ...] = ()
    samples: PositiveInt = 8
    limit: PositiveInt | None = None
    temperature: NonNegative = 0.6
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    max_tokens: PositiveInt = 32768
    batch_size: PositiveInt = 64
    sandbox: Literal["local", "docker"] = "local"
    """Where programs run (code suites)."""
    judge_workers: PositiveInt = 1
    data_dir: Path | None = None
    gate: GateConfig | None = None
    """None: evaluations are compared with nothing. It may change from one start of a run to the next, as `best` may."""
    best: Literal["shown", "highest"] = "shown"
    """When a later checkpoint becomes the best: once it is shown to be better, or with any higher mean score."""

    @model_validator(mode="after")
    def _gate_has_suites(self) -> EvaluationConfig:
        if self.gate is not None and not self.suites:
            raise ValueError("a gate needs suites: without them there is nothing to compare")
        return self


class DeepSpeedConfig(Section):
    """What is handed to DeepSpeed."""

    zero_stage: Annotated[int, Field(ge=0, le=3)] = 0


Stage = Annotated[SftStage | RlStage, Field(discriminator="kind")]


class TrainRecipe(Section):
    """One training run: a model, and stages that follow one another."""

    name: str
    seed: int = 0
    data: str | None = None
    """The dataset of every stage that names none."""
    model: ModelConfig
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    evaluation: EvaluationConfig = EvaluationConfig()
    deepspeed: DeepSpeedConfig = DeepSpeedConfig()
    tensorboard: bool = True

    @model_validator(mode="after")
    def _consistent(self) -> TrainRecipe:
        names = [stage.name for stage in self.stages]
        if len(set(names)) < len(names):
            raise ValueError("stage names must differ")
        for stage in self.stages:
            if stage.data.path is None and self.data is None:
                raise ValueError(f"stage {stage.name!r} has no data: give data (for all stages) or its own data.path")
        return self

    def dataset_path(self, stage: StageBase) -> str:
        """Where a stage's rows come from."""
        path = stage.data.path or self.data
        assert path is not None  # validated above
        return path


def load_train_recipe(path: Path, overrides: Sequence[str] = ()) -> TrainRecipe:
    """Read a training recipe. Raises ConfigError or DataError with one line."""
    return load_recipe(path, TrainRecipe, overrides)
