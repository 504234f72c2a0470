#!/usr/bin/env bash
# Evaluate a checkpoint, gate it against a stored baseline, and put the report where it can be published.
#
#     CHECKPOINT=models/today SUITES="aime24 aime25" SAMPLES=64 DATA_DIR=data recipes/gate/gate.sh
#
# Exit code: that of `klearbench regress` (0 fine, 1 regressed, 2 bad input, 3 not comparable or not enough data).
# The same command again finishes what was interrupted and makes nothing twice. Without a baseline the first run makes
# one; look at its report, then commit the file.
#
#   CHECKPOINT   transformers folder or hub name; or a checkpoint of klearrl (step-N, last, best), which is exported first
#   SUITES       words, each a suite or a suite file                                        [puzzles]
#   SAMPLES      k of avg@k                                                                 [8]
#   BASELINE     the stored baseline                                                        [baselines/checkpoint.json]
#   OUT          everything that is made: run, gate, report, exported model                 [runs/gate]
#   ENGINE       hf, vllm, openai ...                                                       [hf]
#   DATA_DIR     where benchmark files lie                                                  [none]
#   MAX_DROP     points that are allowed                                                    [0]
#   REPORT_URL   where OUT/report will be published, for the links in the summary           [relative links]
#   BASELINE_REQUIRED  anything: a missing baseline is exit 2 instead of a first use            [none]
#   BASELINE_FLAGS  more flags of `klearbench baseline`, e.g. --max-judge-errors 1              [none]
#   EVAL_FLAGS   more flags of `klearbench eval`, REGRESS_FLAGS of `klearbench regress`     [none]
set -euo pipefail

if [[ -z ${CHECKPOINT:-} ]]; then # `:?` would exit with 1, which means "regressed"
  echo "set CHECKPOINT to a model folder, a hub name, or a checkpoint of klearrl" >&2
  exit 2
fi
SUITES=${SUITES:-puzzles} SAMPLES=${SAMPLES:-8} ENGINE=${ENGINE:-hf} MAX_DROP=${MAX_DROP:-0}
BASELINE=${BASELINE:-baselines/checkpoint.json} OUT=${OUT:-runs/gate} DATA_DIR=${DATA_DIR:-} REPORT_URL=${REPORT_URL:-}
read -rd '' -a suites <<<"$SUITES" || true # to the end, not to the end of the first line
read -rd '' -a eval_flags <<<"${EVAL_FLAGS:-}" || true
read -rd '' -a regress_flags <<<"${REGRESS_FLAGS:-}" || true
read -rd '' -a baseline_flags <<<"${BASELINE_FLAGS:-}" || true
if [[ ! -e $BASELINE && -n ${BASELINE_REQUIRED:-} ]]; then
  echo "no baseline $BASELINE: a mistyped name must not pass; run once without BASELINE_REQUIRED to make it" >&2
  exit 2
fi
mkdir -p "$OUT"
rm -rf "$OUT/gate" # else an evaluation that fails would leave the last result in its place

model=$CHECKPOINT
if [[ -f $CHECKPOINT/state.json ]]; then # a checkpoint of klearrl; `last` and `best` are links to one
  model=$OUT/model-$(basename "$(realpath "$CHECKPOINT")")
  rm -rf "$model" # another checkpoint may bear the same name; eval refuses to go on with other weights
  klearrl export "$CHECKPOINT" -o "$model"
fi

eval_command=(klearbench eval --model "$model" --engine "$ENGINE" --samples "$SAMPLES" -o "$OUT/run")
for suite in "${suites[@]}"; do eval_command+=(--suite "$suite"); done
if [[ -n $DATA_DIR ]]; then eval_command+=(--data-dir "$DATA_DIR"); fi
"${eval_command[@]}" "${eval_flags[@]}"

# What a web server publishes: the page, and the longest completions beside it where there are such files.
rm -rf "$OUT/report"
mkdir -p "$OUT/report"
klearbench report "$OUT/run" -o "$OUT/report/report.html"

if [[ ! -e $BASELINE ]]; then
  mkdir -p "$(dirname "$BASELINE")"
  klearbench baseline "$OUT/run" -o "$BASELINE" "${baseline_flags[@]}"
  note="no baseline was there: this run is it now; look at $OUT/report/report.html, then commit $BASELINE"
  echo "$note"
  if [[ -n ${GITHUB_STEP_SUMMARY:-} ]]; then printf '%s\n\n' "$note" >>"$GITHUB_STEP_SUMMARY"; fi
fi

code=0
klearbench regress "$BASELINE" "$OUT/run" --max-drop "$MAX_DROP" --report "${REPORT_URL:-../report/report.html}" \
  -o "$OUT/gate" "${regress_flags[@]}" || code=$?
if [[ -n ${GITHUB_STEP_SUMMARY:-} && -f $OUT/gate/regress.md ]]; then
  cat "$OUT/gate/regress.md" >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
