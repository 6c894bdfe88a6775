#!/usr/bin/env bash
# Runs `nisse demo` as somebody does who has set up nothing: no configuration, no state, no proxy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --locked --quiet --bin nisse
# where it was built is cargo's to say: a target directory may be set
nisse=$(cargo build --locked --quiet --bin nisse --message-format=json |
  sed -n 's/.*"executable":"\([^"]*\/nisse\)".*/\1/p' | tail -n 1)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT

if (cd "$home" && env -i PATH="$PATH" HOME="$home" timeout 300 "$nisse" demo >"$home/out" 2>&1 </dev/null); then
  echo "demo: ok"
else
  status=$?
  cat "$home/out"
  echo "demo: failed with status $status" >&2
  exit 1
fi
