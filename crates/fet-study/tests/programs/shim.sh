#!/bin/sh
# Program other than `fet` in the tests of the harness. The changes `hits=H` and `slope=S` give a run H + S · (seed + fold) correct
# predictions of 60 test rows.
#
# version-NAME in the working folder: version of the program for settings that contain NAME; otherwise the version is 1.
# SHIM_ANSWER, SHIM_REPORT: sed scripts that change every answer and every report.
# SHIM_STOP=PATTERN: a run with these settings waits for an interrupt. SHIM_PAUSE=SECONDS: every run pauses.
# SHIM_PREDICTIONS: `no` if runs write no predictions, or a sed script that changes every line of them.
set -eu
command=$1 sets='' seed='' out=''
shift 2
while [ $# -gt 0 ]; do
    case $1 in
        --set)
            sets="$sets${sets:+,}\"$(printf '%s' "$2" | sed 's/[\\"]/\\&/g')\""
            shift
            ;;
        --seed) seed=$2 && shift ;;
        --out) out=$2 && shift ;;
        --batch) ;;
        *) echo "shim: unknown option $1" >&2 && exit 2 ;;
    esac
    shift
done
identity() { # the experiment
    version=1
    for file in version-*; do
        case $1 in *"${file#version-}"*) version=$(cat "$file") ;; esac
    done
    printf '{"program":{"name":"shim","version":"%s"},"experiment":%s' "$version" "$1"
}
if [ "$command" = show ]; then
    while read -r question; do
        own=${question#'{"set":['}
        case $own in ']'*) ;; *) own="${sets:+,}$own" ;; esac
        identity "{\"set\":[$sets$own" | sed "s/\$/}/; ${SHIM_ANSWER:-}"
        echo
    done
    exit
fi
experiment="{\"set\":[$sets],\"seed\":$seed}"
echo "$experiment" >>calls
echo '{"event":"progress","epoch":1,"epochs":1,"fraction":0.5}'
echo '{"event":"epoch","epochs":1}'
case $sets in *"${SHIM_STOP:-no such settings}"*) exec sleep 30 ;; esac
sleep "${SHIM_PAUSE:-0}"
setting() { printf '%s' "$sets" | sed "s/.*$1=\([0-9]*\).*/\1/"; }
case $sets in *split.fold=*) fold=$(setting split.fold) ;; *) fold=0 ;; esac
[ "${SHIM_PREDICTIONS:-}" = no ] || awk -v hits=$(($(setting hits) + $(setting slope) * (seed + fold))) 'BEGIN {
    print "row,part,label,prediction,probability of no,probability of yes"
    for (row = 0; row < 62; row++) {
        label = row % 2
        is_right = row < 2 || (row * 7) % 60 < hits
        found = is_right ? label : 1 - label
        print row "," (row < 2 ? "validation" : "test") "," (label ? "yes" : "no") "," (found ? "yes" : "no") "," 1 - found "," found
    }
}' | sed "${SHIM_PREDICTIONS:-}" >"$out/predictions.csv"
rows='{"train":100,"validation":2,"test":60}'
{ identity "$experiment"; echo ",\"metric\":\"accuracy\",\"rows\":$rows}"; } | sed "${SHIM_REPORT:-}" >"$out/report.json"
