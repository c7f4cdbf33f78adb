#!/usr/bin/env python3
"""Changes backend test cases of the package onnx into unusual and hostile models, runs them, and reports what came of each.

  mutate.py make CASES FOLDER --count 2000 --seed 1   writes the mutants, with onnxruntime's outputs where it takes them
  mutate.py run FOLDER BINARY                         runs them by test_frontend_oracle, and prints what is no right answer nor typed error

A mutant is a folder: the model, its inputs, the expected outputs, and in `what` how it was made.
"""

import argparse
import collections
import json
import multiprocessing
import os
import random
import resource
import shutil
import subprocess
import threading
import time

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

INTEGERS = [0, -1, 1, 2, 3, 4, 5, 7, -2, 31, 257, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -1.0, 1.0, 0.5, 2.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan")]
TEXTS = ["", "foo", "NONE", "constant", "reflect", "edge", "wrap", "linear", "cubic", "nearest", "floor", "ceil", "none", "add", "mul",
         "max", "min", "sum", "mean", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "forward", "reverse", "bidirectional", "tanh",
         "half_pixel", "asymmetric", "align_corners", "tf_crop_and_resize", "RBF", "POLY", "SOFTMAX", "LOGISTIC", "PROBIT", "LEFT",
         "RIGHT", "UPPER", "LOWER", "CRD", "DCR", "circular", "TF", "IDF", "TFIDF", "(a+)+b", "...ij,jk->ik", "ii->i", "border", "L1",
         "L2", "MAX", "gated", "delta", "not_larger", "not_smaller", "output_half_pixel", "zeros", "reflection"]
DTYPES = [np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64, np.bool_]
RANDOM_OPERATORS = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout"}
KIND = AttributeProto


def schema_of(model, node):
    opsets = {o.domain: o.version for o in model.opset_import}
    try:
        return onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
    except Exception:
        return None


class Mutator:
    def __init__(self, rng, model, inputs, mild):
        self.rng, self.model, self.inputs, self.mild = rng, model, inputs, mild
        self.log = []

    def pick(self, items):
        return items[self.rng.randrange(len(items))]

    def integer(self, old=None):
        if self.mild or self.rng.random() < 0.4:
            return self.pick([0, 1, 2, 3, -1, -2] + ([old + 1, old - 1, old * 2] if old is not None else []))
        return self.pick(INTEGERS)

    def clamped(self, x):
        return max(-(2**63), min(2**63 - 1, x))

    def number(self, old=None):
        if self.mild:
            return self.pick([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, -1.0, -0.5])
        return self.pick(FLOATS)

    def text(self, node, name):
        if self.rng.random() < 0.7:  # one that the operator knows
            own = [t for t in VALUES_OF[(node.op_type, name)] if isinstance(t, str)]
            if own:
                return self.pick(own)
        return self.pick(TEXTS)

    def list(self, old, make):
        new = list(old)
        how = self.rng.randrange(6)
        if how == 0 and not self.mild:
            new = new[: self.rng.randrange(len(new) + 1)]
        elif how == 1 and not self.mild:
            new = new + [make(None) for _ in range(self.rng.randrange(1, 3))]
        elif how == 2:
            new = [make(x) for x in new]
        elif how == 3 and not self.mild:
            new = []
        elif new:
            i = self.rng.randrange(len(new))
            new[i] = make(new[i])
        return new

    def attribute(self):
        node = self.pick(list(self.model.graph.node))
        schema = schema_of(self.model, node)
        known = sorted(schema.attributes) if schema else []
        if known and (not node.attribute or self.rng.random() < 0.4):
            name = self.pick(known)
            old = [a for a in node.attribute if a.name == name]
            if not old:
                return self.add_attribute(node, name, schema.attributes[name])
        if not node.attribute:
            return False
        a = self.pick(list(node.attribute))
        self.log.append(f"attribute {node.op_type}.{a.name}")
        if self.rng.random() < 0.08:
            node.attribute.remove(a)
            return True
        if not self.mild and self.rng.random() < 0.08:
            new = helper.make_attribute(a.name, self.pick([1, 1.0, "x", [1, 2], [1.0], ["x"], numpy_helper.from_array(np.zeros(2))]))
            a.CopyFrom(new)
            return True
        if a.type == KIND.INT:
            a.i = self.clamped(self.integer(a.i))
        elif a.type == KIND.FLOAT:
            a.f = self.number(a.f)
        elif a.type == KIND.STRING:
            a.s = self.text(node, a.name).encode()
        elif a.type == KIND.INTS:
            new = [self.clamped(x) for x in self.list(a.ints, self.integer)]
            del a.ints[:]
            a.ints.extend(new)
        elif a.type == KIND.FLOATS:
            new = self.list(a.floats, self.number)
            del a.floats[:]
            a.floats.extend(new)
        elif a.type == KIND.STRINGS:
            new = self.list([s.decode(errors="replace") for s in a.strings], lambda _: self.text(node, a.name))
            del a.strings[:]
            a.strings.extend(s.encode() for s in new)
        elif a.type == KIND.TENSOR and a.t.data_type != TensorProto.STRING:
            try:
                a.t.CopyFrom(numpy_helper.from_array(self.changed(numpy_helper.to_array(a.t))))
            except Exception:
                return False
        elif a.type == KIND.GRAPH:
            if not a.g.node:
                return False
            inner = Mutator(self.rng, helper.make_model(a.g, opset_imports=self.model.opset_import), {}, self.mild)
            if not inner.attribute():
                return False
            a.g.CopyFrom(inner.model.graph)
            self.log += inner.log
        else:
            return False
        return True

    def add_attribute(self, node, name, spec):
        kind = int(spec.type.value) if hasattr(spec.type, "value") else int(spec.type)
        values = {KIND.INT: lambda: self.clamped(self.integer(1)), KIND.FLOAT: self.number, KIND.STRING: lambda: self.text(node, name),
                  KIND.INTS: lambda: [self.clamped(self.integer(1)) for _ in range(self.rng.randrange(1, 5))],
                  KIND.FLOATS: lambda: [self.number() for _ in range(self.rng.randrange(1, 4))],
                  KIND.STRINGS: lambda: [self.text(node, name) for _ in range(self.rng.randrange(1, 4))]}
        if kind not in values:
            return False
        value = values[kind]()
        known = [v for v in VALUES_OF[(node.op_type, name)] if not isinstance(v, bytes)]
        if known and self.rng.random() < 0.5:
            value = self.pick(known)
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind))
        self.log.append(f"new attribute {node.op_type}.{name} = {value!r}")
        return True

    def changed(self, x):
        x = np.array(x)
        if x.size and x.dtype != object:
            flat = x.reshape(-1)
            places = range(x.size) if self.rng.random() < 0.15 else [self.rng.randrange(x.size)]
            for i in places:
                if x.dtype.kind == "f":
                    flat[i] = self.number()
                elif x.dtype.kind in "iu":
                    info = np.iinfo(x.dtype)
                    flat[i] = max(info.min, min(info.max, self.integer(int(flat[i]))))
                elif x.dtype.kind == "b":
                    flat[i] = not flat[i]
        return x

    def plain_input(self):
        names = [n for n, v in self.inputs.items() if isinstance(v, np.ndarray)]
        return self.pick(names) if names else None

    def value(self):
        name = self.plain_input()
        if not name:
            return False
        small = [n for n, v in self.inputs.items() if isinstance(v, np.ndarray) and v.dtype.kind in "iu" and v.size <= 16]
        if small and self.rng.random() < 0.7:
            name = self.pick(small)
        x = self.inputs[name]
        if x.dtype == object:
            return False
        how = self.rng.randrange(8)
        if how == 0 and x.ndim == 1 and not self.mild:
            self.inputs[name] = x[: self.rng.randrange(x.size + 1)]
        elif how == 1 and x.ndim == 1 and not self.mild:
            self.inputs[name] = np.concatenate([x, x[:1]])
        else:
            self.inputs[name] = self.changed(x)
        self.log.append(f"value {name}: {self.inputs[name].reshape(-1)[:8]}")
        return True

    def shape(self):
        name = self.plain_input()
        if not name:
            return False
        x = self.inputs[name]
        shape = list(x.shape)
        how = self.rng.randrange(7)
        if how == 0 and shape:
            shape[self.rng.randrange(len(shape))] = 0
        elif how == 1 and shape:
            shape[self.rng.randrange(len(shape))] += 1
        elif how == 2 and shape:
            shape[self.rng.randrange(len(shape))] = 1
        elif how == 3:
            shape.insert(self.rng.randrange(len(shape) + 1), self.pick([1, 2]))
        elif how == 4 and shape:
            del shape[self.rng.randrange(len(shape))]
        elif how == 5 and not self.mild:
            shape = [1] * (8 - len(shape)) + shape
        elif how == 6 and not self.mild:
            shape = []
        elif shape:
            i = self.rng.randrange(len(shape))
            shape[i] = max(1, shape[i] - 1)
        if int(np.prod(shape)) > 1 << 22:
            return False
        new = np.resize(x, shape) if x.size else np.zeros(shape, x.dtype)
        if int(np.prod(shape)) == 0:
            new = np.zeros(shape, x.dtype)
        self.inputs[name] = new
        self.log.append(f"shape {name}: {x.shape} -> {tuple(shape)}")
        return True

    def dtype(self):
        name = self.plain_input()
        if not name or self.inputs[name].dtype == object:
            return False
        new = self.pick(DTYPES)
        same = [n for n, v in self.inputs.items() if isinstance(v, np.ndarray) and v.dtype == self.inputs[name].dtype]
        for n in same if self.rng.random() < 0.6 else [name]:
            with np.errstate(all="ignore"):
                self.inputs[n] = self.inputs[n].astype(new)
        self.log.append(f"dtype {name}: {new.__name__}")
        return True

    def lack(self):
        node = self.pick(list(self.model.graph.node))
        if not node.input:
            return False
        i = self.rng.randrange(len(node.input))
        if self.rng.random() < 0.3:
            del node.input[i:]
        else:
            node.input[i] = ""
        self.log.append(f"lacks input {i} of {node.op_type}")
        return True

    def more(self):
        node = self.pick(list(self.model.graph.node))
        if self.rng.random() < 0.5 or not node.input:
            node.output.append("more_output")
            self.log.append("an output more")
        else:
            node.input.append(self.pick(list(node.input)))
            self.log.append("an input more")
        return True

    def opset(self):
        node = self.pick(list(self.model.graph.node))
        versions = sorted({s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == node.op_type and s.domain == node.domain})
        if not versions:
            return False
        version = self.pick(versions)
        for o in self.model.opset_import:
            if o.domain == node.domain:
                o.version = version
        self.log.append(f"opset {version} for {node.op_type}")
        return True

    def mutate(self):
        kinds = [self.attribute] * 5 + [self.value] * 5 + [self.shape] * 3 + [self.dtype] * 1
        if not self.mild:
            kinds += [self.lack, self.more]
        if self.rng.random() < 0.1:
            kinds = [self.opset]
        for _ in range(20):
            if self.pick(kinds)():
                return True
        return False


VALUES_OF = collections.defaultdict(list)  # (operator, attribute): values that cases have


def learn(model):
    for node in model.graph.node:
        for a in node.attribute:
            if a.type in (KIND.STRING, KIND.INT, KIND.FLOAT, KIND.INTS, KIND.FLOATS):
                v = helper.get_attribute_value(a)
                VALUES_OF[(node.op_type, a.name)].append(v.decode(errors="replace") if isinstance(v, bytes) else v)


def read_inputs(folder, model):
    """Arrays, or the bytes of what is no tensor that NumPy has."""
    inputs = {}
    for i, info in enumerate(model.graph.input):
        path = os.path.join(folder, "test_data_set_0", f"input_{i}.pb")
        if not os.path.exists(path):
            break
        raw = open(path, "rb").read()
        inputs[info.name] = raw
        if info.type.WhichOneof("value") == "tensor_type":
            t = TensorProto.FromString(raw)
            if t.data_type <= TensorProto.UINT64 and t.data_type not in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
                inputs[info.name] = numpy_helper.to_array(t)
    return inputs


def write_mutant(folder, model, inputs, rng, log):
    for info in list(model.graph.input):
        v = inputs.get(info.name)
        if isinstance(v, np.ndarray):
            info.CopyFrom(helper.make_tensor_value_info(info.name, helper.np_dtype_to_tensor_dtype(v.dtype) if v.dtype != object
                                                        else TensorProto.STRING, None))
            if rng.random() < 0.35:
                model.graph.initializer.append(numpy_helper.from_array(v, info.name))
                model.graph.input.remove(info)
                log.append(f"initializer {info.name}")
                continue
    for info in model.graph.output:
        if info.type.WhichOneof("value") == "tensor_type":
            info.ClearField("type")
    del model.graph.value_info[:]
    os.makedirs(folder)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for i, info in enumerate(model.graph.input):
        v = inputs.get(info.name)
        if v is not None:
            raw = v if isinstance(v, bytes) else numpy_helper.from_array(v, info.name).SerializeToString()
            open(os.path.join(folder, f"input_{i}.pb"), "wb").write(raw)
    open(os.path.join(folder, "what"), "w").write("; ".join(log))


def runtime_worker(pipe):
    """Runs models with onnxruntime, in a process of its own as a hostile one may end it."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    while True:
        folder = pipe.recv()
        try:
            model = onnx.load(os.path.join(folder, "model.onnx"))
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            options.log_severity_level = 4
            session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"), options, providers=["CPUExecutionProvider"])
            feeds = {}
            for i, info in enumerate(model.graph.input):
                t = TensorProto.FromString(open(os.path.join(folder, f"input_{i}.pb"), "rb").read())
                feeds[info.name] = numpy_helper.to_array(t)
            for i, out in enumerate(session.run(None, feeds)):
                if isinstance(out, np.ndarray):
                    open(os.path.join(folder, f"output_{i}.pb"), "wb").write(numpy_helper.from_array(out).SerializeToString())
            pipe.send("ok")
        except BaseException as e:
            pipe.send("refused: " + str(e).replace("\n", " ")[:300])


class Runtime:
    def __init__(self):
        self.process = None

    def run(self, folder, seconds=10):
        if self.process is None:
            self.pipe, other = multiprocessing.Pipe()
            self.process = multiprocessing.get_context("spawn").Process(target=runtime_worker, args=(other,), daemon=True)
            self.process.start()
            other.close()
            seconds += 20
        self.pipe.send(folder)
        try:
            if self.pipe.poll(seconds):
                return self.pipe.recv()
            why = "onnxruntime takes long"
        except (EOFError, OSError):
            why = "onnxruntime ended"
        self.process.kill()
        self.process = None
        for f in os.listdir(folder):
            if f.startswith("output_"):
                os.remove(os.path.join(folder, f))
        return why


def make(args):
    rng = random.Random(args.seed)
    cases = sorted(os.listdir(os.path.join(args.cases, "node")))
    models = {}
    for name in cases:
        model = onnx.load(os.path.join(args.cases, "node", name, "model.onnx"))
        models[name] = model
        learn(model)
    plain = [n for n in cases if "expanded" not in n and "image_decoder" not in n]
    if args.only:
        plain = [n for n in plain if any(o in n for o in args.only.split(","))]
    by_operator = collections.defaultdict(list)
    for n in plain:
        by_operator[models[n].graph.node[-1].op_type].append(n)
    operators = sorted(by_operator)
    shutil.rmtree(args.folder, ignore_errors=True)
    runtime, count, taken = Runtime(), 0, 0
    while count < args.count:
        # Half of the mutants by operator, so that those with few cases are seen.
        name = rng.choice(plain) if rng.random() < 0.5 else rng.choice(by_operator[rng.choice(operators)])
        model = onnx.ModelProto()
        model.CopyFrom(models[name])
        mild = rng.random() < args.mild
        m = Mutator(rng, model, read_inputs(os.path.join(args.cases, "node", name), model), mild)
        m.log.append(name)
        done = [m.mutate() for _ in range(1 if rng.random() < 0.7 else 2)]
        if not any(done):
            continue
        folder = os.path.join(args.folder, str(count))
        try:
            write_mutant(folder, model, m.inputs, rng, m.log)
        except Exception:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        count += 1
        said = "random"
        if not any(n.op_type in RANDOM_OPERATORS for n in model.graph.node):
            said = runtime.run(os.path.abspath(folder))
        taken += said == "ok"
        open(os.path.join(folder, "onnxruntime"), "w").write(said)
    print(f"{count} mutants, onnxruntime takes {taken}")


def run(args):
    count = len(os.listdir(args.folder))
    outcomes, at, lines = {}, 0, open(args.log, "w") if args.log else None
    while at < count:
        environment = dict(os.environ, TG_ONNX_MUTANTS=os.path.abspath(args.folder), TG_ONNX_MUTANT=str(at))
        process = subprocess.Popen([args.binary, "--gtest_filter=OnnxMutants.*"], env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
        state = {"begin": time.time(), "now": at, "long": False}

        def watch():
            while process.poll() is None:
                if time.time() - state["begin"] > args.seconds:
                    state["long"] = True
                    process.kill()
                time.sleep(0.1)

        threading.Thread(target=watch, daemon=True).start()
        tail = collections.deque(maxlen=400)
        for line in process.stdout:
            parts = line.rstrip("\n").split("\t")
            if parts[0] == "begin" and len(parts) == 2:
                state.update(now=int(parts[1]), begin=time.time())
                tail.clear()
            elif parts[0] == "end" and len(parts) >= 5:
                outcomes[int(parts[1])] = (float(parts[2]), int(parts[3]), "\t".join(parts[4:]))
                state["begin"] = time.time()
            else:
                tail.append(line)
        process.wait()
        if state["now"] in outcomes:
            break
        why = "takes long" if state["long"] else f"ended with {process.returncode}"
        outcomes[state["now"]] = (0.0, 0, f"CRASH {why}: " + " | ".join(t.strip() for t in tail if t.strip())[-args.tail:])
        at = state["now"] + 1
    found = collections.Counter()
    for i in sorted(outcomes):
        seconds, memory, outcome = outcomes[i]
        what = open(os.path.join(args.folder, str(i), "what")).read()
        said = open(os.path.join(args.folder, str(i), "onnxruntime")).read()
        kind = outcome.split(":")[0].split(" ")[0]
        notes = []
        if kind in ("CRASH", "untyped", "differs"):
            notes.append(kind)
        if "InternalError" in outcome or "CompileError" in outcome:
            notes.append("internal")
        if seconds > 1:
            notes.append(f"{seconds:.1f} s")
        if memory > 256:
            notes.append(f"{memory} MiB")
        if kind == "error" and said == "ok":
            notes.append("refused by us alone")
        found[notes[0].split(" ")[-1] if notes else kind + (", as onnxruntime" if said == "ok" else "")] += 1
        if notes and lines:
            lines.write(f"{i}\t{', '.join(notes)}\t{what}\t{outcome[:600]}\n")
    print(json.dumps(found, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    p = commands.add_parser("make")
    p.add_argument("cases")
    p.add_argument("folder")
    p.add_argument("--count", type=int, default=1000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--mild", type=float, default=0.5, help="the share of mutants that are merely unusual")
    p.add_argument("--only", help="names of cases, or parts of them, with commas between")
    p.set_defaults(do=make)
    p = commands.add_parser("run")
    p.add_argument("folder")
    p.add_argument("binary")
    p.add_argument("--seconds", type=float, default=20, help="the time of one mutant")
    p.add_argument("--log", help="a file for what is reported, a line each")
    p.add_argument("--tail", type=int, default=1200)
    p.set_defaults(do=run)
    args = parser.parse_args()
    args.do(args)


if __name__ == "__main__":
    main()
