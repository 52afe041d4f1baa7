#!/bin/sh
# restart.sh STATE: kills the server of `serve.mjs NAME --state STATE --supervise` as a crash would (SIGKILL), and
# returns when its successor listens on the same port. For `restart` of the tester's settings.
set -eu
file="$1.pid"
before=$(cat "$file")
kill -9 "${before%% *}"
tries=600
while [ "$(cat "$file")" = "$before" ]; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || { echo "restart.sh: no successor of ${before%% *}" >&2; exit 1; }
  sleep 0.05
done
