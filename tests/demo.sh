#!/usr/bin/env bash
# Runs `nisse demo` as somebody does who has set up nothing: no configuration, no state, no proxy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# where it was built is cargo's to say: a target directory may be set
nisse=$(cargo build --locked --quiet --bin nisse --message-format=json |
  sed -n 's/.*"executable":"\([^"]*\/nisse\)".*/\1/p' | tail -n 1)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT

status=0
(cd "$home" && env -i PATH="$PATH" HOME="$home" timeout 300 "$nisse" demo >"$home/out" 2>&1 </dev/null) || status=$?
cat "$home/out"
# a demo that shows nothing has shown nothing
if [ "$status" -ne 0 ] || [ ! -s "$home/out" ]; then
  echo "demo: failed with status $status" >&2
  exit 1
fi
echo "demo: ok"
