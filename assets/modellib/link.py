"""What Emscripten does: the runtime once, and the link of a library."""

import os
import shutil
import subprocess
import sysconfig

from shape import NO_EMCC, Refused

COMPILE = ["-Os", "-std=c++17", "-DNDEBUG", "-Wno-ignored-attributes", "-I.", "-Iinclude", "-I3rdparty/tvm-ffi/include"]
# Undefined symbols are the two callbacks that the page supplies. The memory grows; it starts where a small model fits.
LINK = [
    "-O1", "--no-entry", "-sWASM_BIGINT=1", "-sERROR_ON_UNDEFINED_SYMBOLS=0", "-sSTANDALONE_WASM=1", "-sALLOW_MEMORY_GROWTH=1",
    "-sINITIAL_MEMORY=32MB", "-Wl,--strip-all",
]


def version(emcc):
    try:
        done = subprocess.run([emcc, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Refused(f"emcc does not run: {error}", NO_EMCC) from error
    return done.stdout.splitlines()[0]


def run(emcc, arguments, folder):
    """Runs emcc in folder, so that its output has no path of this machine."""
    done = subprocess.run(
        [emcc, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"emcc failed ({done.returncode}): {first_error(done.stderr)}\n{done.stderr}")


def first_error(log):
    lines = [line for line in log.splitlines() if "error" in line.lower()]
    return lines[0].strip() if lines else "it said nothing"


def runtime(emcc, sources, folder):
    """Compiles the runtime in folder from the wheel's sources, overlaid with ours; returns the object's path."""
    site = sysconfig.get_path("purelib")
    for package, path, to in [
        ("tvm", "include", "include"),
        ("tvm", "src/runtime", "src/runtime"),
        ("tvm", "web/emcc/webgpu_runtime.cc", "web/emcc/webgpu_runtime.cc"),
        ("tvm_ffi", "include", "3rdparty/tvm-ffi/include"),
        ("tvm_ffi", "src", "3rdparty/tvm-ffi/src"),
    ]:
        copy(os.path.join(site, package, path), os.path.join(folder, to))
    copy(sources, folder)
    run(emcc, [*COMPILE, "-c", "runtime.cc", "-o", "runtime.o"], folder)
    return os.path.join(folder, "runtime.o")


def copy(source, to):
    if os.path.isdir(source):
        shutil.copytree(source, to, dirs_exist_ok=True)
        return
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copyfile(source, to)


def library(emcc, objects, folder):
    """Links object files in folder, named relative to it; returns the library's path."""
    run(emcc, [*LINK, *objects, "-o", "library.wasm"], folder)
    return os.path.join(folder, "library.wasm")
