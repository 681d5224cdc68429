# shellcheck shell=bash
# Shared by tools/demo and tools/check: a build folder that is set up as wanted, and built in quiet.

# Runs a command; what it prints is seen when it fails.
quietly() {
  local output status=0
  output=$("$@" 2>&1) || status=$?
  ((status == 0)) || printf '%s\n' "$output" >&2
  return "$status"
}

# configure FOLDER COMPILER [OPTION=VALUE…]
# COMPILER is gcc, clang, or any for a folder whose compiler does not matter.
configure() {
  local folder=$1 compiler=$2 option changed=() environment=()
  shift 2
  if [[ -f $folder/build.ninja ]]; then
    if [[ $compiler != any ]] &&
      ! grep -q "^C++ compiler for the host machine: .*($compiler " "$folder/meson-logs/meson-log.txt"; then
      echo "$folder was set up for another compiler than $compiler: remove it, and run this again" >&2
      return 1
    fi
    for option in "$@"; do
      grep -qx "${option%%=*} = ${option#*=}" "$folder/meson-private/cmd_line.txt" ||
        changed+=("-D$option")
    done
    ((${#changed[@]} == 0)) || quietly meson configure "$folder" "${changed[@]}"
    return
  fi
  if [[ $compiler != any ]]; then
    local launcher
    launcher=$(command -v ccache || true)
    case $compiler in
      gcc) environment=(CC="${launcher:+ccache }gcc" CXX="${launcher:+ccache }g++") ;;
      clang) environment=(CC="${launcher:+ccache }clang" CXX="${launcher:+ccache }clang++") ;;
    esac
  fi
  quietly env "${environment[@]}" meson setup "$folder" "${@/#/-D}"
}

# build FOLDER [TARGET…]
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
