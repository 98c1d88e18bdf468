# SPDX-License-Identifier: Apache-2.0
"""Hosts for tests of what goes over ssh: each has a network, mounts, a name and processes of its own, and Debian's sshd.
They end with a pipe that the test holds, so that nothing of them stays even when the test is killed."""
import os
import shutil
import subprocess
import time

PROGRAMS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "ssh": "openssh-client", "ssh-keygen": "openssh-client",
            "/usr/sbin/sshd": "openssh-server"}
NETWORK = "10.79.0."
PATIENCE_S = 60
# The folder of the test is /mnt on every host, as a shared file system would be; everything else that can be written is the host's own.
BEGIN = """
echo "$1" > /proc/sys/kernel/hostname
mount --bind "$2" /mnt
for place in /srv /tmp /home /root /run /dev/shm; do mount -t tmpfs -o mode=755,size="$3" none $place; done
chmod 1777 /tmp /dev/shm
mount --bind /mnt/passwd-"$1" /etc/passwd
mount --bind /mnt/shadow /etc/shadow
mkdir -p /run/sshd /home/trainer /srv/train
chown 1000:1000 /home/trainer
ip link set lo up
echo ready
exec cat
"""
SSHD = """
Port 22
ListenAddress {address}
HostKey /mnt/host-key-{name}
AuthorizedKeysFile /mnt/authorized_keys
PidFile /mnt/{name}.pid
AllowUsers trainer
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
{more}
"""


def why_not():
    """Why there can be no such hosts here; empty where there can."""
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            return f"no {program} here: apt-get install {package}"
    if os.geteuid() != 0:
        return "needs root to make hosts of its own"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "sh", "-ec",
         "echo x > /proc/sys/kernel/hostname; mount -t tmpfs none /srv; ip link add br0 type bridge; "
         "ip link add p0 type veth peer name p1"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else "may not make hosts of its own here: " + tried.stderr.strip()


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


class Host:
    def __init__(self, folder, name, address, shell="/bin/sh", size="32m"):
        self.folder, self.name, self.address = folder, name, address
        with open(f"{folder}/passwd-{name}", "w", encoding="ascii") as passwd:
            passwd.write("root:x:0:0::/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
                         f"trainer:x:1000:1000::/home/trainer:{shell}\n")
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", BEGIN, "sh",
             name, folder, size], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        if self.process.stdout.readline() != "ready\n":
            self.end()
            raise AssertionError(f"the host {name} cannot be made")

    def command(self, *words):
        target = str(self.process.pid)
        return ["nsenter", "--target", target, "--net", "--mount", "--uts", f"--pid=/proc/{target}/ns/pid_for_children", "--", *words]

    def run(self, *words):
        return run(*self.command(*words))

    def ip(self, *words):
        """In its network only: the pids of others are known there."""
        return run("nsenter", "--target", str(self.process.pid), "--net", "--", "ip", *words)

    def write(self, path, data, mode=0o644):
        """A file of its own disk; names may be any bytes."""
        path = os.fsencode(path)
        data = data if isinstance(data, bytes) else data.encode()
        root = b"/proc/%d/root" % self.process.pid
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        with open(root + path, "wb") as out:
            out.write(data)
        os.chmod(root + path, mode)

    def start_sshd(self, more=""):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.folder}/host-key-{self.name}")
        with open(f"{self.folder}/sshd_config-{self.name}", "w", encoding="ascii") as config:
            config.write(SSHD.format(address=self.address, name=self.name, more=more))
        self.run("/usr/sbin/sshd", "-f", f"/mnt/sshd_config-{self.name}", "-E", f"/mnt/sshd-{self.name}.log")
        until = time.monotonic() + PATIENCE_S
        while not os.path.exists(f"{self.folder}/{self.name}.pid"):  # written once it listens
            if time.monotonic() > until:
                raise AssertionError(f"sshd of {self.name} does not start: {self.log()}")
            time.sleep(0.02)

    def log(self):
        with open(f"{self.folder}/sshd-{self.name}.log", encoding="utf-8", errors="replace") as log:
            return log.read()

    def end(self):
        self.process.kill()  # and with it, as its first process ends, every process of the host
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=PATIENCE_S)


class Network:
    """A login host, which is also the switch, and hosts beside it."""

    def __init__(self, folder):
        self.folder, self.hosts = folder, {}
        os.chmod(folder, 0o755)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder + "/key")
        shutil.copy(folder + "/key.pub", folder + "/authorized_keys")
        with open(folder + "/shadow", "w", encoding="ascii") as shadow:
            shadow.write("root:*:1::::::\nsshd:*:1::::::\ntrainer:*:1::::::\n")
        os.chmod(folder + "/shadow", 0o600)
        self.login = Host(folder, "login", NETWORK + "254")
        for words in (("link", "add", "br0", "type", "bridge"), ("address", "add", NETWORK + "254/24", "dev", "br0"), ("link", "set", "br0", "up")):
            self.login.ip(*words)

    def add(self, name, **more):
        number = len(self.hosts) + 1
        host = self.hosts[name] = Host(self.folder, name, NETWORK + str(number), **more)
        self.login.ip("link", "add", f"p{number}", "type", "veth", "peer", "name", "eth0", "netns", str(host.process.pid))
        self.login.ip("link", "set", f"p{number}", "master", "br0", "up")
        host.ip("address", "add", host.address + "/24", "dev", "eth0")
        host.ip("link", "set", "eth0", "up")
        return host

    def ssh_config(self, **nowhere):
        """As a user has it in ~/.ssh/config. `nowhere`: names with an address that no host has."""
        addresses = {**{name: host.address for name, host in self.hosts.items()}, **nowhere}
        known = ""
        for name, host in self.hosts.items():
            if os.path.exists(f"{self.folder}/host-key-{name}.pub"):
                with open(f"{self.folder}/host-key-{name}.pub", encoding="ascii") as key:
                    known += f"{host.address} {key.read()}"
        with open(self.folder + "/known_hosts", "w", encoding="ascii") as file:
            file.write(known)
        return "".join(f"Host {name}\n  HostName {address}\n" for name, address in addresses.items()) + (
            "Host *\n  User trainer\n  IdentityFile /mnt/key\n  IdentitiesOnly yes\n  UserKnownHostsFile /mnt/known_hosts\n"
            "  StrictHostKeyChecking yes\n")

    def close(self):
        for host in [*self.hosts.values(), self.login]:
            host.end()
