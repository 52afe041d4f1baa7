#!/bin/sh
# One step of a CI job: waits for the API, checks it, and leaves the reports.
#   URL      where the API is (needed)
#   CONFIG   the file of idem-check (idem-check.yaml)
#   PROFILE  ietf, stripe, acp, ucp or custom (the file's)
#   REPORTS  folder for report.json, report.xml, report.sarif, report.html and badge.svg (reports)
#   WAIT     seconds to wait until the API accepts connections (60)
#   ARGS     more arguments, such as --i-own-this
# Its exit code is idem-check's: 0 pass, 1 findings, 2 wrong usage, 3 no answer.
set -eu
program=$(command -v idem-check || true)
[ -n "$program" ] || { echo "idem-check is not installed: install the package idem-check" >&2; exit 2; }
: "${URL:?URL: where the API is, such as http://127.0.0.1:8080}"
reports=${REPORTS:-reports}
mkdir -p "$reports"

left=${WAIT:-60}
until curl -s -o /dev/null --max-time 5 "$URL"; do
  left=$((left - 1))
  [ "$left" -gt 0 ] || { echo "$URL does not answer" >&2; exit 3; }
  sleep 1
done

set -- "$URL" --config "${CONFIG:-idem-check.yaml}" --json "$reports/report.json" --junit "$reports/report.xml" \
  --sarif "$reports/report.sarif" --html "$reports/report.html" --badge "$reports/badge.svg"
[ -z "${PROFILE:-}" ] || set -- "$@" --profile "$PROFILE"
# shellcheck disable=SC2086 # ARGS has several arguments.
exec "$program" "$@" ${ARGS:-}
