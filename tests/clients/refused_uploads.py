"""refused_uploads.js by Python's http.client, or by requests where that is installed.
   python3 refused_uploads.py http.client|requests URL BYTES TIMES [NAME=VALUE...]"""
import collections
import http.client
import sys
import urllib.parse

kind, url, size, times, *given = sys.argv[1:]
body = b"x" * int(size)
headers = dict(field.split("=", 1) for field in given)


def once():
    if kind == "requests":
        import requests

        return requests.post(url, data=body, headers=headers).status_code
    place = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(place.netloc)
    try:
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
