#!/usr/bin/env python3
"""A payment service on MariaDB or MySQL that completes its own record (docs/sql-face-mysql.md).

payments.py serve HOST:PORT        behind a gateway: POST /payments {"amount": 1250}
payments.py pay SCOPE KEY AMOUNT   without one, from the command line

DATABASE_URL: mysql://USER[:PASSWORD]@HOST:PORT/DATABASE of the gateway's store, with the table of payments-mysql.sql.
DIE_AFTER_COMMIT=1: ends the process after its first commit, before it answers.
"""
import contextlib
import http.server
import json
import os
import sys
import urllib.parse
import uuid

import pymysql

LATE = (31001, 31002)  # Stale; settled.
JSON = [["Content-Type", "application/json"]]


def connect():
    url = urllib.parse.urlsplit(os.environ["DATABASE_URL"])
    return contextlib.closing(pymysql.connect(
        host=url.hostname, port=url.port or 3306, user=urllib.parse.unquote(url.username),
        password=urllib.parse.unquote(url.password or ""), database=url.path[1:], charset="utf8mb4"))


def refusal(status, why, *fields):
    return status, JSON + list(fields), json.dumps({"error": why}).encode()


def pay(attempt, amount):
    """Books a payment and stores its answer (status, headers, body), both or neither."""
    payment = "pay_" + uuid.uuid4().hex
    headers = JSON + [["Location", "/payments/" + payment]]
    body = json.dumps({"id": payment, "amount": amount}).encode()
    with contextlib.ExitStack() as stack:
        try:
            connection = stack.enter_context(connect())
            cursor = connection.cursor()
            connection.begin()
            cursor.execute("INSERT INTO payments (id, amount) VALUES (%s, %s)", (payment, amount))
            cursor.execute("CALL idem_complete(%s, %s, %s, %s, %s, %s, '')",
                           (*attempt, 201, json.dumps(headers), body))
        except pymysql.Error as error:
            # No commit was sent, and the error has rolled back: this payment was never made.
            if error.args[0] in LATE:
                return refusal(409, "too late: the record has another attempt, or its answer")
            print(error, file=sys.stderr, flush=True)
            return refusal(503, "not booked, try again", ["Idem-Outcome", "not-executed"])
        # After a failed commit only the record knows the outcome. So there is no answer of ours: the
        # error ends this connection, and the gateway reads the record.
        connection.commit()
    if os.environ.get("DIE_AFTER_COMMIT"):
        os._exit(9)
    return 201, headers, body


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        attempt = tuple(self.headers.get("Idem-" + n) for n in ("Operation", "Fence", "Attempt"))
        try:
            amount = json.loads(request)["amount"]
        except (ValueError, TypeError, KeyError):
            amount = None
        if self.path != "/payments":
            answer = refusal(404, "there is only /payments")
        elif None in attempt:
            answer = refusal(400, "payments come through the gateway, with an Idempotency-Key")
        elif type(amount) is not int or not 0 < amount < 2**63:
            answer = refusal(422, "amount is a positive integer")
        else:
            answer = pay(attempt, amount)
        status, headers, body = answer
        self.send_response(status)
        for name, value in headers + [["Content-Length", str(len(body))]]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def pay_directly(scope, key, amount):
    # The work is one transaction of this database, and only its completion makes it real. So an attempt
    # that crashed before it did nothing (dispatched 0), and the key runs again after its lease.
    with connect() as connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
        connection.begin()
        cursor.execute("CALL idem_reserve_with(%s, 'create-payment', %s, %s, 60000, 86400000, 2592000000,"
                       " 'unknown', 0, NULL, '')", (scope, key, b"amount=%d" % amount))
        record = cursor.fetchone()
        connection.commit()
    status, body = record["response_status"], record["response_body"]
    if record["outcome"] == "execute":
        status, _, body = pay((record["operation"], record["fence"], record["attempt"]), amount)
    elif record["outcome"] != "replay":
        sys.exit(record["outcome"])
    print(status, body.decode())
    sys.exit(status >= 400)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"] and len(sys.argv) == 3:
        host, port = sys.argv[2].rsplit(":", 1)
        server = http.server.ThreadingHTTPServer((host, int(port)), Service)
        print("listening address=%s:%d role=payments" % server.server_address, flush=True)
        server.serve_forever()
    elif sys.argv[1:2] == ["pay"] and len(sys.argv) == 5:
        pay_directly(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        sys.exit(__doc__)
