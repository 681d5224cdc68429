#!/usr/bin/env bash
# A build folder that is set up as wanted, and built; for tools/demo and tools/check. What the commands
# print is shown on a terminal, and otherwise only when they fail.
#
# usage: tools/build.sh configure FOLDER COMPILER [OPTION=VALUE]…
#            COMPILER is gcc, clang, or empty where it does not matter
#        tools/build.sh build FOLDER [TARGET]…
set -euo pipefail
unset CDPATH
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Else ccache would not keep what is compiled with precompiled headers; and clang would refuse a header that
# ccache kept from an older clone, because its source has another time of change now.
export CCACHE_SLOPPINESS=pch_defines,time_macros
for_ccache='-Xclang -fno-pch-timestamp'

# Runs a command; what it prints is seen when it fails.
quietly() {
  local output status=0
  output=$("$@" 2>&1) || status=$?
  ((status == 0)) || printf '%s\n' "$output" >&2
  return "$status"
}

# Whether the folder's last configuration printed a line of this pattern.
configured_with() { grep -q "$2" "$1/meson-logs/meson-log.txt" 2>/dev/null; }

configure() {
  local folder=$1 compiler=$2 option cache='' changed=() environment=()
  shift 2
  if [[ ! -f $folder/build.ninja ]]; then
    ! command -v ccache >/dev/null || cache='ccache '
    case $compiler in
      gcc) environment=(CC="${cache}gcc" CXX="${cache}g++") ;;
      clang) environment=(CC="${cache}clang" CXX="${cache}clang++${cache:+ $for_ccache}") ;;
    esac
    quietly env "${environment[@]}" meson setup "$folder" "${@/#/-D}"
    return
  fi
  if ! configured_with "$folder" "^Source dir: $(pwd -P)$" ||
    ! configured_with "$folder" "^C++ compiler for the host machine: .*(${compiler:-.*} "; then
    echo "$folder was set up in another place or for another compiler: remove it, and try again" >&2
    return 1
  fi
  for option in "$@"; do
    grep -qx "${option%%=*} = ${option#*=}" "$folder/meson-private/cmd_line.txt" ||
      changed+=("-D$option")
  done
  ((${#changed[@]} == 0)) || quietly meson configure "$folder" "${changed[@]}"
  quietly ninja -C "$folder" --quiet build.ninja # its list of tests is that of today's meson.build
}

build() {
  local folder=$1
  shift
  echo "building $folder"
  if [[ -t 1 ]]; then
    ninja -C "$folder" "$@"
  else
    quietly ninja -C "$folder" --quiet "$@"
  fi
}

case ${1-} in
  configure | build) "$@" ;;
  *) echo "tools/build.sh: the first word is configure or build" >&2 && exit 2 ;;
esac
