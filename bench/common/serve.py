"""A side of bench/kernels in Python: the protocol of serve.h."""
import json
import os
import sys
import time

LONG = 5  # seconds


def serve(version, prepare, finish=lambda: None, compiles=False):
    """`prepare(case)` gives a function that computes the case once, or a pair of it and a dict of facts; `finish()` waits for calls that
    have returned before they had computed. Where the first calls do not compile, one that takes long is enough to know how long."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    print(json.dumps({"version": version}), file=out, flush=True)
    call = None
    for line in sys.stdin:
        request, reply = json.loads(line), {}
        try:
            if request["do"] == "prepare":
                call = None
                call, reply = prepare(request["case"]), {}
                if isinstance(call, tuple):
                    call, reply = call
                seconds = seconds_of(call, 1, finish)
                if compiles or seconds < LONG:
                    seconds_of(call, 1, finish)
                    seconds = seconds_of(call, 1, finish)
                reply = reply | {"seconds": seconds}
            elif request["do"] == "time":
                if request["calls"] > 1:
                    seconds_of(call, 1, finish)
                reply = {"seconds": seconds_of(call, request["calls"], finish)}
            else:
                call = None
        except Exception as e:  # whatever a library throws is an answer
            reply = {"error": f"{type(e).__name__}: {e}".splitlines()[0][:300]}
        print(json.dumps(reply), file=out, flush=True)


def seconds_of(call, count, finish):
    start = time.perf_counter()
    for _ in range(count):
        call()
    finish()
    return (time.perf_counter() - start) / count
