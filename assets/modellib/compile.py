"""Compiles the model library that WebLLM needs beside a model's weights.

    compile.py --shape SHAPE.json --kernels software|gpu|mlc --sort partial|full --cache DIR --out OUT.wasm
    compile.py --runtime-only --cache DIR

With --owned, it and its children end when its standard input ends.

Progress goes to stderr, in lines that begin with "step: ". A failure is a line that begins with "error: ", then the output of the
tool. Exit codes: 1 failure, 3 missing Python packages, 4 no emcc, 5 bad shape.

Results are cached under a hash of all inputs. Files are written aside and renamed, so several compilers can run at once.
"""

import argparse
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from importlib import metadata

import link
import shape as shapes

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    sys.dont_write_bytecode = True
    options = parse()
    if options.owned:
        threading.Thread(target=end_with_owner, daemon=True).start()
    try:
        build(options)
    except shapes.Refused as refused:
        print(f"error: {refused}", file=sys.stderr)
        return refused.code
    return 0


def parse():
    parser = argparse.ArgumentParser(description="compile a model library for WebLLM")
    parser.add_argument("--shape", help="the model's shape, a JSON file")
    parser.add_argument("--kernels", choices=shapes.KERNELS, default="software", help="for an adapter computed on a CPU, for a GPU, or as MLC has them")
    parser.add_argument("--sort", choices=shapes.SORTS, default="partial", help="how much of the probabilities is put in order")
    parser.add_argument("--cache", required=True, help="folder that keeps what was compiled")
    parser.add_argument("--out", help="the library to write")
    parser.add_argument("--emcc", default="emcc", help="the Emscripten compiler")
    parser.add_argument("--runtime-only", action="store_true", help="compile the runtime into the cache, no library")
    parser.add_argument("--owned", action="store_true", help="end when standard input ends, and kill the own process group")
    options = parser.parse_args()
    if not options.runtime_only and not (options.shape and options.out):
        parser.error("--shape and --out are needed")
    return options


def end_with_owner():
    """Waits for the end of whoever holds the other end of standard input, then kills this process and its children."""
    os.read(0, 1)  # not sys.stdin, whose lock blocks the exit
    if hasattr(os, "getpgrp") and os.getpgrp() == os.getpid():  # otherwise the group has other processes
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def build(options):
    shape = None if options.runtime_only else shapes.load(options.shape)
    variant = {"kernels": options.kernels, "sort": options.sort}
    if shape is not None and options.kernels == "mlc":
        shapes.check_mlc(shape)
    os.makedirs(options.cache, exist_ok=True)
    tools = [link.version(options.emcc), *packages()]
    runtime_key = digest([*tools, *link.COMPILE, *files(os.path.join(HERE, "runtime"))])
    runtime = os.path.join(options.cache, f"runtime-{runtime_key}.o")
    if shape is None:
        keep(runtime, "runtime", lambda folder: link.runtime(options.emcc, os.path.join(HERE, "runtime"), folder))
        return
    key = digest([runtime_key, *link.LINK, *files(HERE), shapes.canonical(shape, variant)])
    library = os.path.join(options.cache, f"library-{key}.wasm")
    if not os.path.exists(library):
        keep(runtime, "runtime", lambda folder: link.runtime(options.emcc, os.path.join(HERE, "runtime"), folder))
        keep(library, "library", lambda folder: compile_library(options.emcc, shape, variant, runtime, folder))
    place(library, options.out)


def packages():
    """The pinned packages, after checking that these versions are installed."""
    with open(os.path.join(HERE, "requirements.txt"), encoding="utf-8") as file:
        pins = [line.strip() for line in file if "==" in line]
    for name, wanted in (pin.split("==") for pin in pins):
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError as error:
            raise shapes.Refused(f"the Python package {name} {wanted} is not installed", shapes.NO_PACKAGES) from error
        if found != wanted:
            raise shapes.Refused(f"the Python package {name} is {found}, {wanted} is needed", shapes.NO_PACKAGES)
    return pins


def compile_library(emcc, shape, variant, runtime, folder):
    import library  # takes a second

    objects = library.objects(shape, variant, folder)
    say("linking")
    os.symlink(os.path.abspath(runtime), os.path.join(folder, "runtime.o"))
    return link.library(emcc, [*objects, "runtime.o"], folder)


def keep(path, what, make):
    """Makes the file at path in a temporary folder, unless it exists."""
    if os.path.exists(path):
        return
    say(f"compiling the {what}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="modellib-") as folder:
        place(make(folder), path)
    say(f"{what} compiled in {time.monotonic() - began:.1f} s")


def place(source, to):
    """Copies a file atomically."""
    descriptor, aside = tempfile.mkstemp(prefix=".aside-", dir=os.path.dirname(os.path.abspath(to)))
    os.close(descriptor)
    try:
        shutil.copyfile(source, aside)
        os.chmod(aside, 0o644)
        os.rename(aside, to)
    except BaseException:
        os.unlink(aside)
        raise


def files(folder):
    """Names and contents of everything in folder, in a fixed order."""
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            path = os.path.join(base, name)
            with open(path, "rb") as file:
                yield f"{os.path.relpath(path, folder)} {hashlib.sha256(file.read()).hexdigest()}"


def digest(parts):
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def say(line):
    print(f"step: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
