#!/usr/bin/env bash
# One mongo-java-server (it speaks MongoDB's wire protocol, and is NOT MongoDB). Commands: see common.sh.
#   mongo.sh start DIR PORT [memory|h2]
#   memory (default): in memory, with what MongoMain.java adds.   h2: data in DIR, kept over a stop, without the additions
# Env: SKALDS_MONGO_HEAP=512m  SKALDS_MONGO_OPLOG=true (change streams; memory only)
set -euo pipefail
name=mongo log=mongo.log backend=${4:-memory} version=1.47.0
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
libs=$cache/mongo-java-server-$version-$(md5sum <"$here/MongoMain.java" | cut -c1-8)

compile_jars() { javac -cp "$1/*" -d "$1" "$here/MongoMain.java"; }

install() {
  jars "$libs" "de.bwaldvogel:mongo-java-server:$version" "de.bwaldvogel:mongo-java-server-h2-backend:$version" \
    org.slf4j:slf4j-simple:2.0.17
}

prepare() { [[ $backend == memory || $backend == h2 ]] || fail "backend $backend: must be memory or h2"; }

arguments() {
  local target=$backend
  [[ $backend != h2 ]] || target=h2:$dir/data.mv
  argv=(java -Xms64m "-Xmx${SKALDS_MONGO_HEAP:-512m}" -XX:+UseSerialGC -Xshare:auto -XX:+ExitOnOutOfMemoryError
    -Dorg.slf4j.simpleLogger.defaultLogLevel=error -Dorg.slf4j.simpleLogger.log.de.bwaldvogel.mongo.wire=off
    "-Dorg.slf4j.simpleLogger.logFile=$log" -Dorg.slf4j.simpleLogger.showDateTime=true
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"
    "-Doplog=${SKALDS_MONGO_OPLOG:-false}" "-Dskalds.dir=$dir"
    -cp "$libs:$libs/*" MongoMain 127.0.0.1 "$port" "$target")
}

ours() { cmdline_has "$1" "-Dskalds.dir=$dir "; }

ready() { grep -q '^ready ' "$dir/stdout.log" 2>/dev/null && listening "$port"; }

main
