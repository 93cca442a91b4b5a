"""This machine and build: programs, CUDA libraries, the GPU. Uses the standard library only."""
import ctypes
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program_folder():
    """The folder of the programs: the first of FLEET_BIN, bin (tarball) and build/<preset>/bin that has fleet-worker."""
    places = [os.environ.get("FLEET_BIN", ""), os.path.join(ROOT, "bin")]
    places += [os.path.join(ROOT, "build", preset, "bin") for preset in ("cuda", "release", "portable")]
    for place in places:
        if place and os.access(os.path.join(place, "fleet-worker"), os.X_OK):
            return os.path.abspath(place)
    sys.exit("no programs found: run scripts/dev.sh build cuda, unpack the portable tarball, or set FLEET_BIN")


def plugins(folder):
    """The CUDA plugins of a build: libfleet_*.so next to the programs or in lib/fleetrun."""
    found = glob.glob(os.path.join(folder, "libfleet_*.so"))
    return found + glob.glob(os.path.join(os.path.dirname(folder), "lib", "fleetrun", "libfleet_*.so"))


def needed_libraries(files):
    """The CUDA libraries that the files need: their sonames appear verbatim in the dynamic string table."""
    names = set()
    for file in files:
        with open(file, "rb") as opened:
            found = re.findall(rb"lib(?:cudnn|nccl|cublas|cublasLt|cudart|curand|nvrtc|nvjpeg)\.so\.\d+(?=\0)", opened.read())
        names.update(name.decode() for name in found)
    return sorted(names)


def wheel_folders():
    """Folders of CUDA libraries in Python packages (nvidia-cudnn-cu13 and others, as installed with PyTorch)."""
    code = "import sys, site; print('\\n'.join(sys.path + site.getsitepackages() + [site.getusersitepackages()]))"
    paths = []
    for python in dict.fromkeys([os.environ.get("FLEET_TORCH_PYTHON") or "python3", sys.executable]):
        try:
            text = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=30).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        paths += [line for line in text.splitlines() if line]
    folders = []
    for path in dict.fromkeys(paths):
        folders += sorted(glob.glob(os.path.join(path, "nvidia", "*", "lib")))
    return list(dict.fromkeys(folders))


def cuda_environment(folder):
    """Variables with which the plugins find the CUDA libraries, and one line per library with its path.

Searches in this order: LD_LIBRARY_PATH, /usr/local/cuda/lib64, the system's own folders (ldconfig), Python packages.
    """
    given = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]
    try:
        known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        known = ""
    cache = dict(re.findall(r"^\s*(\S+) .*=> (\S+)$", known, re.MULTILINE))
    wheels, added, lines = None, [], []
    for name in needed_libraries(plugins(folder)):
        places = [path for path in given + ["/usr/local/cuda/lib64"] if os.path.exists(os.path.join(path, name))]
        if places or name in cache:
            lines.append(f"{name}: {os.path.join(places[0], name) if places else cache[name]}")
            continue
        wheels = wheel_folders() if wheels is None else wheels
        places = [path for path in wheels if os.path.exists(os.path.join(path, name))]
        lines.append(f"{name}: {os.path.join(places[0], name) if places else 'NOT FOUND'}")
        added += places[:1]
    if added:  # add all, because libraries of one package load those of others
        added = list(dict.fromkeys(added + wheels))
    return ({"LD_LIBRARY_PATH": ":".join(given + added)} if added else {}), lines


def cuda_device_count():
    """The number of GPUs that the driver shows to this process, and the reason if there are none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0, "libcuda.so.1, the driver's library, is not on this machine"
    count = ctypes.c_int(0)
    for code in (driver.cuInit(0), driver.cuDeviceGetCount(ctypes.byref(count))):
        if code != 0:
            return 0, f"the driver finds no GPU (error {code})"
    return count.value, "" if count.value else "the driver shows no GPU to this process (CUDA_VISIBLE_DEVICES?)"


class Gpu:
    """One GPU as seen by NVML: its properties and its load. Values that NVML does not provide are None."""

    class _Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    class _Use(ctypes.Structure):
        _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]

    def __init__(self):
        self._nvml, self._device = None, ctypes.c_void_p()
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            if nvml.nvmlInit_v2() != 0:
                return
            if first.startswith("GPU-"):
                code = nvml.nvmlDeviceGetHandleByUUID(first.encode(), ctypes.byref(self._device))
            else:
                code = nvml.nvmlDeviceGetHandleByIndex_v2(int(first or 0), ctypes.byref(self._device))
            self._nvml = nvml if code == 0 else None
        except (OSError, AttributeError, ValueError):
            return

    def _text(self, call):
        buffer = ctypes.create_string_buffer(96)
        return buffer.value.decode() if self._nvml and call(buffer) == 0 else None

    def _number(self, name, kind, value):
        return value.value if self._nvml and getattr(self._nvml, name)(self._device, kind, ctypes.byref(value)) == 0 else None

    def name(self):
        return self._text(lambda to: self._nvml.nvmlDeviceGetName(self._device, to, 96))

    def driver(self):
        return self._text(lambda to: self._nvml.nvmlSystemGetDriverVersion(to, 96))

    def used_mib(self):
        memory = self._Memory()
        if not self._nvml or self._nvml.nvmlDeviceGetMemoryInfo(self._device, ctypes.byref(memory)) != 0:
            return None
        return memory.used / 2**20

    def busy_percent(self):
        use = self._Use()
        if not self._nvml or self._nvml.nvmlDeviceGetUtilizationRates(self._device, ctypes.byref(use)) != 0:
            return None
        return use.gpu

    def clock_mhz(self):
        return self._number("nvmlDeviceGetClockInfo", 1, ctypes.c_uint())  # 1: the multiprocessors

    def describe(self):
        return {"gpu": self.name(), "driver": self.driver()}


if __name__ == "__main__":  # scripts/cuda_libraries.sh
    environment, libraries = cuda_environment(program_folder())
    for line in libraries:
        print("#", line)
    for key, value in environment.items():
        print(f"export {key}='{value}'")
    sys.exit(any(line.endswith("NOT FOUND") for line in libraries))
