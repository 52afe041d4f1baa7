"""refused_uploads.js by Python's http.client, or by requests where that is installed.
   python3 refused_uploads.py http.client|slow|requests URL BYTES TIMES [NAME=VALUE...]
slow: http.client that sends all but 300 bytes only once the answer has come."""
import collections
import http.client
import select
import sys
import urllib.parse

kind, url, size, times, *given = sys.argv[1:]
body = b"x" * int(size)
headers = dict(field.split("=", 1) for field in given)


def late(connection):
    yield body[:300]
    select.select([connection.sock], [], [], 30)
    yield body[300:]


def once():
    if kind == "requests":
        import requests

        return requests.post(url, data=body, headers=headers).status_code
    place = urllib.parse.urlsplit(url)
    secure = place.scheme == "https"
    connection = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(place.netloc)
    try:
        if kind == "slow":
            fields = {"Content-Length": size, **headers}
            connection.request("POST", place.path, body=late(connection), headers=fields)
        else:
            connection.request("POST", place.path, body=body, headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


outcomes = collections.Counter()
for _ in range(int(times)):
    try:
        outcomes[once()] += 1
    except Exception as error:  # Whatever it is, it is counted.
        outcomes[type(error).__name__] += 1
for outcome, count in outcomes.items():
    print(outcome, count)
