#!/bin/sh
# Stands in for `fet` in the tests of xtask: says the same lines and writes the same files, and trains nothing.
#
# `show --batch` and `run` resolve to the file's name, the settings, the device and the seed. FAKE_FET steers it:
#   bad=PATTERN     `show` refuses a cell that holds PATTERN
#   fail=PATTERN    `run` fails on one
#   slow=PATTERN    `run` waits on one until it is interrupted, for 30 seconds at most
# FAKE_DATA is the checksum of the data. Every `run` leaves its command line in $FAKE_FET_CALLS.
set -eu
all="$*"
steer() { case "${FAKE_FET:-}" in "$1="*) case "$all" in *"${FAKE_FET#*=}"*) return 0 ;; esac ;; esac; return 1; }

verb=$1 file=$2 sets="" device=flex seed=0 out=""
shift 2
while [ $# -gt 0 ]; do
    case "$1" in
        --set) sets="$sets $(printf %s "$2" | tr '"' "'")"; shift ;;
        --device) device=$2; shift ;;
        --seed) seed=$2; shift ;;
        --out) out=$2; shift ;;
        --log) shift ;;
        --batch) ;;
    esac
    shift
done
name=$(sed -n 's/^name = "\(.*\)"$/\1/p' "$file" | head -n 1)

case "$verb" in
    show)
        # {"seed":0,"set":["a=1","b=\"x\""]} becomes the experiment that `run` resolves to.
        bad=""
        case "${FAKE_FET:-}" in bad=*) bad=${FAKE_FET#bad=} ;; esac
        awk -v name="$name" -v sets="$sets" -v device="$device" -v data="${FAKE_DATA:-data}" -v bad="$bad" -v file="$file" '
            {
                seed = $0; sub(/.*"seed":/, "", seed); sub(/[,}].*/, "", seed)
                own = $0; sub(/.*"set":\[/, "", own); sub(/\].*/, "", own)
                gsub(/\\"/, "\047", own); gsub(/","/, " ", own); gsub(/"/, "", own)
                all = sets (own == "" ? "" : " " own)
                if (bad != "" && index(all, bad)) { print "{\"error\":\"" file ": encoder.mask: unknown field\"}"; next }
                printf "{\"experiment\":{\"name\":\"%s\",\"sets\":\"%s\",\"device\":\"%s\",\"seed\":%s},", name, all, device, seed
                printf "\"data\":\"%s\",\"results\":1}\n", data
            }'
        ;;
    run)
        experiment="{\"name\":\"$name\",\"sets\":\"$sets\",\"device\":\"$device\",\"seed\":$seed}"
        echo "$all" >>"$FAKE_FET_CALLS"
        [ ! -e "$out/report.json" ] || { echo "fet: $out holds a report" >&2; exit 2; }
        echo '{"event":"start","rows":{"train":8,"validation":1,"test":1},"metric":"accuracy","epochs":2}'
        echo "a line that is no event"
        echo '{"event":"progress","epoch":1,"epochs":2,"fraction":0.5,"loss":0.5,"rows_per_second":80.0}'
        if steer fail; then echo "the log says why" >&2; exit 101; fi
        if steer slow; then
            trap "exit 130" INT
            tick=0
            while [ "$tick" -lt 600 ]; do sleep 0.05; tick=$((tick + 1)); done
            exit 1
        fi
        echo '{"event":"epoch","epoch":2,"epochs":2,"loss":0.25,"validation":0.5,"test":0.5,"seconds":0.1}'
        # A study with neighbours gets a result that varies with them.
        digits=""
        case "$sets" in *neighbours*) digits=$(printf %s "$sets" | cksum | cut -c1-2) ;; esac
        cat >"$out/report.json" <<END
{"program":{"version":"0.1.0","commit":"abc","results":1},"data":{"files":"${FAKE_DATA:-data}","split":"s$seed"},"experiment":$experiment,"seed":$seed,"device":"$device",
"metric":{"name":"accuracy","direction":"maximise"},"epochs":[{"epoch":1,"train_loss":0.9,"validation":0.3,"test":0.3},{"epoch":2,"train_loss":0.5,"validation":0.5,"test":0.5}],"best":{"epoch":2,"validation":0.5,"test":0.$((seed + 5))$digits},
"cost":{"seconds":1.5,"setup_seconds":0.5,"train_rows_per_second":80.0,"peak_memory_bytes":1024},"parameters":12}
END
        echo "{\"event\":\"done\",\"report\":\"$out/report.json\"}"
        ;;
esac
