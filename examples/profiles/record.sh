#!/bin/sh
# Records one call of a target's naive champion in every format kernelgen reads, on a machine with an NVIDIA GPU, torch,
# triton and Nsight Compute:
#
#   sh examples/profiles/record.sh OUT [TARGET DIM=EXTENT...]
#
# OUT gets NAME.ncu-rep and its raw and details pages, NAME.torch_trace.json and NAME.hatchet.
set -eu

out=$1
shift
[ $# -gt 0 ] || set -- moe_dispatch_384expert T=64
name=$1
PYTHONPATH=$(cd "$(dirname "$0")/../.." && pwd)${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
mkdir -p "$out"

python3 -m kernelgen.ladder.profiling "$@" --with torch --out "$out/$name.torch_trace.json"
python3 -m kernelgen.ladder.profiling "$@" --with proton --out "$out/$name.hatchet"
${NCU:-ncu} --clock-control none --set full --profile-from-start off --target-processes all -f -o "$out/$name" \
    python3 -m kernelgen.ladder.profiling "$@" --with ncu
${NCU:-ncu} --import "$out/$name.ncu-rep" --page raw --csv --print-units base > "$out/$name.ncu_raw.csv"
${NCU:-ncu} --import "$out/$name.ncu-rep" --page details --csv > "$out/$name.ncu_details.csv"
ls -l "$out"
