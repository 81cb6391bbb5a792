#!/usr/bin/env bash
# One redis-server on loopback, append-only file synced every second. Commands: see common.sh.
#   redis.sh start DIR PORT
# Env: SKALDS_REDIS_ARGS='--maxmemory 64mb ...'
set -euo pipefail
name=redis log=redis.log
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

install() {
  command -v redis-server >/dev/null && return
  # A policy-rc.d that answers 101 keeps Debian's package from starting a service of its own on 6379.
  local policy=/usr/sbin/policy-rc.d made=
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod +x "$policy"
    made=1
  fi
  local rc=0
  (apt_install redis-server) || rc=$?
  [[ -z $made ]] || as_root rm -f "$policy"
  return $rc
}

prepare() { mkdir -p "$dir/data"; }

arguments() {
  local extra
  read -ra extra <<<"${SKALDS_REDIS_ARGS:-}"
  argv=(redis-server --bind 127.0.0.1 --port "$port" --daemonize no --dir "$dir/data" --logfile "$log"
    --appendonly yes --appendfsync everysec --save "" --protected-mode no ${extra[@]+"${extra[@]}"})
}

ours() { [[ $(readlink "/proc/$1/cwd") == "$dir/data" ]] && cmdline_has "$1" redis-server; }

ready() {
  grep -q "^$(pid):M .*Ready to accept connections" "$log" 2>/dev/null &&
    (exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'PING\r\n' >&3 && read -r -t 1 answer <&3 && [[ $answer == +PONG* ]]) 2>/dev/null
}

main
