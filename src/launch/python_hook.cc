// SPDX-License-Identifier: Apache-2.0
#include "launch/python_hook.h"

namespace tacet {

std::string_view PythonHook() {
  return R"PY(# SPDX-License-Identifier: Apache-2.0
"""Written by `tacet run`. Lets this process write its Python stacks to the run folder when it gets SIGRTMAX-3."""


def _tacet_rank():
    import os
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"):
        value = os.environ.get(name, "")
        if value.isdigit():
            return value
    return ""


def _tacet_stacks():
    import faulthandler
    import os
    import signal
    folder = os.environ.get("TACET_RUN_DIR")
    number = signal.SIGRTMAX - 3
    if not folder or signal.getsignal(number) is not signal.SIG_DFL:
        return
    rank = _tacet_rank()
    with open("/proc/self/cmdline", "rb") as arguments:
        # A worker that a rank has spawned inherits its number; without one it may be a rank of torch.multiprocessing.
        if rank and b"multiprocessing" in arguments.read():
            return
    name = "stack_%spid_%d.txt" % ("rank_%s_" % rank if rank else "", os.getpid())
    path = os.path.join(folder, "stacks", name)
    # Appending, so that the watch may cut the file before it asks again.
    stream = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    high = 200
    try:
        import fcntl
        # Out of the way of programs that count on low numbers.
        moved = fcntl.fcntl(stream, fcntl.F_DUPFD_CLOEXEC, high)
        os.close(stream)
        stream = moved
    except (ImportError, OSError):
        pass
    faulthandler.register(number, file=stream, all_threads=True, chain=False)
    _tacet_taker(number, stream)


def _tacet_taker(number, stream):
    """A thread that writes the stacks when the signal is sent to it alone. It holds the interpreter's lock then, so that no
    stack moves meanwhile, and no thread of the program is interrupted: the handler above would change its errno."""
    import faulthandler
    import signal
    import threading

    def wait():
        signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        with open("/proc/self/task/%d/comm" % threading.get_native_id(), "w") as name:
            name.write("tacet-stacks")
        while True:
            signal.sigwait({number})
            faulthandler.dump_traceback(file=stream, all_threads=True)

    def guarded():
        try:
            wait()
        except Exception:
            pass

    threading.Thread(target=guarded, name="tacet-stacks", daemon=True).start()


def _tacet_errors():
    """The error that ends this process, in a file of its rank: in an output that all ranks share nobody can tell whose it was."""
    import os
    import sys
    folder, rank = os.environ.get("TACET_RUN_DIR"), _tacet_rank()
    if not folder or not rank:
        return
    show = sys.excepthook

    def keep(kind, value, trace):
        import time
        import traceback
        if issubclass(kind, KeyboardInterrupt):
            return
        now = time.time_ns()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9)) + ".%09dZ stderr F " % (now % 10**9)
        with open(os.path.join(folder, "error_rank_%s_pid_%d.log" % (rank, os.getpid())), "a", encoding="utf-8") as file:
            for part in traceback.format_exception(kind, value, trace):
                for line in part.splitlines():
                    file.write(stamp + line + "\n")

    def after(kind, value, trace):
        try:
            keep(kind, value, trace)
        except Exception:
            pass
        show(kind, value, trace)

    sys.excepthook = after


def _tacet_profile():
    import os
    window = os.environ.get("TACET_PROFILE_STEPS")
    if not window or not _tacet_rank():
        return
    first, _, last = window.partition("-")
    first, last = int(first), int(last or first)
    import importlib.abc
    import importlib.machinery
    import sys
    state = {"step": 0, "profiler": None}

    def after_step(*_):
        import torch.profiler
        state["step"] += 1
        if state["step"] == first - 1 or (first <= 1 and state["step"] == 1):
            state["profiler"] = torch.profiler.profile()
            state["profiler"].start()
        elif state["profiler"] is not None and state["step"] >= last:
            profiler, state["profiler"] = state["profiler"], None
            profiler.stop()
            folder = os.path.join(os.environ["TACET_RUN_DIR"], "traces")
            os.makedirs(folder, exist_ok=True)
            profiler.export_chrome_trace(os.path.join(folder, "trace_rank_%s.json" % _tacet_rank()))

    def guarded(*arguments):
        try:
            after_step(*arguments)
        except Exception as error:  # the job goes on without its trace
            state["step"] = 1 << 60
            sys.stderr.write("tacet: no profile: %s\n" % error)

    class Loader(importlib.abc.Loader):
        def __init__(self, loader):
            self.loader = loader

        def create_module(self, spec):
            return self.loader.create_module(spec)

        def exec_module(self, module):
            self.loader.exec_module(module)
            register = getattr(module, "register_optimizer_step_post_hook", None)
            if register is not None:
                register(guarded)

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name != "torch.optim.optimizer":
                return None
            sys.meta_path.remove(self)
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Loader(spec.loader)
            return spec

    sys.meta_path.insert(0, Finder())


def _tacet_names():
    """PyTorch 2.8 renamed two settings, and warns about the old names: of those set here it sees the new ones only."""
    import os
    import sys
    renamed = {"TORCH_NCCL_TRACE_BUFFER_SIZE": "TORCH_FR_BUFFER_SIZE",
               "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "TORCH_FR_DUMP_TEMP_FILE"}
    both = [old for old, new in renamed.items() if old in os.environ and os.environ[old] == os.environ.get(new)]
    if not both or "TACET_RUN_DIR" not in os.environ:
        return
    for entry in sys.path:
        path = os.path.join(entry or ".", "torch", "version.py")
        if not os.path.exists(path):
            continue
        with open(path) as file:
            number = file.read().split("__version__ = '")[1].split(".")
        if (int(number[0]), int(number[1])) >= (2, 8):
            for old in both:
                del os.environ[old]
        return


def _tacet_hand_on():
    """The sitecustomize that this one stands in front of."""
    import os
    import sys
    here = os.path.dirname(os.path.abspath(__file__))
    before = list(sys.path)
    sys.path[:] = [entry for entry in before if os.path.abspath(entry or ".") != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
        if own is not None:
            sys.modules["sitecustomize"] = own


for _tacet_part in (_tacet_names, _tacet_stacks, _tacet_errors, _tacet_profile):
    try:
        _tacet_part()
    except Exception:
        pass
_tacet_hand_on()
)PY";
}

}  // namespace tacet
