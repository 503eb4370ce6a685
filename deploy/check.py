"""Checks compose.yaml and the charts without a container: `python3 check.py FOLDER`, with docker-compose, helm and
kubernetes-validate in FOLDER, and PyYAML."""
import os
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path

import yaml

PROGRAMS = Path(sys.argv[1])
DEPLOY = Path(__file__).resolve().parent
COMPANIES = ["bank", "streets", "weather"]
KUBERNETES = ["1.29", "1.37"]
CHARTS = [("fet-party", "party"), ("fet-party", "primary"), ("fet-hub", "hub")]
# Changes to the values of the checks, with a part of the expected message.
REFUSED = [
    ("fet-party", "party", ["--set", "networkPolicy.hub=null"], "missing property 'hub'"),
    ("fet-party", "primary", ["--set-json", "networkPolicy.hub=[]"], "/networkPolicy/hub"),
    ("fet-party", "party", ["--set", "keySecret="], "/keySecret"),
    ("fet-party", "party", ["--set", "table=null"], "table"),
    ("fet-party", "party", ["--set", "replicas=2"], "replicas"),
    ("fet-party", "party", ["--set", "resources.limits.memory=null"], "memory"),
    ("fet-party", "party", ["--set", "state.accessMode=ReadWriteMany"], "/state/accessMode"),
    ("fet-party", "party", ["--set", "files.a=SU" + 56 * "A"], "/files/a"),
    ("fet-party", "party", ["--set", "files.a=-----BEGIN PRIVATE KEY-----"], "/files/a"),
    ("fet-party", "party", ["--set", r"files.party\.toml=state = 'state'"], "/var/lib/fet"),
    ("fet-party", "party", ["--set", r"files.party\.toml=state = '/var/lib/fet'"], "[monitor]"),
    ("fet-party", "primary", ["--set", "run.experiment=other.toml"], "other.toml"),
    ("fet-hub", "hub", ["--set", "port=4223"], "`port`"),
    ("fet-hub", "hub", ["--set", "tlsSecret="], "/tlsSecret"),
    ("fet-hub", "hub", ["--set", "config=authorization\nport: 4222\n"], "/etc/hub/tls.crt"),
]
# Changes to the values of the checks that the charts accept.
ACCEPTED = [
    ("fet-party", "party", ["--set", "monitor.enabled=false"]),
    ("fet-party", "party", ["--set", "maintenance=true"]),
    ("fet-party", "party", ["--set", "networkPolicy.enabled=false,networkPolicy.hub=null"]),
    ("fet-party", "party", ["--set", "state.existingClaim=old,state.storageClass=fast"]),
    ("fet-party", "primary", ["--set", "maintenance=true"]),
    ("fet-hub", "hub", ["--set", "service.type=ClusterIP,networkPolicy.from=null"]),
]
checks = 0


def check(holds, what):
    """Ends the program if a property does not hold."""
    global checks
    checks += 1
    if not holds:
        sys.exit(f"containers: {what}".rstrip())


def call(program, *arguments, **options):
    """Returns the exit code, the output and the errors of a program."""
    command = [str(PROGRAMS / program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    return done.returncode, done.stdout, done.stderr


def compose():
    """Returns compose.yaml as Docker Compose understands it."""
    environment = os.environ | {"FET_SOURCE": str(DEPLOY.parent), "COMPOSE_PROJECT_NAME": "city"}
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["-f", DEPLOY / "compose.yaml", "--project-directory", folder, "--profile", "primary", "config"]
        code, text, errors = call("docker-compose", *arguments, env=environment)
    check(code == 0 and not errors, f"compose.yaml: {errors}")
    return yaml.safe_load(text)


def check_compose(project):
    services = project["services"]
    networks = {name: set(service["networks"]) for name, service in services.items()}
    for one, other in combinations(COMPANIES, 2):
        check(not networks[one] & networks[other], f"compose.yaml: {one} reaches {other}")
    for company in COMPANIES:
        check(networks[company] & networks["hub"], f"compose.yaml: {company} does not reach the hub")
        names = {company, f"{company}-key", f"{company}-state"}
        sources = [volume["source"] for volume in services[company]["volumes"]]
        sources += [secret["source"] for secret in services[company]["secrets"]]
        own = all(source in names or f"/{company}/" in source for source in sources)
        check(own, f"compose.yaml: {company} has a file of another company: {sources}")
        states = [volume for volume in services[company]["volumes"] if volume["type"] == "volume"]
        check([volume["target"] for volume in states] == ["/var/lib/fet"], f"compose.yaml: {company} has no state")
    for name, network in project["networks"].items():
        check(network.get("internal"), f"compose.yaml: the network {name} leads outside")
    for name, service in services.items():
        confined = {
            "user": "10001:10001",
            "read_only": True,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
        }
        for setting, value in confined.items():
            check(service.get(setting) == value, f"compose.yaml: {name}: {setting} is {service.get(setting)}")
        for setting in ["mem_limit", "pids_limit", "healthcheck"]:
            check(service.get(setting), f"compose.yaml: {name} has no {setting}")
        for forbidden in ["ports", "privileged", "cap_add", "network_mode"]:
            check(forbidden not in service, f"compose.yaml: {name} has {forbidden}")
        check(service["secrets"], f"compose.yaml: {name} has no secret")


def rendered(chart, values, changes):
    """Returns the exit code, the objects and the errors of `helm template`."""
    folder = DEPLOY / "helm" / chart
    arguments = ["template", "city", folder, "--namespace", "fet", "-f", folder / "ci" / f"{values}-values.yaml"]
    code, text, errors = call("helm", *arguments, *changes)
    return code, text, errors


def check_schema(name, text):
    """Compares all objects with the schemas of Kubernetes, which allow no unknown field."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        for version in KUBERNETES:
            arguments = ["-k", version, "--strict", "--quiet", file.name]
            code, said, errors = call("kubernetes-validate", *arguments)
            check(code == 0, f"{name}, Kubernetes {version}: {said}{errors}")


def check_pod(name, pod):
    """Checks that a pod has few rights, and reads its secrets as files of its group."""
    spec = pod["spec"]
    [container] = spec["containers"]
    rights = container["securityContext"]
    check(rights["readOnlyRootFilesystem"] is True, f"{name}: the root file system is writable")
    check(rights["allowPrivilegeEscalation"] is False, f"{name}: the pod can get more rights")
    check(rights["capabilities"] == {"drop": ["ALL"]}, f"{name}: capabilities")
    check(spec["securityContext"]["runAsNonRoot"] is True, f"{name}: root")
    check(spec["securityContext"]["fsGroup"] == 10001, f"{name}: no group for its files")
    check(spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, f"{name}: seccomp")
    check(spec["automountServiceAccountToken"] is False, f"{name}: it has a token of the cluster")
    check("memory" in container["resources"]["limits"], f"{name}: no limit of memory")
    secrets = [volume["projected"] for volume in spec["volumes"] if "projected" in volume]
    check([volume["defaultMode"] for volume in secrets] == [0o440], f"{name}: modes of the key")
    check(any("secret" in source for source in secrets[0]["sources"]), f"{name}: no key")


def check_objects(name, objects):
    """Checks the rules of a release: one pod, one state, one way out."""
    kinds = {entry["kind"]: entry for entry in objects}
    check(len(kinds) == len(objects), f"{name}: two objects of one kind")
    check("Secret" not in kinds, f"{name}: a secret in the values")
    [workload] = [kinds[kind] for kind in ["StatefulSet", "Job", "Deployment"] if kind in kinds]
    check_pod(name, workload["spec"]["template"])
    if workload["kind"] != "Job":
        check(workload["spec"]["replicas"] == 1, f"{name}: more than one pod")
        labels = workload["spec"]["selector"]["matchLabels"].items()
        check(labels <= workload["spec"]["template"]["metadata"]["labels"].items(), f"{name}: labels")
    if workload["kind"] == "Deployment":
        check(workload["spec"]["strategy"] == {"type": "Recreate"}, f"{name}: two servers at once")
    if "PersistentVolumeClaim" in kinds:
        claim = kinds["PersistentVolumeClaim"]
        check(claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}, f"{name}: the state is lost")
        check(claim["spec"]["accessModes"] == ["ReadWriteOncePod"], f"{name}: the state has two users")
    if "NetworkPolicy" in kinds:
        policy = kinds["NetworkPolicy"]["spec"]
        labels = workload["spec"]["template"]["metadata"]["labels"].items()
        check(policy["podSelector"]["matchLabels"].items() <= labels, f"{name}: the policy selects no pod")
        check(policy["policyTypes"] == ["Ingress", "Egress"], f"{name}: {policy['policyTypes']}")
        check(all(rule.get("to") for rule in policy["egress"]), f"{name}: egress to all addresses")
        ports = {entry["port"] for rule in policy["egress"] for entry in rule["ports"]}
        check(ports == (set() if workload["kind"] == "Deployment" else {4222, 53}), f"{name}: egress to {ports}")


def check_charts():
    for chart, values in CHARTS:
        folder = DEPLOY / "helm" / chart
        code, said, errors = call("helm", "lint", "--strict", folder, "-f", folder / "ci" / f"{values}-values.yaml")
        check(code == 0, f"{chart}: {said}{errors}")
    for chart, values, changes in [(*chart, []) for chart in CHARTS] + ACCEPTED:
        name = " ".join([chart, values, *changes])
        code, text, errors = rendered(chart, values, changes)
        check(code == 0, f"{name}: {errors}")
        check_schema(name, text)
        check_objects(name, [entry for entry in yaml.safe_load_all(text) if entry])
    for chart, values, changes, part in REFUSED:
        name = " ".join([chart, values, *changes])
        code, _, errors = rendered(chart, values, changes)
        check(code != 0 and part in errors, f"{name}: {'accepted' if code == 0 else errors}")


check_compose(compose())
check_charts()
print(f"containers: {checks} checks of compose.yaml and the charts hold")
