"""`make setup`, with stand-ins for Python, Java and Maven: what was cut off is made again, and what is missing is named."""

import base64
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.local.paths import ROOT

#: An environment without pip is what Ctrl-C leaves of `python -m venv`. Each call goes to the file `calls`.
_PYTHON = """\
#!/bin/bash
echo "$*" >> "{root}/calls"
case "$*" in
    "--version") echo "Python 3.11.2" ;;
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && touch .venv/has-pip ;;
    "-m pip --version") [[ -e .venv/has-pip ]] ;;
    "-m uv pip sync"*) [[ ! -e "{root}/no-network" ]] ;;
    "-m deploy.page_bundle --check") [[ -e "{root}/bundled" ]] ;;
esac
"""
_NPM = """\
#!/bin/bash
while (($#)); do
    case $1 in
        --pack-destination) cp "{root}/registry/one.tgz" "$2/scope-one-1.2.3.tgz"; shift ;;
        *@*) echo "$1" >> "{root}/asked" ;;
    esac
    shift
done
echo scope-one-1.2.3.tgz
"""
#: Downloads only once its lists were fetched.
_APT = """\
#!/bin/bash
echo "$1" >> "{root}/apt"
case $1 in
    update) touch "{root}/lists" ;;
    download) [[ -e "{root}/lists" ]] && touch prometheus_1_amd64.deb ;;
esac
"""
_DPKG = """\
#!/bin/bash
mkdir -p package/usr/bin
for name in prometheus promtool; do
    printf '%s' $name > package/usr/bin/$name
    chmod +x package/usr/bin/$name
done
"""
#: Builds every target, unless there is a file `broken`.
_GO = """\
#!/bin/bash
echo "$*" >> "{root}/built"
[[ ! -e "{root}/broken" ]] || exit 1
case $1 in
    build) while [[ $1 != -o ]]; do shift; done; touch "$2"; chmod +x "$2" ;;
    install) touch "$GOBIN/kwok"; chmod +x "$GOBIN/kwok" ;;
    list) echo "{root}/module" ;;
esac
"""
#: What setup takes out of modules.
_OF_MODULES = (
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "kustomize/stage/pod/fast/pod-ready.yaml",
    "kustomize/stage/pod/fast/pod-complete.yaml",
    "kustomize/stage/pod/fast/pod-delete.yaml",
    "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    "config/crd/bases/keda.sh_scaledobjects.yaml",
    "config/crd/bases/keda.sh_triggerauthentications.yaml",
)
_JAVA = """\
#!/bin/bash
echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2
echo 'openjdk version "{version}" 2024-07-16' >&2
"""


class Checkout:
    """A checkout with nothing but what setup needs, and a PATH of stand-ins before the real one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.venv = root / ".venv"
        for folder in (self.bin, root / "deploy" / "local"):
            folder.mkdir(parents=True)
        shutil.copy(ROOT / "deploy/local/setup.sh", root / "deploy/local")
        for name in ("uv.txt", "s3.txt"):
            (root / "deploy/local" / name).touch()
        (root / "requirements.lock").touch()
        for name in ("kafka", "spark", "mirrormaker", "s3"):
            jar = root / ".local" / "jars" / name / "one.jar"
            sums = root / "deploy" / "fetched" / "jars" / name / "SHA256SUMS"
            for file in (jar, sums):
                file.parent.mkdir(parents=True)
            jar.write_text(name)
            sums.write_text(f"{hashlib.sha256(name.encode()).hexdigest()}  one.jar\n")
        for name in ("page", "bundler"):
            (root / "deploy/fetched" / name).mkdir()
            (root / "deploy/fetched" / name / "packages.txt").write_text("# none\n")
        (root / "services/dashboard/static").mkdir(parents=True)
        self.python = "python3.11"
        self.command(self.python, _PYTHON.format(root=root))
        self.java("17.0.12")

    def command(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def java(self, version: str) -> None:
        self.command("java", _JAVA.format(version=version))

    def publish(self, content: str) -> None:
        """Makes `npm pack` fetch a package whose only file has this content."""
        package = self.root / "registry" / "package"
        package.mkdir(parents=True, exist_ok=True)
        (package / "index.js").write_text(content)
        subprocess.run(["tar", "-czf", "one.tgz", "package"], cwd=package.parent, check=True)

    def want(self, sha512: str, file: str = "index.js") -> None:
        """Makes a package of this hash the only one that tests need, one file of it or all."""
        manifest = self.root / "deploy" / "fetched" / "players" / "packages.txt"
        manifest.parent.mkdir(exist_ok=True)
        manifest.write_text(f"# a comment\n@scope/one 1.2.3 {sha512} {file}\n")
        self.want_no_provider()

    def want_no_provider(self) -> None:
        """Makes the OpenID provider need no package."""
        (self.root / "deploy" / "fetched" / "oidc").mkdir(exist_ok=True)
        (self.root / "deploy" / "fetched" / "oidc" / "packages.txt").write_text("# none\n")

    def want_for_the_page(self, sha512: str, file: str) -> None:
        """Makes one file of a package of this hash the only module of the page."""
        (self.root / "deploy/fetched/page/packages.txt").write_text(f"# a comment\n@scope/one 1.2.3 {sha512} {file}\n")

    def setup(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        (self.root / "calls").write_text("")
        return subprocess.run(
            ["bash", "deploy/local/setup.sh", *arguments],
            cwd=self.root,
            env=os.environ | {"PATH": f"{self.bin}:/usr/bin:/bin", "SETUP_PYTHON": self.python},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def calls(self, what: str) -> int:
        """How often a stand-in for Python was called with arguments that begin so."""
        return sum(call.startswith(what) for call in (self.root / "calls").read_text().splitlines())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_what_is_ready_is_left_alone(checkout: Checkout) -> None:
    first = checkout.setup()
    assert first.returncode == 0, first.stderr
    assert (checkout.calls("-m venv"), checkout.calls("-m uv pip sync")) == (1, 1)

    assert checkout.setup().returncode == 0
    assert (checkout.calls("-m venv"), checkout.calls("-m uv pip sync")) == (0, 0)


def test_the_python_that_can_make_an_environment_comes_first(checkout: Checkout) -> None:
    # As Debian's without its package `python3-venv`.
    checkout.command("bare", '#!/bin/bash\n[[ "$*" != *ensurepip* ]]\n')
    checkout.python = "bare python3.11"
    assert checkout.setup().returncode == 0
    assert checkout.calls("-m venv") == 1


def test_a_python_that_is_named_and_is_none_is_refused_by_its_name(checkout: Checkout) -> None:
    checkout.python = "no-python"
    ended = checkout.setup()
    assert ended.returncode != 0
    assert "SETUP_PYTHON=no-python is no Python 3.11 or 3.12" in ended.stderr


def test_an_environment_cut_off_while_it_was_made_is_made_again(checkout: Checkout) -> None:
    checkout.setup()
    (checkout.venv / "has-pip").unlink()
    (checkout.root / "requirements.lock").write_text("changed")

    again = checkout.setup()

    assert again.returncode == 0, again.stderr
    assert checkout.calls("-m venv --clear .venv") == 1
    assert checkout.calls("-m uv pip sync") == 1


def test_packages_that_were_not_all_installed_are_installed_the_next_time(checkout: Checkout) -> None:
    checkout.setup()
    (checkout.root / "requirements.lock").write_text("changed")
    (checkout.root / "no-network").touch()
    assert checkout.setup().returncode != 0
    # Back to the lock that was installed once: half of the other is there now.
    (checkout.root / "requirements.lock").write_text("")
    (checkout.root / "no-network").unlink()

    assert checkout.setup().returncode == 0
    assert checkout.calls("-m uv pip sync") == 1


@pytest.mark.thorough
def test_players_are_fetched_once_and_only_as_they_were_pinned(checkout: Checkout) -> None:
    for name in ("chromium", "chromium-headless-shell", "ffmpeg", "prometheus", "promtool", "kubectl"):
        checkout.command(name, "#!/bin/bash\n")
    checkout.command("npm", _NPM.format(root=checkout.root))
    player = checkout.root / ".local" / "players" / "@scope" / "one" / "index.js"
    checkout.publish("genuine")
    genuine = hashlib.sha512((checkout.root / "registry" / "one.tgz").read_bytes()).digest()
    checkout.want(base64.b64encode(genuine).decode())

    first = checkout.setup("test")
    assert first.returncode == 0, first.stderr
    assert player.read_text() == "genuine"
    assert (checkout.root / "asked").read_text() == "@scope/one@1.2.3\n"
    assert checkout.setup("test").returncode == 0
    assert (checkout.root / "asked").read_text() == "@scope/one@1.2.3\n"

    checkout.want(base64.b64encode(genuine).decode(), file="")
    assert checkout.setup("test").returncode == 0
    assert player.read_text() == "genuine"

    checkout.publish("forged")
    checkout.want(base64.b64encode(genuine).decode() + " ")
    refused = checkout.setup("test")
    assert refused.returncode == 1
    assert "@scope/one@1.2.3 is not what" in refused.stderr
    assert not player.exists()


def test_modules_of_the_page_are_fetched_once_with_their_licences_and_only_as_they_were_pinned(
    checkout: Checkout,
) -> None:
    checkout.command("npm", _NPM.format(root=checkout.root))
    (checkout.root / "registry" / "package").mkdir(parents=True)
    (checkout.root / "registry" / "package" / "LICENSE").write_text("MIT")
    checkout.publish("genuine")
    genuine = base64.b64encode(hashlib.sha512((checkout.root / "registry" / "one.tgz").read_bytes()).digest()).decode()
    vendor = checkout.root / "services/dashboard/static/vendor"
    checkout.want_for_the_page(genuine, "index.js")

    first = checkout.setup()
    assert first.returncode == 0, first.stderr
    assert {file.name: file.read_text() for file in vendor.iterdir()} == {
        "index.js": "genuine",
        "index.js.LICENSE": "MIT",
    }
    assert checkout.setup().returncode == 0
    assert (checkout.root / "asked").read_text() == "@scope/one@1.2.3\n"

    checkout.publish("forged")
    checkout.want_for_the_page(f"{genuine} ", "index.js")
    refused = checkout.setup()
    assert refused.returncode == 1
    assert "@scope/one@1.2.3 is not what deploy/fetched/page/packages.txt says" in refused.stderr
    assert not vendor.exists()


@pytest.mark.thorough
def test_prometheus_is_taken_out_of_its_package_once_and_not_installed(checkout: Checkout) -> None:
    for name in ("chromium", "chromium-headless-shell", "ffmpeg", "npm", "kustomize"):
        checkout.command(name, "#!/bin/bash\n")
    checkout.want("", file="")
    (checkout.root / "deploy/fetched/players/packages.txt").write_text("# none\n")
    checkout.command("apt-get", _APT.format(root=checkout.root))
    checkout.command("dpkg-deb", _DPKG)

    without_lists = checkout.setup("test")
    assert without_lists.returncode == 0, without_lists.stderr
    assert (checkout.root / ".local/prometheus/promtool").read_text() == "promtool"
    assert (checkout.root / "apt").read_text().split("\n")[:-1] == ["download", "update", "download"]
    assert checkout.setup("test").returncode == 0
    assert len((checkout.root / "apt").read_text().split()) == 3


def test_kustomize_is_built_where_neither_it_nor_kubectl_is_there(checkout: Checkout) -> None:
    for name in ("chromium", "chromium-headless-shell", "ffmpeg", "npm", "prometheus", "promtool"):
        checkout.command(name, "#!/bin/bash\n")
    checkout.command("kubectl", "#!/bin/bash\nexit 1\n")
    checkout.command(
        "go", '#!/bin/bash\nmkdir -p "$GOBIN"; echo "$*" > "$GOBIN/kustomize"; chmod +x "$GOBIN/kustomize"\n'
    )
    checkout.want_no_provider()
    (checkout.root / "deploy/fetched/players").mkdir()
    (checkout.root / "deploy/fetched/players/packages.txt").write_text("# none\n")

    run = checkout.setup("test")

    assert run.returncode == 0, run.stderr
    assert (
        (checkout.root / ".local/bin/kustomize").read_text().startswith("install sigs.k8s.io/kustomize/kustomize/v5@v5")
    )


@pytest.mark.thorough
def test_a_control_plane_is_built_once_and_again_when_its_sources_change(checkout: Checkout) -> None:
    checkout.command("kubectl", "#!/bin/bash\n")
    checkout.command("go", _GO.format(root=checkout.root))
    sources = checkout.root / "deploy/kubernetes/control_plane"
    sources.mkdir(parents=True)
    for name in ("go.mod", "go.sum", "main.go"):
        shutil.copy(ROOT / "deploy/kubernetes/control_plane" / name, sources)
    for file in _OF_MODULES:
        (checkout.root / "module" / file).parent.mkdir(parents=True, exist_ok=True)
        (checkout.root / "module" / file).write_text(f"{file}\n")
    built = checkout.root / "built"
    (checkout.root / "broken").touch()
    failed = checkout.setup("kubernetes")
    assert (failed.returncode, failed.stderr) == (1, "setup: the control plane could not be built\n")
    (checkout.root / "broken").unlink()
    built.write_text("")

    run = checkout.setup("kubernetes")

    assert run.returncode == 0, run.stderr
    build, install, *modules = built.read_text().splitlines()
    assert "version.gitVersion=v1.36.3 " in build
    assert "version.gitMinor=36 " in build
    assert install.startswith("install sigs.k8s.io/kwok/cmd/kwok@v0")
    programs = checkout.root / ".local/control-plane"
    assert [module.split()[0] for module in modules] == ["mod", "list"] * 3
    assert {file.name for file in programs.iterdir()} == {"control_plane", "kwok", "stages.yaml", "kinds.yaml"}
    resources = "".join((programs / name).read_text() for name in ("stages.yaml", "kinds.yaml"))
    assert [part.strip() for part in resources.split("---\n")] == [*_OF_MODULES, ""]
    assert checkout.setup("kubernetes").returncode == 0
    assert len(built.read_text().splitlines()) == 8
    (sources / "main.go").write_text("package main")
    assert checkout.setup("kubernetes").returncode == 0
    assert len(built.read_text().splitlines()) == 16


@pytest.mark.parametrize(
    ("version", "expected"), [("11.0.22", "is Java 11"), ("1.8.0_392", "is Java 1"), ("", "unknown")]
)
def test_a_java_that_is_too_old_is_named_before_anything_is_made(
    checkout: Checkout, version: str, expected: str
) -> None:
    checkout.java(version)

    run = checkout.setup()

    assert run.returncode == 1
    assert expected in run.stderr
    assert "Java 17 or newer is needed" in run.stderr
    assert not checkout.venv.exists()


@pytest.mark.parametrize("version", ["17", "21.0.4", "25-ea"])
def test_a_newer_java_will_do(checkout: Checkout, version: str) -> None:
    checkout.java(version)

    assert checkout.setup().returncode == 0


def test_a_missing_maven_is_named_before_anything_is_made(checkout: Checkout) -> None:
    shutil.rmtree(checkout.root / ".local" / "jars" / "spark")
    # The commands that setup uses, and no others: Maven may be installed here.
    for name in ("bash", "dirname", "mkdir", "cut", "diff", "ls", "sha256sum", "sed", "rm", "cat", "cp", "touch"):
        (checkout.bin / name).symlink_to(shutil.which(name) or "")

    run = subprocess.run(
        ["bash", "deploy/local/setup.sh"],
        cwd=checkout.root,
        env={"PATH": str(checkout.bin)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert run.returncode == 1
    assert "Maven is needed" in run.stderr
    assert not checkout.venv.exists()


def test_the_page_is_bundled_unless_what_bundles_it_knows_a_whole_bundle_of_it(checkout: Checkout) -> None:
    # How new files are tells nothing.
    (checkout.root / "services/dashboard/static/bundle").mkdir()
    (checkout.root / "services/dashboard/static/bundle/page.js").touch()
    for is_whole, calls in ((False, 2), (True, 1)):
        if is_whole:
            (checkout.root / "bundled").touch()
        run = checkout.setup()
        assert run.returncode == 0, run.stderr
        assert (checkout.calls("-m deploy.page_bundle --check"), checkout.calls("-m deploy.page_bundle")) == (1, calls)
