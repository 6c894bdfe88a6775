#!/usr/bin/env bash
# Starts the scripted vendor and a LiteLLM proxy before it, until stdin is closed: whoever started this takes both
# with him, however he ends.
#
# usage: start.sh VENV CONFIG PORT DIRECTORY
# The proxy listens on 127.0.0.1:PORT and reads tests/proxy/CONFIG; both write their logs into DIRECTORY, and the
# vendor's port stands in DIRECTORY/vendor.port.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$1 config=$2 port=$3 directory=$4
mkdir -p "$directory"

coproc VENDOR { exec "$venv/bin/python" "$here/upstream.py" 2>"$directory/upstream.log"; }
# the vendor ends with its stdin, which is this process's to close; the proxy must not hold it open
read -r _ vendor_port <&"${VENDOR[0]}"
printf '%s\n' "$vendor_port" >"$directory/vendor.port"

unset DATABASE_URL
export UPSTREAM="http://127.0.0.1:$vendor_port" UPSTREAM_V1="http://127.0.0.1:$vendor_port/v1"
# nothing is fetched at the start
export LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_TELEMETRY=False NO_DOCS=True
cd "$directory" # the proxy may write beside itself
"$venv/bin/litellm" --config "$here/$config" --host 127.0.0.1 --port "$port" --num_workers 1 \
  >"$directory/proxy.log" 2>&1 </dev/null {VENDOR[0]}<&- {VENDOR[1]}>&- &
proxy=$!
trap 'kill "$proxy" 2>/dev/null; for _ in 1 2 3 4 5; do kill -0 "$proxy" 2>/dev/null || exit 0; sleep 1; done; kill -9 "$proxy"' EXIT

# read returns when stdin is closed, or now and then to see whether the proxy has died by itself
while kill -0 "$proxy" 2>/dev/null; do
  read -r -t 1 _ && continue
  [ $? -gt 128 ] || break
done
