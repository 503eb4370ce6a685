#!/bin/sh
# Stand-in for `sbatch`, `squeue` and `scontrol` in the tests of the harness: a cluster of one node. The name of the call selects the
# command. The state is in $FAKE_SLURM: `calls` (of sbatch), `asked` (calls of squeue), `queue` (lines of squeue).
#
# FAKE_LOSE=TASK: that task of the first job vanishes without a trace.
# FAKE_WAIT=SECONDS: jobs wait in the queue before they run; without this variable jobs end before sbatch answers.
# FAKE_SITE=1: the site prints banners on standard output, and squeue shows the jobs only with --clusters.
# FAKE_BUSY=N: the first N calls of squeue and of sbatch fail, as with a busy controller.
# FAKE_VANISH="A B": these calls of squeue print nothing.
# FAKE_MAX=N: an array has at most N tasks; scontrol reports the limit unless FAKE_MUTE is set.
# FAKE_FULL=N: a user has at most N tasks in the queue.
set -eu
banner() { [ -z "${FAKE_SITE:-}" ] || printf '%s\n' "$@"; }
busy() {
    if [ "$1" -le "${FAKE_BUSY:-0}" ]; then
        echo "$2: error: Socket timed out on send/recv operation" >&2
        exit 1
    fi
}
refuse() {
    echo "sbatch: error: $1" >&2
    exit 1
}
count() { wc -l <"$FAKE_SLURM/$1" | tr -d ' '; }
case "$(basename "$0")" in
    scontrol)
        [ -n "${FAKE_MAX:-}" ] && [ -z "${FAKE_MUTE:-}" ] || refuse "Unable to contact slurm controller"
        banner "Welcome: 7"
        printf 'Configuration data\nMaxArraySize            = %s\nMaxJobCount             = 10000\n' "$FAKE_MAX"
        ;;
    sbatch)
        echo "$*" >>"$FAKE_SLURM/calls"
        job=$(count calls)
        busy "$job" sbatch
        for word in "$@"; do
            case "$word" in --array=*) last=${word#--array=0-}; last=${last%%%*} ;; esac
            script=$word
        done
        touch "$FAKE_SLURM/queue"
        [ "$last" -lt "${FAKE_MAX:-1001}" ] || refuse "Batch job submission failed: Invalid job array specification"
        [ $(($(count queue) + last)) -lt "${FAKE_FULL:-1001}" ] || refuse "QOSMaxSubmitJobPerUserLimit"
        run() {
            task=0
            while [ "$task" -le "$last" ]; do
                if [ "$job" != 1 ] || [ "$task" != "${FAKE_LOSE:-none}" ]; then
                    SLURM_ARRAY_TASK_ID=$task sh "$script" >/dev/null 2>&1 </dev/null || true
                fi
                task=$((task + 1))
            done
        }
        if [ -n "${FAKE_WAIT:-}" ]; then
            states="PENDING RUNNING SUSPENDED COMPLETING"
            task=0
            while [ "$task" -le "$last" ]; do
                state=$(echo "$states" | cut -d' ' -f $((task % 4 + 1)))
                echo "${job}_$task $state" >>"$FAKE_SLURM/queue"
                task=$((task + 1))
            done
            (
                sleep "$FAKE_WAIT"
                run
                grep -v "^${job}_" "$FAKE_SLURM/queue" >"$FAKE_SLURM/queue.$job" || true
                mv "$FAKE_SLURM/queue.$job" "$FAKE_SLURM/queue"
            ) >/dev/null 2>&1 </dev/null &
        else
            run
        fi
        banner "--------" "Welcome to Example3, running since" 2019 "--> Verifying access...OK"
        echo "$job;cluster"
        banner "Have a nice day"
        ;;
    squeue)
        echo "$*" >>"$FAKE_SLURM/asked"
        asked=$(count asked)
        busy "$asked" slurm_load_jobs
        banner "Welcome: 7_1"
        case " ${FAKE_VANISH:-} " in *" $asked "*) exit 0 ;; esac
        case "${FAKE_SITE:-} $*" in
            1*--clusters=cluster*) echo "CLUSTER: cluster" ;;
            1*) exit 0 ;;
        esac
        cat "$FAKE_SLURM/queue" 2>/dev/null || true
        ;;
esac
