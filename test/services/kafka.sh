#!/usr/bin/env bash
# One real Apache Kafka broker (KRaft: broker and controller in one process). Commands: see common.sh.
#   kafka.sh start DIR PORT [VERSION]      VERSION 4.4 (default), 3.9, or any full version of the broker
# PORT is plaintext, PORT+1 SASL without TLS (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; user skalds, password skalds-secret),
# PORT+2 the controller's own. Topics are not created by being named.
# Env: SKALDS_KAFKA_HEAP=256m  SKALDS_KAFKA_JVM_ARGS='...'  SKALDS_KAFKA_PROPERTIES='key=value\nkey=value'
set -euo pipefail
name=kafka log=kafka.log version=${4:-4.4}
case $version in 3.9) version=3.9.2;; 4.4) version=4.4.0;; esac
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
libs=$cache/kafka-$version
user=skalds password=skalds-secret

install() {
  # Kafka's tarball has a logging backend; its Maven pom has none.
  case $version in
  3.*) jars "$libs" "org.apache.kafka:kafka_2.13:$version" org.slf4j:slf4j-reload4j:1.7.36;;
  *) jars "$libs" "org.apache.kafka:kafka_2.13:$version" org.apache.logging.log4j:log4j-slf4j-impl:2.25.5;;
  esac
}

server_properties() {
  cat <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 2))
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$port,SASL://127.0.0.1:$((port + 1)),CONTROLLER://127.0.0.1:$((port + 2))
advertised.listeners=PLAINTEXT://127.0.0.1:$port,SASL://127.0.0.1:$((port + 1))
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_$user="$password";
listener.name.sasl.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
log.dirs=$dir/data
auto.create.topics.enable=false
num.partitions=1
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
num.network.threads=2
num.io.threads=4
num.recovery.threads.per.data.dir=2
log.cleaner.dedupe.buffer.size=8388608
log.segment.bytes=67108864
log.index.size.max.bytes=1048576
message.max.bytes=1048588
# A broker that comes back after SIGKILL waits for its old registration to end; the default of 9 s makes that slow.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
END
  [[ $version == 3.* ]] || printf '%s\n' share.coordinator.state.topic.replication.factor=1 \
    share.coordinator.state.topic.min.isr=1 share.coordinator.state.topic.num.partitions=1
  printf '%b\n' "${SKALDS_KAFKA_PROPERTIES:-}"
}

logging_properties() {
  if [[ $version == 3.* ]]; then
    cat <<END
log4j.rootLogger=WARN, F
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.logger.org.apache.kafka.server.common.ServerInfo=ERROR
log4j.appender.F=org.apache.log4j.RollingFileAppender
log4j.appender.F.File=$log
log4j.appender.F.MaxFileSize=20MB
log4j.appender.F.MaxBackupIndex=2
log4j.appender.F.layout=org.apache.log4j.PatternLayout
log4j.appender.F.layout.ConversionPattern=%d %p %m (%c)%n
END
  else
    cat <<END
status=error
appender.f.type=RollingFile
appender.f.name=F
appender.f.fileName=$log
appender.f.filePattern=$log.%i
appender.f.layout.type=PatternLayout
appender.f.layout.pattern=%d %p %m (%c)%n
appender.f.policies.type=Policies
appender.f.policies.size.type=SizeBasedTriggeringPolicy
appender.f.policies.size.size=20MB
rootLogger.level=warn
rootLogger.appenderRef.f.ref=F
logger.k.name=kafka.server.KafkaRaftServer
logger.k.level=info
END
  fi
}

java_options() {
  local logging=log4j2.configurationFile
  [[ $version != 3.* ]] || logging=log4j.configuration
  argv=(java -XX:+UseSerialGC -Xshare:auto -Djava.awt.headless=true "-D$logging=file:$dir/logging.properties")
}

# prepare writes the configuration, and formats the data directory once, with both SCRAM users.
prepare() {
  server_properties >"$dir/server.properties"
  logging_properties >"$dir/logging.properties"
  [[ ! -e $dir/data/meta.properties ]] || return 0
  local argv
  java_options
  # 16 bytes in URL-safe base64, with letters for its two signs: an id that begins with "-" is taken for an option.
  local id
  id=$(head -c16 /dev/urandom | base64 | tr '+/' 'Aa' | tr -d =)
  "${argv[@]}" -XX:TieredStopAtLevel=1 -Xmx128m -cp "$libs/*" kafka.tools.StorageTool format \
    -t "$id" -c "$dir/server.properties" \
    --add-scram "SCRAM-SHA-256=[name=$user,password=$password]" \
    --add-scram "SCRAM-SHA-512=[name=$user,password=$password]" \
    >"$dir/format.log" 2>&1 || { cat "$dir/format.log" >&2; fail "could not format $dir/data"; }
}

arguments() {
  local extra
  read -ra extra <<<"${SKALDS_KAFKA_JVM_ARGS:-}"
  java_options
  argv+=(-Xms32m "-Xmx${SKALDS_KAFKA_HEAP:-256m}" -XX:+ExitOnOutOfMemoryError ${extra[@]+"${extra[@]}"}
    -cp "$libs/*" kafka.Kafka "$dir/server.properties")
}

ours() { cmdline_has "$1" "kafka.Kafka $dir/server.properties"; }

ready() { grep -q 'Kafka Server started' "$log" 2>/dev/null && listening "$port"; }

main
