#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deploy_test.py TACET PLUGIN PLUGIN_HOST SOURCE_DIR BUILD_DIR: units, manifests, Slurm scripts and the package."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from live_stage import Stage, need_program

try:
    import yaml
except ImportError:
    sys.exit("PyYAML is missing: install the package python3-yaml (scripts/bootstrap.sh test does)")

TACET, PLUGIN, HOST, SOURCE, BUILD = (os.path.abspath(argument) for argument in sys.argv[1:6])
DEPLOY = os.path.join(SOURCE, "deploy")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


class Deploy(unittest.TestCase):
    def setUp(self):
        self.stage = Stage()
        self.addCleanup(self.stage.close)

    def test_units_are_sound_and_locked_up(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not here")
        for name in ("tacet-agent.service", "tacet-serve.service"):
            with open(os.path.join(DEPLOY, "systemd", name), encoding="utf-8") as file:
                text = file.read()
            path = self.stage.write(name, text.replace("ExecStart=tacet ", f"ExecStart={TACET} ").replace("live.md", "").replace(
                "Documentation=file:///usr/share/doc/tacet/", "Documentation=https://example.org/"))
            verified = run("systemd-analyze", "verify", "--man=no", path)
            said = [line for line in verified.stderr.splitlines() if name in line]
            self.assertEqual(said, [], verified.stderr)
            judged = run("systemd-analyze", "security", "--offline=true", "--threshold=15", path)
            self.assertEqual(judged.returncode, 0, judged.stdout[-600:] + judged.stderr)

    def test_the_commands_of_the_units_are_understood(self):
        for name, options in (("agent", ["--listen", "--host", "--clickhouse", "--boxes"]), ("serve", ["--listen", "--agents", "--slurm", "--dns", "--agents-file"])):
            told = run(TACET, name, "--help").stdout
            for option in options:
                self.assertIn(option, told)

    def documents(self, name):
        with open(os.path.join(DEPLOY, "kubernetes", name), encoding="utf-8") as file:
            return list(yaml.safe_load_all(file))

    def test_manifests_hang_together(self):
        for name, workload in (("tacet-agent.yaml", "DaemonSet"), ("tacet-serve.yaml", "Deployment")):
            made = {document["kind"]: document for document in self.documents(name)}
            self.assertEqual(set(made), {workload, "Service"})
            template = made[workload]["spec"]["template"]
            labels = template["metadata"]["labels"]
            self.assertEqual(made[workload]["spec"]["selector"]["matchLabels"], labels)
            self.assertEqual(made["Service"]["spec"]["selector"], labels)
            pod = template["spec"]
            self.assertFalse(pod["automountServiceAccountToken"])
            ports = {port["name"] for container in pod["containers"] for port in container["ports"]}
            self.assertEqual({port["targetPort"] for port in made["Service"]["spec"]["ports"]}, ports)
            volumes = {volume["name"] for volume in pod.get("volumes", [])}
            for container in pod["containers"] + pod.get("initContainers", []):
                self.assertEqual({mount["name"] for mount in container.get("volumeMounts", [])} - volumes, set())
                self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
                self.assertEqual(container["securityContext"]["capabilities"]["drop"], ["ALL"])
                self.assertFalse(container["securityContext"]["allowPrivilegeEscalation"])
            for container in pod["containers"]:
                self.assertEqual(container["livenessProbe"]["httpGet"]["path"], "/healthz")
                self.assertEqual({"cpu", "memory"}, set(container["resources"]["requests"]))
                self.assertIn("memory", container["resources"]["limits"])
        agent, service = self.documents("tacet-agent.yaml")
        pod = agent["spec"]["template"]["spec"]
        self.assertEqual(pod["volumes"][0]["hostPath"]["path"], "/dev/shm/tacet")
        self.assertTrue(pod["hostPID"])  # else it cannot see what became of a job's process
        self.assertIn({"operator": "Exists"}, pod["tolerations"])
        serve = self.documents("tacet-serve.yaml")[0]["spec"]["template"]["spec"]["containers"][0]
        self.assertTrue(serve["args"][serve["args"].index("--dns") + 1].startswith(service["metadata"]["name"]))

    def test_the_part_of_a_job_mounts_what_it_names(self):
        spec = self.documents("job-part.yaml")[0]["spec"]
        volumes = {volume["name"] for volume in spec["volumes"]}
        for container in spec["containers"] + spec["initContainers"]:
            self.assertEqual({mount["name"] for mount in container["volumeMounts"]} - volumes, set())
        # On a node without an agent the job must start all the same.
        kinds = {volume["name"]: volume.get("hostPath", {}).get("type") for volume in spec["volumes"]}
        self.assertEqual(kinds["tacet-boxes"], "DirectoryOrCreate")

    def test_the_image_is_built_on_a_base_of_known_content(self):
        with open(os.path.join(DEPLOY, "kubernetes", "Containerfile"), encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(text, r"(?m)^ARG BASE=debian:bookworm-slim@sha256:[0-9a-f]{64}$")
        self.assertEqual(set(re.findall(r"(?m)^FROM (\S+)", text)), {"${BASE}"})

    def test_a_pod_mounts_its_own_boxes_only(self):
        spec = self.documents("job-part.yaml")[0]["spec"]
        mounts = 0
        for container in spec["containers"] + spec["initContainers"]:
            named = {variable["name"] for variable in container.get("env", [])}
            for mount in container["volumeMounts"]:
                if mount["name"] != "tacet-boxes":
                    continue
                mounts += 1
                wanted = set(re.findall(r"\$\((\w+)\)", mount["subPathExpr"]))
                self.assertEqual(wanted, {"POD_NAME", "POD_NAMESPACE"})
                self.assertEqual(wanted - named, set(), "kubelet expands what the container's environment holds")
        self.assertEqual(mounts, 2)

    def test_the_network_policies_select_what_the_manifests_make(self):
        ports = {}
        for name in ("tacet-agent.yaml", "tacet-serve.yaml"):
            for document in self.documents(name):
                if document["kind"] in ("DaemonSet", "Deployment"):
                    label = document["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]
                    ports[label] = {port["name"] for one in document["spec"]["template"]["spec"]["containers"] for port in one["ports"]}
        policies = {policy["metadata"]["name"]: policy["spec"] for policy in self.documents("network-policy.yaml")}
        self.assertEqual(set(policies), set(ports))
        for name, spec in policies.items():
            self.assertEqual(spec["podSelector"]["matchLabels"], {"app.kubernetes.io/name": name})
            self.assertEqual(set(spec["policyTypes"]), {"Ingress", "Egress"})
            for rule in spec["ingress"]:
                self.assertTrue(rule["from"], "nobody in particular is everybody")
                self.assertEqual({port["port"] for port in rule["ports"]} - ports[name], set())

    def test_the_scrape_example_is_a_prometheus_configuration(self):
        need_program("promtool", "prometheus")
        with open(os.path.join(DEPLOY, "prometheus", "scrape.yml"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual({job["job_name"] for job in yaml.safe_load(text)["scrape_configs"]}, {"tacet", "tacet-serve"})
        self.assertIn("/usr/share/tacet/dashboards/", text)
        self.stage.write("agents.json", '[{"targets": ["node01:9560"]}]')
        path = self.stage.write("scrape.yml", text.replace("/usr/share/tacet", SOURCE).replace("/etc/tacet", self.stage.folder))
        checked = run("promtool", "check", "config", path)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def slurm(self, script, job, **more):
        tools = self.stage.path("tools")
        os.makedirs(tools, exist_ok=True)
        if not os.path.exists(os.path.join(tools, "tacet")):
            os.symlink(TACET, os.path.join(tools, "tacet"))
        environment = {
            "PATH": tools + ":" + os.environ["PATH"], "SLURM_JOB_ID": job, "SLURM_JOB_UID": str(os.geteuid()), "TACET_BOX_DIR": self.stage.path("boxes"),
            "TACET_KEEP_DIR": self.stage.path("keep"), **more}
        done = run(os.path.join(DEPLOY, "slurm", script), env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_slurm_scripts_move_boxes_out_of_memory_and_forget_old_ones(self):
        if os.geteuid() != 0:
            self.skipTest("Slurm runs these scripts as root")
        self.slurm("prolog.sh", "31")
        self.assertEqual(os.stat(self.stage.path("boxes")).st_mode & 0o7777, 0o1777)
        self.stage.start_job(HOST, PLUGIN, "31", "--ranks", "2", "--steps", "30").wait(timeout=120)
        os.makedirs(self.stage.path("boxes", "32"))
        os.symlink("/etc/passwd", self.stage.path("boxes", "32", "link.box"))  # users can put anything there
        os.makedirs(self.stage.path("keep", "7"))
        os.utime(self.stage.path("keep", "7"), (0, 0))
        self.stage.write("keep/other/file", "not ours")
        os.utime(self.stage.path("keep", "other"), (0, 0))
        os.symlink(self.stage.path("keep"), self.stage.path("boxes", "34"))
        for job in ("31", "32", "../keep", "", "33", "34"):  # hostile, unset, unknown
            self.slurm("epilog.sh", job)
        self.assertEqual(os.listdir(self.stage.path("boxes")), ["34"])
        self.assertEqual(sorted(os.listdir(self.stage.path("keep"))), ["31", "other"])
        for file in glob.glob(self.stage.path("keep", "31", "*", "*.gz")):
            self.assertEqual(os.stat(file).st_mode & 0o777, 0o400)
        diagnosed = run(TACET, "diagnose", "--format", "json", self.stage.path("keep", "31"))
        formats = [file["format"] for file in json.loads(diagnosed.stdout)["inputs"]]
        self.assertEqual(formats, ["black_box"] * 2, diagnosed.stderr)

    def test_a_task_gets_the_plugin_unless_it_has_another(self):
        self.assertEqual(self.slurm("task_prolog.sh", "1", NCCL_PROFILER_PLUGIN=""), "export NCCL_PROFILER_PLUGIN=tacet\n")
        self.assertEqual(self.slurm("task_prolog.sh", "1", NCCL_PROFILER_PLUGIN="inspector"), "")

    def test_the_package_holds_all_and_runs(self):
        need_program("dpkg-shlibdeps", "dpkg-dev")
        packed = run("cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-G", "DEB", "-B", self.stage.path("pack"))
        self.assertEqual(packed.returncode, 0, packed.stdout + packed.stderr)
        (package,) = glob.glob(self.stage.path("pack", "*.deb"))
        listed = run("dpkg-deb", "-c", package).stdout
        for pattern in (
                r"-rwxr-xr-x root/root .* \./usr/bin/tacet$", r"\./usr/lib/[^ ]*/libnccl-profiler-tacet\.so$",
                r"\./usr/lib/systemd/system/tacet-agent\.service$", r"\./usr/lib/systemd/system/tacet-serve\.service$",
                r"\./usr/lib/tmpfiles\.d/tacet\.conf$", r"\./usr/share/tacet/dashboards/hang\.json$",
                r"\./usr/share/tacet/dashboards/rules/alerts\.yml$", r"\./usr/share/tacet/clickhouse/schema\.sql$",
                r"-rwxr-xr-x .* \./usr/share/tacet/slurm/epilog\.sh$", r"\./usr/share/tacet/kubernetes/tacet-agent\.yaml$",
                r"\./usr/share/doc/tacet/copyright$", r"\./usr/share/doc/tacet/live\.md$"):
            self.assertRegex(listed, re.compile(pattern, re.M))
        self.assertNotRegex(listed, r"_test\.|make_dashboards|/usr/local/|\.a$")
        fields = run("dpkg-deb", "-f", package).stdout
        self.assertRegex(fields, r"(?m)^Package: tacet$")
        self.assertRegex(fields, r"(?m)^Depends: .*libc6.*libzstd1")
        self.use_package(package)

    def use_package(self, package):
        root = self.stage.path("root")
        os.makedirs(os.path.join(root, "var", "lib", "dpkg"))
        self.stage.write("root/var/lib/dpkg/status", "")
        dpkg = ("dpkg", "--root=" + root, "--force-script-chrootless", "--force-depends", "--force-not-root", "--log=/dev/null")
        installed = run(*dpkg, "--install", package)
        self.assertEqual(installed.returncode, 0, installed.stdout + installed.stderr)
        # The job finds the plugin by its name, as NCCL looks for it.
        (plugin,) = glob.glob(os.path.join(root, "usr", "lib", "*", "libnccl-profiler-tacet.so"))
        self.assertEqual(self.stage.start_job(
            HOST, os.path.basename(plugin), "41", "--ranks", "2", "--steps", "30",
            LD_LIBRARY_PATH=os.path.dirname(plugin)).wait(timeout=120), 0)
        diagnosed = run(os.path.join(root, "usr", "bin", "tacet"), "diagnose", "--format", "json", self.stage.path("boxes", "41"))
        self.assertEqual(json.loads(diagnosed.stdout)["job"]["ranks_seen"], [0, 1], diagnosed.stderr)
        removed = run(*dpkg, "--purge", "tacet")
        self.assertEqual(removed.returncode, 0, removed.stdout + removed.stderr)
        left = [path for path in glob.glob(os.path.join(root, "**"), recursive=True) if os.path.isfile(path) and "/dpkg/" not in path]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
