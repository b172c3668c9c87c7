# Prints facts about the Python that runs this file, as one line of JSON after a mark. If a shell runs this file,
# the next line ends it.
"exit" if 0 else ""
import os
import sys

# The modules that were imported before this file.
AT_START = list(sys.modules.items())

import json
import platform


def variable(name):
    import sysconfig

    return str(sysconfig.get_config_var(name) or "")


def build():
    arguments = variable("CONFIG_ARGS")
    flags = " ".join(variable(name) for name in ("OPT", "PY_CORE_CFLAGS", "PY_CFLAGS_NODIST", "PY_LDFLAGS_NODIST"))
    # Distributions that remove these flags from the recorded settings may still have used a profile.
    unknown = "no" if variable("PGO_PROF_USE_FLAG") else "not recorded"
    levels = [word for word in flags.split() if word.startswith("-O")]
    is_pypy = platform.python_implementation() == "PyPy"
    jit = "yes" if is_pypy else "no"
    if "--enable-experimental-jit" in arguments:
        jit = "built in"
        is_enabled = getattr(getattr(sys, "_jit", None), "is_enabled", None)
        if is_enabled is not None:
            jit = "on" if is_enabled() else "off"
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    threading = "no"
    if variable("Py_GIL_DISABLED") == "1":
        threading = "yes" if not has_gil else "built in, off"
    allocator = "malloc"
    if variable("WITH_MIMALLOC") == "1" and threading == "yes":
        allocator = "mimalloc"
    elif variable("WITH_PYMALLOC") == "1":
        allocator = "pymalloc"
    if os.environ.get("PYTHONMALLOC"):
        allocator = os.environ["PYTHONMALLOC"] + " (PYTHONMALLOC)"
    return {
        "version": "%d.%d.%d" % sys.version_info[:3] + ("" if sys.version_info[3] == "final" else sys.version_info[3]),
        "implementation": platform.python_implementation(),
        "compiler": platform.python_compiler().strip(),
        "optimisation": levels[-1] if levels else "not recorded",
        "pgo": "yes" if "--enable-optimizations" in arguments or "-fprofile-use" in flags else unknown,
        "lto": "yes" if "--with-lto" in arguments or "-flto" in flags else unknown,
        "jit": jit,
        "free_threading": threading,
        "tail_calls": "yes" if "--with-tail-call-interp" in arguments else "no",
        "allocator": allocator,
        "configure": arguments,
    }


def digest(path):
    # A short digest that needs no module with C code: two files of one name may differ.
    number = 14695981039346656037
    with open(path, "rb") as opened:
        for byte in bytearray(opened.read()):
            number = ((number ^ byte) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    return "%016x" % number


def site_folders():
    """Returns the folders whose `.pth` files run at the start. These are not all folders of the path."""
    site = dict(AT_START).get("site")
    if site is None:
        return []
    if not hasattr(site, "getsitepackages"):
        return list(sys.path)
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return list(site.getsitepackages()) + user


def hooks():
    """Lists what runs at each start: lines of `.pth` files that import, customisation modules, and installed packages.

    The same `.pth` file may import a package that only one of two environments has.
    """
    found = []
    for folder in site_folders():
        if not os.path.isdir(folder):
            continue
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if not name.endswith(".pth") or not os.path.isfile(path):
                continue
            with open(path, "rb") as opened:
                lines = opened.read().decode("utf-8", "replace").splitlines()
            if any(line.startswith(("import ", "import\t")) for line in lines):
                found.append({"name": name, "path": path, "content": digest(path)})
    for name in ("sitecustomize", "usercustomize"):
        path = getattr(sys.modules.get(name), "__file__", None)
        if path:
            found.append({"name": name, "path": path, "content": digest(path) if os.path.isfile(path) else ""})
    for name, module in AT_START:
        path = getattr(module, "__file__", None) or ""
        is_installed = any(part in ("site-packages", "dist-packages") for part in path.split(os.sep))
        if is_installed and "." not in name and name not in ("sitecustomize", "usercustomize"):
            # Packages are compared by name: environments often have another version of one.
            found.append({"name": name, "path": path, "content": ""})
    seen = {}
    for hook in found:
        seen[(hook["name"], hook["content"])] = hook
    return [seen[key] for key in sorted(seen)]


def libraries():
    """Returns the file that uses each library, for libraries that can do the same work in two runtimes."""
    using = {}
    for name in ("zlib", "bz2", "lzma"):
        try:
            module = __import__({"bz2": "_bz2", "lzma": "_lzma"}.get(name, name))
        except ImportError:
            continue
        using[name] = getattr(module, "__file__", None) or ""
    mapped = set()
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.rstrip("\n").split(None, 5)[5:]
                if path and path[0].startswith("/") and ".so" in path[0]:
                    mapped.add(path[0])
    except (IOError, OSError):
        pass
    return using, sorted(mapped)


def main():
    using, mapped = libraries()
    try:
        running = os.readlink("/proc/self/exe")
        with open("/proc/self/cmdline", "rb") as opened:
            line = [word.decode("utf-8", "surrogateescape" if sys.version_info[0] > 2 else "replace")
                    for word in opened.read().split(b"\0")[:-1]]
    except (IOError, OSError):
        running, line = sys.executable, [sys.executable] + sys.argv
    facts = {
        "running": running,
        "executable": sys.executable or "",
        "line": line,
        "environment": dict(os.environ),
        "ignores_environment": bool(sys.flags.ignore_environment),
        "build": build(),
        "hooks": hooks(),
        "using": using,
        "mapped": mapped,
    }
    sys.stdout.write("\nascertain-probe " + json.dumps(facts) + "\n")


main()
