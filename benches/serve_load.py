#!/usr/bin/env python3
"""Time of requests to a running service (`fet serve`), next to those of a handler that does nothing in the same server.

    serve_load.py http://127.0.0.1:8787 --rows new.csv [--requests 300] [--rate 50] [--batch 1] [--clients 4] [--rounds 3]

Each request has the next rows of the file, in JSON. With `--rate 0` each client sends as fast as it gets answers. The rounds
alternate between `/v1/predict` and `/healthz`. The script prints percentiles in ms, rows per second and other statuses than 200.
Standard library alone.
"""

import argparse
import csv
import http.client
import json
import threading
import time
from urllib.parse import urlparse


def measured(url, path, bodies, rate, clients):
    """Send the bodies from several clients, and return the times of the requests in ms, the time of all in s, and bad statuses."""
    times, bad, begun = [], [], time.perf_counter()

    def client(first):
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        for number in range(first, len(bodies), clients):
            if rate:
                time.sleep(max(0, begun + number / rate - time.perf_counter()))
            sent = time.perf_counter()
            if path == "/v1/predict":
                connection.request("POST", path, bodies[number], {"Content-Type": "application/json"})
            else:
                connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            times.append(1e3 * (time.perf_counter() - sent))
            if response.status != 200:
                bad.append(response.status)

    threads = [threading.Thread(target=client, args=(first,)) for first in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(times), time.perf_counter() - begun, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--rows", required=True)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with open(given.rows, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    size = given.batch
    bodies = [
        json.dumps({"rows": [rows[(number * size + row) % len(rows)] for row in range(size)]})
        for number in range(given.requests)
    ]
    for _ in range(given.rounds):
        for path in ("/v1/predict", "/healthz"):
            times, seconds, bad = measured(urlparse(given.url), path, bodies, given.rate, given.clients)
            p50, p95, p99 = (times[int(share * (len(times) - 1))] for share in (0.5, 0.95, 0.99))
            count = f"; {len(bodies) * size / seconds:.0f} rows/s" if path == "/v1/predict" else ""
            print(f"{path}: p50 {p50:.2f}, p95 {p95:.2f}, p99 {p99:.2f}, most {times[-1]:.2f} ms{count}; other statuses {bad}")


if __name__ == "__main__":
    main()
