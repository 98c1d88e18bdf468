# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of several nodes on this machine: Debian's slurmctld and slurmd, each node in a mount and a host name
of its own, so that it has its own /dev/shm and its own name, as real ones have."""
import os
import shutil
import socket
import subprocess

from live_stage import wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "unshare", "nsenter")

CONFIGURATION = """
ClusterName=tacet
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/spool-%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
PrologFlags=Alloc
Prolog={folder}/prolog
TaskProlog={deploy}/slurm/task_prolog.sh
Epilog={folder}/epilog
KillWait=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Why there can be no cluster here; empty where there can."""
    absent = [program for program in PROGRAMS if shutil.which(program) is None]
    if absent:
        return f"no {', '.join(absent)} here: apt-get install slurmctld slurmd slurm-client munge"
    if os.geteuid() != 0:
        return "needs root to make nodes of its own"
    tried = subprocess.run(["unshare", "--mount", "--uts", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True)
    return "" if tried.returncode == 0 else "may not mount here"


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class SlurmCluster:
    """Nodes n1, n2, ... with the addresses 127.0.7.1, 127.0.7.2, ...; Prolog, TaskProlog and Epilog are those of deploy/."""

    def __init__(self, stage, deploy, nodes):
        self.stage, self.deploy = stage, deploy
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.addresses = {name: f"127.0.7.{i + 1}" for i, name in enumerate(self.names)}
        self.daemons = {}

    def start(self):
        folder = self.stage.folder
        ports = free_ports(1 + len(self.names))
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={name} NodeAddr={self.addresses[name]} Port={port} CPUs=16 State=UNKNOWN"
            for name, port in zip(self.names, ports[1:]))
        self.stage.write("slurm.conf", CONFIGURATION.format(
            host=socket.gethostname(), ports=ports, folder=folder, deploy=self.deploy, nodes=nodes))
        self.stage.write("hosts", "127.0.0.1 localhost " + socket.gethostname() + "\n" + "".join(
            f"{address} {name}\n" for name, address in self.addresses.items()))
        self.stage.write("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.write_script("prolog", f'exec "{self.deploy}/slurm/prolog.sh"')
        self.write_script("epilog", f'TACET_KEEP_DIR="{folder}/keep-$(hostname)" exec "{self.deploy}/slurm/epilog.sh"')
        with open(self.stage.path("munge.key"), "wb") as key:
            key.write(os.urandom(128))
        os.chmod(key.name, 0o400)
        os.chmod(folder, 0o755)
        self.stage.start("munged", [
            "munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key",
            f"--log-file={folder}/munge.log", f"--pid-file={folder}/munge.pid", f"--seed-file={folder}/munge.seed"])
        wait_for("munged", lambda: os.path.exists(folder + "/munge.socket"))
        self.start_in("controller", f"exec slurmctld -D -f {folder}/slurm.conf")
        for name in self.names:
            self.daemons[name] = self.start_in(
                "daemon-" + name, f"hostname {name} && mount -t tmpfs -o size=512m none /dev/shm && "
                f"exec slurmd -D -N {name} -f {folder}/slurm.conf", "--uts")
        wait_for("all nodes are idle", lambda: self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split() == self.names)

    def stop(self):
        """Before its daemons end, else what runs the jobs stays behind."""
        self.run("scancel", "--state=RUNNING", check=False)
        self.run("scancel", "--state=PENDING", check=False)
        wait_for("all jobs have ended", lambda: not self.run("squeue", "-h").strip())

    def write_script(self, name, line):
        os.chmod(self.stage.write(name, f"#!/bin/sh\n{line}\n"), 0o755)

    def start_in(self, name, script, *more):
        """A process that knows the names of the nodes."""
        hosts = self.stage.path("hosts")
        return self.stage.start(
            name, ["unshare", "--mount", *more, "sh", "-c", f"mount --bind {hosts} /etc/hosts && {script}"],
            SLURM_CONF=self.stage.path("slurm.conf"))

    def run(self, *command, check=True, **environment):
        """Runs a client of Slurm's, as a user on the login node."""
        hosts = self.stage.path("hosts")
        quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", f"mount --bind {hosts} /etc/hosts && exec {quoted}"], capture_output=True,
            text=True, check=False, cwd=self.stage.folder, timeout=120,
            env={**os.environ, "SLURM_CONF": self.stage.path("slurm.conf"), **environment})
        if check and done.returncode != 0:
            raise AssertionError(f"{command[0]} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def start_on(self, node, name, command):
        """As a service of that node."""
        pid = str(self.daemons[node].pid)
        return self.stage.start(name, ["nsenter", "--mount", "--uts", "--target", pid, "--", *command])
