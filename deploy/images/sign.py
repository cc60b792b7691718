"""Signs the pushed images by their digests with cosign: `python -m deploy.images.sign REGISTRY --key cosign.key [--version TAG]`.

Exit codes: 0 all are signed, 1 cosign refused one, 2 a program, the key or an image is not there. cosign reads the key's password
from COSIGN_PASSWORD. A signature is of a digest, so an image is pushed first: only a registry gives it the digest that others pull.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.images.build import SERVICES, name_of
from shared.metrics import ServiceName

EXIT_REFUSED: Final = 1
EXIT_MISSING: Final = 2
_SECONDS_MAX: Final = 300


class NotThere(RuntimeError):
    """A program, the key or a pushed image is not there; the text says which, and what to do."""


def command(key: str, reference: str) -> list[str]:
    """What signs one image, `name@sha256:...`: without a question, since a script has no answer."""
    return ["cosign", "sign", "--yes", "--key", key, reference]


def reference_of(registry: str, service: ServiceName, version: str) -> str:
    """The pushed image by its digest. Raises `NotThere`."""
    name = f"{registry.rstrip('/')}/{name_of(service, version)}"
    inspected = subprocess.run(
        ["docker", "image", "inspect", "--format", "{{json .RepoDigests}}", name],
        capture_output=True,
        text=True,
        timeout=_SECONDS_MAX,
        check=False,
    )
    if inspected.returncode != 0:
        raise NotThere(f"docker has no image {name}: make images, then docker tag {name_of(service, version)} {name}")
    repository = name.rpartition(":")[0]
    for reference in json.loads(inspected.stdout) or ():
        if reference.startswith(f"{repository}@sha256:"):
            return str(reference)
    raise NotThere(f"{name} has no digest of its registry: docker push {name}")


def check_programs(key: str) -> None:
    """Raises `NotThere`."""
    for program, why in (("docker", "it knows the images' digests"), ("cosign", "it signs: https://docs.sigstore.dev")):
        if shutil.which(program) is None:
            raise NotThere(f"{program} is not installed; {why}")
    # A key may also be one of a key management service: awskms://, gcpkms://, hashivault://, k8s://, ...
    if "://" not in key and not Path(key).is_file():
        raise NotThere(f"{key} is not there: cosign generate-key-pair makes cosign.key and cosign.pub")


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m deploy.images.sign", description=__doc__)
    parser.add_argument("registry", help="where the images were pushed, as registry.example.com/playhead")
    parser.add_argument("--key", required=True, help="file of a private key, or the address of one of a key service")
    parser.add_argument("--version", default="0.1.0", help="the images' tag")
    given = parser.parse_args(arguments)
    try:
        check_programs(given.key)
        # All references before the first signature: a missing image is reported before anything is done.
        references = [reference_of(given.registry, service, given.version) for service in SERVICES]
    except NotThere as problem:
        print(f"sign: {problem}", file=sys.stderr)
        return EXIT_MISSING
    for reference in references:
        if subprocess.run(command(given.key, reference), check=False).returncode != 0:
            print(f"sign: cosign has not signed {reference}", file=sys.stderr)
            return EXIT_REFUSED
        print(f"signed {reference}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
