#!/bin/sh
# The main job, end to end, with no network, no key and no GPU. Usage: sh examples/demo.sh [FOLDER]
# Everything is written into FOLDER (default: demo), which is made anew; the checkout stays as it was.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-demo}
if [ -e "$folder" ] && [ ! -e "$folder/events.db" ]; then
    echo "$folder exists and is no earlier demo; name another folder" >&2
    exit 2
fi
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"

say() { printf '\n# %s\n' "$1"; }
run() {
    printf '$ %s\n' "$*"
    "$@"
}

say "Phase 1: seed the constraint database with what the hardware config implies"
run kernelgen constraints seed hardware=h200

say "Import two real H200 profiles, as ncu wrote them"
run kernelgen profile import "$here/profiles/moe_dispatch_384expert.ncu_raw.csv" \
    target=moe_dispatch_384expert hardware=h200 shape=t4096
run kernelgen profile import "$here/profiles/mla_decode_fp8.ncu_raw.csv" \
    target=mla_decode_fp8 hardware=h200 shape=b64_s4096_h64 \
    subject="over a cache of 576-byte rows, 64 heads"

say "Which target has most to win back?"
run kernelgen headroom hardware=h200

say "Generate for both targets, autotuning (state 0) and algorithmic rewrites (state 1), and judge each as far as this machine can"
run kernelgen generate -m target=moe_dispatch_384expert,mla_decode_fp8 state=0,1

say "A candidate's own check, for its reader; it decides nothing"
set -- scripts/kernels/mla_decode_fp8/g*.py
run python "$2" --timeout 120

say "A kernel of your own is judged by the same ladder: this one computes something else"
set -- scripts/kernels/moe_dispatch_384expert/g*.py
sed 's/2\.827/2.8/' "$2" | sed '/^# ==== kernelgen/d' > mine.py
run kernelgen judge mine.py target=moe_dispatch_384expert || true

say "What was learned, and what happened"
run kernelgen constraints list severity=hard target=moe_dispatch_384expert
run kernelgen log list limit=8

say "Replay every generation from the log alone, and verify the log"
run kernelgen replay --all
run kernelgen log verify

printf '\nThe candidates are in %s/scripts/kernels, the log is %s/events.db, the constraints are %s/constraints.jsonl.\n' \
    "$folder" "$folder" "$folder"
