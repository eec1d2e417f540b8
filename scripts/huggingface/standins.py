"""Writes stand-ins for the CUDA libraries that PyPI's torch for Linux on x86-64 links and a CPU never calls: 2 GB less.

usage: standins.py SITE_PACKAGES    (needs cc and readelf)

The loader refuses torch while a library that it names, or a function that it imports, is missing. A stand-in has each of
them; all return an error, so that torch finds no GPU. It is for libraries that are neither in the environment nor on the
machine.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CUDA = re.compile(r"lib(cu|nv|nccl)\w*\.so")
# What a function of a CUDA library is called. Some libraries do not version theirs, so nothing says where they belong.
FUNCTION = re.compile(r"(cu|nv|nccl)[A-Za-z]*[A-Z_]\w*")
NO_DEVICE = 100  # cudaErrorNoDevice, and an error of every other of these libraries
# torch opens these itself, if there is a GPU.
OPENED_LATER = {"libcaffe2_nvrtc.so", "libtorch_cuda_linalg.so"}


def readelf(path, *options):
    done = subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


class Library:
    """What a shared library needs and defines."""

    def __init__(self, path):
        self.needs = [m[1] for line in readelf(path, "-d") if (m := re.search(r"\(NEEDED\).*\[(.+)\]", line))]
        self.origin = {}  # the library that has a version of symbols
        file = ""
        for line in readelf(path, "-V"):
            if m := re.search(r"File: (\S+)", line):
                file = m[1]
            elif file and (m := re.search(r"Name: (\S+)", line)):
                self.origin[m[1]] = file
        self.imports, self.defines = set(), set()
        for line in readelf(path, "--dyn-syms"):
            words = line.split()
            if len(words) < 8 or words[3] not in ("FUNC", "NOTYPE", "OBJECT", "IFUNC", "TLS"):
                continue
            name, _, version = words[7].partition("@")
            if words[6] == "UND":
                self.imports.add((name, version.lstrip("@")))
            else:
                self.defines.add(name)


def write(path, versions):
    """Compiles a library with the functions of each version; the version "" is none."""
    names = sorted(set().union(*versions.values()))
    source = "".join(f"int {name}(void) {{ return {NO_DEVICE}; }}\n" for name in names)
    script = "".join(f"{version} {{ global: {'; '.join(sorted(of))}; }};\n" for version, of in versions.items() if version)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "standin.c").write_text(source or "int standin;\n")
        (folder / "versions").write_text(script)
        options = ["-Wl,--version-script=" + str(folder / "versions")] if script else []
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-w", "-fno-builtin", "-Wl,-soname=" + path.name,
                        *options, "-o", path, folder / "standin.c"], check=True)


def main(site):
    lib = site / "torch" / "lib"
    ours = [f for f in lib.glob("*.so*") if f.name not in OPENED_LATER and not f.is_symlink()]
    there = {f.name for f in lib.iterdir()} | {f.name for f in site.glob("nvidia/*/lib/*")}
    system = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    there |= {line.split()[0] for line in system.splitlines()[1:] if line.strip()}
    torch = [Library(f) for f in ours]
    defined = set().union(*(library.defines for library in torch))
    for real in site.glob("nvidia/*/lib/*.so*"):
        defined |= Library(real).defines
    missing = {need for library in torch for need in library.needs if CUDA.match(need)} - there
    functions = collections.defaultdict(lambda: collections.defaultdict(set))
    for library in torch:
        for name, version in library.imports:
            file = library.origin.get(version)
            if file in missing:
                functions[file][version].add(name)
            elif not version and name not in defined and FUNCTION.fullmatch(name):
                for each in missing:  # the first one that is loaded counts
                    functions[each][""].add(name)
    for name in sorted(missing):
        write(lib / name, functions[name])
    print("stand-ins:", " ".join(sorted(missing)))


main(pathlib.Path(sys.argv[1]))
