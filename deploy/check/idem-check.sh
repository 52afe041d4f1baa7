#!/bin/sh
# One step of a CI job: waits for the API, tests it, and leaves the reports.
#   URL      base URL of the API (required)
#   CONFIG   the file of idem-check (idem-check.yaml)
#   PROFILE  ietf, stripe, acp, ucp or custom (the file's)
#   REPORTS  folder for report.json, report.xml, report.sarif, report.html and badge.svg (reports)
#   WAIT     seconds to wait until the API answers (60)
#   ARGS     more arguments, such as --i-own-this or --insecure
# Runs idem-check, or idem check where only idem is installed. Its exit code: 0 pass, 1 findings, 2 wrong usage,
# 3 no answer, 5 ended early.
set -eu
[ -n "${URL:-}" ] || { echo "URL is not set: the base URL of the API, such as http://127.0.0.1:8080" >&2; exit 2; }
reports=${REPORTS:-reports}
mkdir -p "$reports"

set -- "$URL" --config "${CONFIG:-idem-check.yaml}" --json "$reports/report.json" \
  --junit "$reports/report.xml" --sarif "$reports/report.sarif" --html "$reports/report.html" \
  --badge "$reports/badge.svg"
[ "${WAIT:-60}" = 0 ] || set -- "$@" --wait "${WAIT:-60}s"
[ -z "${PROFILE:-}" ] || set -- "$@" --profile "$PROFILE"
# shellcheck disable=SC2086 # ARGS has several arguments.
if command -v idem-check > /dev/null; then
  exec idem-check "$@" ${ARGS:-}
elif command -v idem > /dev/null; then
  exec idem check "$@" ${ARGS:-}
fi
echo "neither idem-check nor idem is installed: install the package idem-check" >&2
exit 2
