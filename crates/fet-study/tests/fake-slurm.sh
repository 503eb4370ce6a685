#!/bin/sh
# Stands in for `sbatch` and `squeue` in the tests of the harness, by the name that it is called with: a cluster of one node
# whose jobs end at once. What it is told and what waits there stands in $FAKE_SLURM.
#
# FAKE_LOSE=TASK: that task of the first job vanishes without a trace.
set -eu
case "$(basename "$0")" in
    sbatch)
        echo "$*" >>"$FAKE_SLURM/calls"
        job=$(wc -l <"$FAKE_SLURM/calls" | tr -d ' ')
        for word in "$@"; do
            case "$word" in --array=*) last=${word#--array=0-}; last=${last%%%*} ;; esac
            script=$word
        done
        task=0
        while [ "$task" -le "$last" ]; do
            if [ "$job" != 1 ] || [ "$task" != "${FAKE_LOSE:-none}" ]; then
                SLURM_ARRAY_TASK_ID=$task sh "$script" >/dev/null 2>&1 </dev/null || true
            fi
            task=$((task + 1))
        done
        echo "$job;cluster"
        ;;
    squeue) cat "$FAKE_SLURM/queue" 2>/dev/null || true ;;
esac
