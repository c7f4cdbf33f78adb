"""The processes that bench/kernels compares: each prepares works and times calls as it is told (serve.h), and is stopped while another
one runs, so that no thread of its waits spinning."""
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time


class Failed(Exception):
    """A side cannot do a work, or died of it."""


def end_with_parent():
    """A stopped process would outlive us otherwise, with all of its memory."""
    parent_death_signal = 1
    ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


class Side:
    def __init__(self, name, command, environment=None, cpus=None):
        self.name, self.command, self.environment, self.cpus = name, command, environment or {}, cpus
        self.process, self.version, self.about = None, None, {}
        self.computed = self.waited = 0.0  # since prepare(): seconds of all its threads, and seconds that passed

    def environment_of_process(self):
        threads = str(len(self.cpus))
        # OMP_PROC_BIND binds a thread to one CPU as soon as PyTorch is imported, and with it all threads that others make later.
        inherited = {key: value for key, value in os.environ.items() if key != "OMP_PROC_BIND"}
        return inherited | {"NUM_CPU_THREADS": threads, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads,
                             "MKL_NUM_THREADS": threads} | self.environment

    def before_start(self):
        end_with_parent()
        os.sched_setaffinity(0, self.cpus)

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=self.environment_of_process(), start_new_session=True,
                                        preexec_fn=self.before_start)
        self.about = self._answer(120)
        self.version = self.about.get("version", "")

    def _answer(self, timeout):
        ready, _, _ = select.select([self.process.stdout], [], [], timeout)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.close()
            raise Failed("took too long" if not ready else "ended")
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(reply["error"])
        return reply

    def ask(self, request, timeout):
        if self.process is None:
            self.start()
        os.killpg(self.process.pid, signal.SIGCONT)
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            return self._answer(timeout)
        except BrokenPipeError:
            self.close()
            raise Failed("ended") from None
        finally:
            if self.process is not None:
                os.killpg(self.process.pid, signal.SIGSTOP)

    def prepare(self, case):
        """What the side knows of the case, with the seconds of a call."""
        self.computed = self.waited = 0.0
        return self.ask({"do": "prepare", "case": case}, 600)

    def seconds(self, calls):
        computed, waited = self.cpu_seconds(), time.monotonic()
        seconds = self.ask({"do": "time", "calls": calls}, 600)["seconds"]
        self.computed += self.cpu_seconds() - computed
        self.waited += time.monotonic() - waited
        return seconds

    def cpu_seconds(self):
        """Of all threads; in hundredths."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def share_of_cpus_busy(self):
        """On average since prepare(); None where that was too short to tell."""
        return self.computed / self.waited / len(self.cpus) if self.waited > 0.3 else None

    def run_once(self, arguments, cache):
        """What the side prints with these arguments, in a process of its own that keeps kernels in this file: its seconds, and more where
        it tells."""
        try:
            done = subprocess.run([*self.command, *arguments], env=self.environment_of_process() | {"CACHEDB": cache}, capture_output=True, timeout=600,
                                  preexec_fn=self.before_start)
        except subprocess.TimeoutExpired:
            raise Failed("took too long") from None
        if done.returncode:
            raise Failed((done.stderr.decode(errors="replace").strip().splitlines() or [f"ended with {done.returncode}"])[-1])
        return json.loads(done.stdout)

    def release(self):
        """What the side knows better by now."""
        return self.ask({"do": "release"}, 60) if self.process is not None else {}

    def close(self):
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process = None


def peers(build, cpus):
    here = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kernels")
    blas = os.path.join(build, "bench", "kernels_blas")

    # New memory for every result means page faults; ours are reused, so theirs may be.
    keep_memory = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36)}

    def python(name, script, *arguments, **environment):
        return Side(name, [sys.executable, os.path.join(here, script), *arguments], keep_memory | environment, cpus=cpus)
    sides = [Side("OpenBLAS", [blas, "openblas"], cpus=cpus), Side("oneDNN", [blas, "onednn"], cpus=cpus),
             python("torch", "peer_torch.py"), python("torch.oneDNN", "peer_torch.py", "onednn"), python("torch.compile", "peer_torch.py", "compile", TORCHINDUCTOR_COMPILE_THREADS="1"),
             python("JAX", "peer_jax.py", JAX_PLATFORMS="cpu"), python("onnxruntime", "peer_onnx.py"),
             python("tinygrad", "peer_tinygrad.py", DEV="CPU", CC="clang-19", CPU_COUNT=str(len(cpus)))]
    return {side.name: side for side in sides}


def program(build):
    return os.path.join(build, "bench", "kernels_ours")


def ours(name, build, cpus, **environment):
    return Side(name, [program(build)], environment, cpus=cpus)


def compilers(build, cpus):
    """Ours and tinygrad, which schedule, lower and render a model without running it, in one thread."""
    one = set(sorted(cpus)[:1])
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compile", "peer_tinygrad.py")
    return (Side("tg", [os.path.join(build, "bin", "tg"), "compile", "--device", "NULL", "--json"], {"PARALLEL": "0"}, one),
            {"tinygrad": Side("tinygrad", [sys.executable, script], {"CC": "clang-19"}, one)})


def counts_of_threads(cpus):
    """1, 2, 4, 8, 16 and all, as far as there are so many CPUs."""
    return sorted({n for n in (1, 2, 4, 8, 16) if n <= cpus} | {cpus})


def in_order(cpus, core_of):
    """CPUs so that the first n are of n cores, if there are so many: one of each core comes before a second one of any."""
    seen, ranks = {}, {}
    for cpu in sorted(cpus):
        core = core_of(cpu)
        ranks[cpu] = seen[core] = seen.get(core, -1) + 1
    return sorted(cpus, key=lambda cpu: (ranks[cpu], cpu))


def core_of(cpu):
    try:
        with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as file:
            return file.read().strip()
    except OSError:
        return str(cpu)


def cpus_here():
    return in_order(os.sched_getaffinity(0), core_of)


def time_in_turns(sides, first, rounds):
    """Seconds of a call by side, a list each. `first` are rough ones. Sides take turns, in another order each round; one that takes more
    than 5 s a call has 3 of its own, or a single one if that is 20 times as long as the first side's."""
    times = {side: [] for side in sides}
    calls = {side: max(1, min(2000, int(3e-3 / max(first[side], 1e-9)))) for side in sides}
    for i in range(rounds):
        order = sides[i % len(sides):] + sides[:i % len(sides)]
        for side in order:
            if first[side] > 5 and i >= (1 if first[side] > 20 * first[sides[0]] else 3):
                continue
            times[side].append(side.seconds(calls[side]))
            time.sleep(0.001)
    return times
