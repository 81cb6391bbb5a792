# Shared by kafka.sh, redis.sh and mongo.sh, which source it: one service process per directory.
#
#   SCRIPT start DIR PORT [...]   start unless it runs, wait until it answers, print "NAME pid PID HOST:PORT"
#   SCRIPT stop DIR               TERM, then KILL after 20 s
#   SCRIPT kill DIR               KILL; the data stays, so that a later start recovers from a crash
#   SCRIPT status DIR             exit code 0 when it runs, 3 when not
#
# PORT 0 takes a free block of ports and keeps it for as long as DIR exists, so that a restart gets the same one.
# DIR holds the data, the logs, `pid` and `addr`. A pid is only ever signalled when /proc says that it is ours.
#
# A script sets `name` and `log`, and defines: install, prepare, arguments (fills the array argv), ours PID, ready.

cmd=${1:-} dir=${2:-} port=${3:-0}
cache=${SKALDS_SERVICES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/skalds-services}
start_timeout=${SKALDS_SERVICES_TIMEOUT:-60}
lowest_port=20000 highest_port=31999 block=4 # below Linux's ephemeral ports, so that no client socket is in the way

fail() { echo "$name: $*" >&2; exit 1; }

usage() { echo "usage: $0 start DIR PORT [VARIANT] | stop DIR | kill DIR | status DIR" >&2; exit 2; }

pid() { cat "$dir/pid" 2>/dev/null; }

alive() { local p; p=$(pid) && [[ -n $p && -r /proc/$p/cmdline ]] && ours "$p" 2>/dev/null; }

# gone PID: all its threads have ended, and with the last one its sockets. An ending process loses its command line, and even its
# first thread, before that.
gone() { ! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/task"/*/status; }

cmdline_has() { tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -- "$2"; }

# listening PORT: something accepts connections there.
listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

as_root() {
  if [[ $EUID -eq 0 ]]; then "$@"
  elif command -v sudo >/dev/null; then sudo -n "$@"
  else fail "needs root to run: $*"; fi
}

# apt_install PACKAGE...: Debian packages, with the lock that keeps two scripts from colliding in apt.
apt_install() {
  mkdir -p "$cache"
  ( flock -w 600 9 && as_root apt-get update -qq &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
  ) >"$dir/install.log" 2>&1 9>"$cache/apt.lock" || { tail -n 20 "$dir/install.log" >&2; fail "apt-get install $* failed"; }
}

# jars TARGET [GROUP:ARTIFACT:VERSION...]: these artifacts and all that they need at run time, once, into TARGET.
# compile_jars, where a script defines it, runs before TARGET counts as complete.
jars() {
  local target=$1; shift
  [[ -e $target/.complete ]] && return
  command -v mvn >/dev/null && command -v javac >/dev/null || apt_install openjdk-17-jdk-headless maven
  mkdir -p "$cache"
  ( flock -w 600 9
    [[ -e $target/.complete ]] && exit 0
    work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
    { echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
      echo '<groupId>skalds.test</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging><dependencies>'
      for artifact; do
        IFS=: read -r group id version <<<"$artifact"
        echo "<dependency><groupId>$group</groupId><artifactId>$id</artifactId><version>$version</version></dependency>"
      done
      echo '</dependencies></project>'; } >"$work/pom.xml"
    rm -rf "$target"
    mvn -q -B -Dstyle.color=never -f "$work/pom.xml" \
      org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
      -DincludeScope=runtime -DoutputDirectory="$target" >"$work/log" 2>&1 </dev/null || { cat "$work/log" >&2; exit 1; }
    if declare -F compile_jars >/dev/null; then compile_jars "$target" || exit 1; fi
    touch "$target/.complete"
  ) 9>"$target.lock" || fail "could not fetch the jars: $*"
}

# free_block: prints the first port of a block that nobody listens on and no other DIR that still exists has taken.
free_block() {
  local taken=$cache/ports base owner p
  mkdir -p "$taken"
  ( flock -w 60 9
    for ((base = lowest_port; base + block - 1 <= highest_port; base += block)); do
      owner=$(cat "$taken/$base" 2>/dev/null) || owner=
      [[ -z $owner || ! -d $owner || $owner == "$dir" ]] || continue
      for ((p = base; p < base + block; p++)); do ! listening "$p" || continue 2; done
      echo "$dir" >"$taken/$base"
      echo "$base"
      exit 0
    done
    exit 1
  ) 9>"$taken/.lock" || fail "no $block free ports between $lowest_port and $highest_port; remove left-over directories named in $taken"
}

logs() { tail -n 30 "$dir/stdout.log" "$log" >&2 2>/dev/null || true; }

start() {
  if ! alive; then
    rm -f "$dir/pid" "$dir/addr"
    install
    [[ -s $dir/port ]] || if [[ $port -eq 0 ]]; then free_block >"$dir/port"; else echo "$port" >"$dir/port"; fi
    port=$(<"$dir/port")
    ! listening "$port" || fail "port $port is taken"
    prepare
    rm -f "$log"
    argv=(); arguments
    setsid nohup "${argv[@]}" >"$dir/stdout.log" 2>&1 </dev/null 8>&- &
    echo $! >"$dir/pid"
  fi
  port=$(<"$dir/port")
  local deadline=$((SECONDS + start_timeout))
  until ready; do
    sleep 0.05
    # Just after the fork /proc still shows this script, so one look is not enough.
    alive || { sleep 0.2; alive; } || { logs; rm -f "$dir/pid"; fail "the process ended while starting"; }
    ((SECONDS < deadline)) || { logs; fail "not ready in $start_timeout s"; }
  done
  echo "127.0.0.1:$port" >"$dir/addr"
  echo "$name pid $(pid) 127.0.0.1:$port"
}

# halt SIGNAL: send it, and KILL if that has not ended the process in 20 s.
halt() {
  local signal=$1 p
  p=$(pid) || p=
  for signal in "$1" KILL; do
    alive || break
    kill "-$signal" "$p" 2>/dev/null || true
    for _ in {1..400}; do gone "$p" && break; sleep 0.05; done
  done
  [[ -z $p ]] || gone "$p" || ! alive || fail "pid $p outlived SIGKILL"
  rm -f "$dir/pid"
}

main() {
  [[ -n $dir ]] || usage
  case $cmd in
  start) mkdir -p "$dir";;
  stop | kill | status) [[ -d $dir ]] || { [[ $cmd != status ]] || { echo stopped; exit 3; }; exit 0; };;
  *) usage;;
  esac
  dir=$(cd "$dir" && pwd)
  log=$dir/$log
  if [[ $cmd != status ]]; then exec 8>"$dir/.lock"; flock -w 300 8 || fail "another start or stop of $dir does not end"; fi
  case $cmd in
  start) start;;
  stop) halt TERM;;
  kill) halt KILL;;
  status) if alive; then echo "running pid $(pid)"; else echo stopped; exit 3; fi;;
  esac
}
