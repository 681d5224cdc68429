#!/bin/bash
# The GPU suite, of a build folder: bounded to 8 minutes, a table last. Where a device or NCCL is
# missing, each test that needs it is skipped by name, with the reason; without any it exits 77.
#
#   tests/gpu/run.sh [BUILD]        BUILD is made if it is not there
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build-gpu}
if [[ ! -e $build/build.ninja ]]; then
  meson setup "$build" "$root" -Dbuildtype=release -Dcuda=enabled -Dnccl=enabled -Dtests=enabled
fi
ninja -C "$build" build.ninja >/dev/null
if ! ninja -C "$build" -t query gpu-parts >/dev/null 2>&1; then
  echo "# skipped: $build is not configured for it (-Dcuda=enabled -Dnccl=enabled -Dtests=enabled)"
  exit 77
fi
ninja -C "$build" gpu-parts
exec timeout -k 10 480 python3 "$root/tests/gpu/suite.py" "$build"
