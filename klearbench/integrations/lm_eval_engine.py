"""Any model of lm-eval as an engine: its backends' `generate_until`, and `loglikelihood` for tasks that choose.

lm-eval gives back text alone: tokens are counted by its tokenizer where it has one (0 otherwise), and a completion of
`max_tokens` or more counts as cut off. One seed serves a whole call.
"""

from __future__ import annotations

import inspect
import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from klearbench.engines.base import Generation, Request, Sampling
from klearbench.engines.chat import first_line
from klearbench.engines.checkpoint import model_hash
from klearbench.errors import ConfigError, UsageError
from klearbench.integrations.lm_eval_docs import CONTINUATION
from klearbench.store import text_hash
from klearbench.types import FinishReason, Message

_JOINED = {"plain": "\n", "raw": ""}
"""Templates that only join the messages' contents by a blank line -> what stands at the end."""
_LIBRARIES = ("torch", "transformers", "vllm")


def load_engine(
    model: str,
    backend: str = "hf",
    model_args: str = "",
    batch_size: int = 8,
    chat_template: str | None = None,
    device: str | None = None,
) -> LmEvalEngine:
    """A model of lm-eval.

    Args:
        model: its folder or name.
        backend: lm-eval's `--model`: hf, vllm, local-completions, ...
        model_args: lm-eval's `--model_args` besides the model, as "dtype=float32,parallelize=True".
        batch_size: sequences a call.
        chat_template: None for the model's own; "raw": the text as it is, as lm-eval without --apply_chat_template;
            "plain": the same with a newline after it, as in our other engines.
        device: as "cpu" or "cuda:0".

    Raises:
        UsageError: no such backend, or a model that it can't load.
        ConfigError: an unknown template, or a model that has none.
    """
    from lm_eval.api.registry import get_model
    from lm_eval.utils import simple_parse_args_string

    if chat_template not in (None, *_JOINED):
        raise ConfigError(f"chat template is {chat_template!r} (lm-eval engine: {', '.join(_JOINED)}, or leave it out)")
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    try:
        made = get_model(backend)
        named = "pretrained" if "pretrained" in inspect.signature(made.__init__).parameters else "model"
        given = {named: model, **simple_parse_args_string(model_args)}
        lm = made.create_from_arg_obj(given, {"batch_size": batch_size, "device": device or _device(backend)})
    except Exception as error:  # each backend has its own
        raise UsageError(f"lm-eval's model {backend!r} can't load {model} ({first_line(error)})") from None
    identity = {"backend": backend, "model_hash": model_hash(model), "model_args": model_args}
    return LmEvalEngine(lm, identity, batch_size=batch_size, chat_template=chat_template)


def _device(backend: str) -> str | None:
    """lm-eval's own model asks for a GPU where none is named."""
    if backend != "hf":
        return None
    import torch

    return None if torch.cuda.is_available() else "cpu"


class LmEvalEngine:
    """An engine around an `lm_eval.api.model.LM`. `weighs`: it can tell how likely given continuations are."""

    weighs = True

    def __init__(
        self, lm: Any, identity: Mapping[str, Any], *, batch_size: int = 8, chat_template: str | None = None
    ) -> None:
        """Wrap a model. Raises ConfigError if it should use its own chat template and has none."""
        self.batch_size = batch_size
        self._lm, self._identity, self._template = lm, identity, chat_template
        self._tokenizer = getattr(lm, "tokenizer", None)
        own = getattr(self._tokenizer, "chat_template", None)
        if chat_template is None and self._tokenizer is not None and not own:
            raise ConfigError("the model has no chat template; give --chat-template raw (or plain)")
        self._hash = text_hash(str(own if chat_template is None else chat_template))

    def identity(self) -> Mapping[str, Any]:
        template = {"chat_template": self._template or "model", "chat_template_hash": self._hash}
        used = ["lm-eval", *(name for name in _LIBRARIES if name in sys.modules)]
        versions = {name: metadata.version(name) for name in used}
        return {"name": "lm-eval", **self._identity, **template, "batch_size": self.batch_size, **versions}

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        """One generation a request, in order; requests with continuations get the JSON list of their likelihoods."""
        weighed = [r for r in requests if any(m["role"] == CONTINUATION for m in r.prompt)]
        asked = [r for r in requests if not any(m["role"] == CONTINUATION for m in r.prompt)]
        made = dict(zip(map(id, weighed), self._weigh(weighed), strict=True))
        made |= dict(zip(map(id, asked), self._write(asked, sampling), strict=True))
        return [made[id(request)] for request in requests]

    def close(self) -> None:
        """Let the model go."""
        self._lm = None

    def _write(self, requests: Sequence[Request], sampling: Sampling) -> list[Generation]:
        if not requests:
            return []
        self._seed(requests[0].seed)
        contexts = [self._text(request.prompt) for request in requests]
        texts = self._ask("generate_until", [(context, _kwargs(sampling)) for context in contexts])
        return [self._generation(c, t, sampling) for c, t in zip(contexts, texts, strict=True)]

    def _generation(self, context: str, text: str, sampling: Sampling) -> Generation:
        count = self._count(text)
        finish = FinishReason.length if count >= sampling.max_tokens else FinishReason.stop
        return Generation(text, finish, self._count(context), count)

    def _weigh(self, requests: Sequence[Request]) -> list[Generation]:
        pairs = [list(self._pairs(request.prompt)) for request in requests]
        said = iter(self._ask("loglikelihood", [pair for group in pairs for pair in group]))
        made = []
        for group in pairs:
            found = [[float(likelihood), bool(greedy)] for likelihood, greedy in (next(said) for _ in group)]
            read = sum(self._count(context) + self._count(more) for context, more in group)
            made.append(Generation(json.dumps(found), FinishReason.stop, read, 0))
        return made

    def _pairs(self, prompt: Sequence[Message]) -> Iterator[tuple[str, str]]:
        """Each continuation with the context before it; several may share one."""
        turns: list[Message] = []
        context, used = "", True
        for message in prompt:
            if message["role"] == CONTINUATION:
                if not used:
                    context, used = self._text(turns), True
                yield context, message["content"]
            else:
                turns = [message] if used else [*turns, message]
                used = False

    def _text(self, prompt: Sequence[Message]) -> str:
        if self._template is not None:
            return "\n\n".join(message["content"] for message in prompt) + _JOINED[self._template]
        return str(self._lm.apply_chat_template([dict(message) for message in prompt]))

    def _count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False)) if self._tokenizer is not None else 0

    def _seed(self, seed: int) -> None:
        if "torch" in sys.modules:  # a server's model has none
            sys.modules["torch"].manual_seed(seed)

    def _ask(self, kind: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What the model says to some requests of one kind, without lm-eval's own progress bar where it has one."""
        from lm_eval.api.instance import Instance

        if not arguments:
            return []
        ask = getattr(self._lm, kind)
        quiet = {"disable_tqdm": True} if "disable_tqdm" in inspect.signature(ask).parameters else {}
        asked = [Instance(kind, doc={}, arguments=a, idx=0, metadata=(None, None, 1)) for a in arguments]
        return list(ask(asked, **quiet))


def _kwargs(sampling: Sampling) -> dict[str, Any]:
    """Our sampling in lm-eval's words; off values are left out, except top_k's, which transformers would set to 50."""
    drawn: dict[str, Any] = {"do_sample": False}
    if sampling.temperature:
        drawn = {
            "do_sample": True,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
        }
        drawn |= {"min_p": sampling.min_p} if sampling.min_p else {}
    penalty = {"repetition_penalty": sampling.repetition_penalty} if sampling.repetition_penalty != 1.0 else {}
    return {"until": list(sampling.stop), "max_gen_toks": sampling.max_tokens, **drawn, **penalty}
