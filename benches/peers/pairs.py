"""The tables of llama_cpp.sh. A table is a list of pairs: a measurement of ours and one of the peer's, in turns."""

import argparse
import json
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import weights

options = argparse.ArgumentParser()
for name in ["table", "rounds", "threads", "llama", "work", "mettle"]:
    options.add_argument(f"--{name}", required=True)
options = options.parse_args()
ROUNDS, THREADS, LLAMA, WORK = int(options.rounds), options.threads, Path(options.llama), Path(options.work)


def output(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def bench(*arguments):
    """`mettle bench --json` with these arguments, run once."""
    return json.loads(output([options.mettle, "bench", *arguments, "--threads", THREADS, "--offline", "--json"]))


def ours(model, prefill=None, context=None, answer=128):
    """Tokens/s, and the share of the roofline."""
    if prefill:
        settings = ["--only", "prefill", "--prompt", prefill]
    else:
        settings = ["--only", "decode", "--context", context, "--batch", 1, "--answer", answer]
    row = bench(model, *settings, "--repeat", 1)["rows"][0]
    return row["tokens_per_second"]["median"], row["share_of_roofline"]


def theirs(model, prefill=0, context=0, answer=128):
    command = [LLAMA / "llama-bench", "-m", model, "-t", THREADS, "-r", 1, "-o", "json", "-p", prefill]
    rows = json.loads(output([*command, "-n", 0 if prefill else answer, "-d", 0 if prefill else context]))
    return rows[0]["avg_ts"], None


def starter():
    said = output([options.mettle, "pull", "smollm2-135m"])
    return Path(said.split(" is here: ")[1].strip())


WORKLOADS = [
    ("prefill 512", {"prefill": 512}),
    ("decode 128", {"context": 0}),
    ("decode 128 after 4096", {"context": 4096}),
]


def table(title, peer, rows):
    """`rows` are (workload, ours, theirs); each of the latter two measures once and gives (tokens/s, share)."""
    print(f"\n{title}: {THREADS} threads, medians of {ROUNDS} pairs\n")
    print(f"| workload | mettle tokens/s | of the roofline | {peer} tokens/s | ratio | from | to |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for workload, our, their in rows:
        pairs = [(our(), their()) for _ in range(ROUNDS)]
        ratios = [a / b for (a, _), (b, _) in pairs]
        a, b = (statistics.median(pair[side][0] for pair in pairs) for side in (0, 1))
        shares = [share for (_, share), _ in pairs if share]
        share = f"{100 * statistics.median(shares):.0f} %" if shares else ""
        ratio, low, high = statistics.median(ratios), min(ratios), max(ratios)
        print(f"| {workload} | {a:.1f} | {share} | {b:.1f} | {ratio:.2f} | {low:.2f} | {high:.2f} |", flush=True)


def beside_llama_bench(title, own, peer, workloads=WORKLOADS):
    rows = [(name, lambda s=settings: ours(own, **s), lambda s=settings: theirs(peer, **s)) for name, settings in workloads]
    table(title, "llama.cpp", rows)


def model():
    path = starter()
    beside_llama_bench(f"{path.name}, the same file", path, path)


def floats():
    """The starter's weights as floats, in a GGUF."""
    path = WORK / "starter-f16.gguf"
    if not path.exists():
        output([LLAMA / "llama-quantize", "--allow-requantize", starter(), path, "F16"])
    return path


def mlx_4_bit(group):
    folder = WORK / f"starter-mlx-4bit-g{group}"
    if not (folder / "config.json").exists():
        weights.mlx_of_gguf(floats(), folder, group)
    return folder


def q4_0():
    path = WORK / "starter-q4_0.gguf"
    if not path.exists():
        output([LLAMA / "llama-quantize", floats(), path, "Q4_0"])
    for group in [64, 32]:
        beside_llama_bench(f"the starter as MLX 4-bit g{group} beside Q4_0", mlx_4_bit(group), path)


def shapes():
    for name, shape in weights.SHAPES.items():
        own, peer = WORK / f"{name}-mlx-4bit-g64", WORK / f"{name}-q4_0.gguf"
        if not (own / "config.json").exists():
            weights.random_mlx(shape, own)
        if not peer.exists():
            weights.random_gguf(shape, peer)
        beside_llama_bench(f"random weights, {name}: MLX 4-bit g64 beside Q4_0", own, peer, WORKLOADS[:2])


class Serving:
    """A server process while the block lasts."""

    def __init__(self, command):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [str(part) for part in [*command, "--port", port]]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        for _ in range(600):
            if self.process.poll() is not None:
                sys.exit(f"it ended before it served: {' '.join(self.process.args)}")
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=1)
                return self
            except OSError:
                time.sleep(0.1)
        sys.exit(f"it does not serve: {' '.join(self.process.args)}")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def memory(self):
        """Resident MB now and at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return [int(re.search(rf"{key}:\s+(\d+) kB", status)[1]) / 1000 for key in ("VmRSS", "VmHWM")]


def llama_server(path, context):
    return [LLAMA / "llama-server", "-m", path, "-t", THREADS, "-c", context, "-np", 8]


def http():
    path, answer = starter(), 256
    print(f"\n{path.name} over HTTP, {answer} tokens each: {THREADS} threads, medians of {ROUNDS} pairs\n")
    print("| requests at once | mettle tokens/s | first token | llama-server tokens/s | first token | ratio | from | to |")
    print("|---|---|---|---|---|---|---|---|")
    with Serving(llama_server(path, 8 * 1024)) as server:
        settings = ["--prompt", 64, "--answer", answer, "--concurrency", "1,8", "--repeat", ROUNDS]
        report = bench(path, "--against", server.url, *settings)
    for a, b, ratio in zip(report["rows"][0::2], report["rows"][1::2], report["ratios"]):
        cells = [a["streams"]]
        for row in (a, b):
            short = [run["answer_tokens"] for run in row["runs"] if run["answer_tokens"] != row["streams"] * answer]
            if short:
                print(f"not all answers had {answer} tokens: {row['server']} gave {short} together", file=sys.stderr)
            cells += [f"{row['tokens_per_second']['median']:.1f}", f"{1000 * row['first_token_seconds']['median']:.0f} ms"]
        cells += [f"{ratio[key]:.2f}" for key in ("median", "min", "max")]
        print("|", " | ".join(map(str, cells)), "|")


def memory():
    """llama-server takes its 16k tokens of cache at the start, mettle takes pages as they fill: so both are filled."""
    path, prompt, answer = starter(), 1856, 128
    print(f"\n{path.name}: MB resident with 8 conversations at once of about {prompt} + {answer} tokens (16k in all)\n")
    print("| | loaded | after | at most |\n|---|---|---|---|")
    servers = {
        "mettle serve --parallel 8": [options.mettle, "serve", path, "--parallel", 8, "--threads", THREADS, "--offline"],
        "llama-server -c 16384 -np 8": llama_server(path, 16384),
    }
    for name, command in servers.items():
        with Serving(command) as server:
            loaded = server.memory()[0]
            settings = ["--prompt", prompt, "--answer", answer, "--concurrency", 8, "--repeat", 1]
            bench("--against", server.url, *settings)
            after, most = server.memory()
            print(f"| {name} | {loaded:.0f} | {after:.0f} | {most:.0f} |", flush=True)


def mlx_lm():
    folder = mlx_4_bit(64)

    def theirs(**settings):
        command = [sys.executable, Path(__file__).with_name("mlx_lm_once.py"), folder]
        return float(output([*command, *(f"{key}={value}" for key, value in settings.items())])), None

    # A few tokens: it is about a hundred times slower.
    workloads = [("prefill 64", {"prefill": 64}), ("decode 8", {"context": 0, "answer": 8})]
    rows = [(name, lambda s=s: ours(folder, **s), lambda s=s: theirs(**s)) for name, s in workloads]
    table("the starter as MLX 4-bit g64 beside mlx-lm on mlx[cpu]", "mlx-lm", rows)


TABLES = {"model": model, "q4_0": q4_0, "shapes": shapes, "http": http, "memory": memory, "mlx_lm": mlx_lm}
if options.table not in TABLES:
    sys.exit(f"{options.table} is no table; there are {', '.join(TABLES)}")
TABLES[options.table]()
