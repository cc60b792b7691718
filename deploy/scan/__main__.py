"""`python -m deploy.scan DATABASE [--images VERSION]`: known vulnerabilities of the lock, the jars and the images.

Exit codes: 0 none is known, 1 some are, 2 the database or an image is not there.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from deploy.images.build import SERVICES, name_of
from deploy.local.paths import LOCAL, ROOT
from deploy.scan import inventory
from deploy.scan.inventory import ImageMissing
from deploy.scan.osv import MAVEN, PYPI, DatabaseWrong, Package, archive_of, scan

EXIT_FOUND = 1
EXIT_MISSING = 2


def packages(images: str | None) -> list[Package]:
    """What there is: the lock, the jars that set-up fetched and PySpark's, and images of this version. Raises `ImageMissing`."""
    pyspark = find_spec("pyspark")
    folders = [LOCAL / "jars"]
    if pyspark is not None and pyspark.origin is not None:
        folders.append(Path(pyspark.origin).parent / "jars")
    found = inventory.of_lock((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    found += inventory.of_jars(folders)
    for service in SERVICES if images is not None else ():
        found += inventory.of_image(name_of(service, str(images)))
    return found


def report(database: Path, found: Sequence[Package]) -> int:
    """Prints what the database says of these packages; the exit code. Raises `DatabaseWrong`."""
    scanned = scan(database, found)
    for one in scanned.findings:
        names = ", ".join((one.id, *one.aliases))
        print(f"{one.package.at}: {one.package.name} {one.package.version}: {names}: {one.summary or 'no summary'}")
    for package in scanned.unreadable:
        print(f"{package.at}: {package.name} {package.version}: not a version of {package.ecosystem}, not compared")
    print(
        f"{len(found)} packages, {scanned.records} records of which the newest is of {scanned.newest or 'no time'}:"
        f" {len(scanned.findings)} known vulnerabilities"
    )
    return EXIT_FOUND if scanned.findings else 0


def main(arguments: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m deploy.scan", description=__doc__)
    parser.add_argument("database", type=Path, help="folder with PyPI/all.zip, Maven/all.zip, Debian/all.zip of OSV")
    parser.add_argument("--images", metavar="VERSION", help="also the images of this version that docker has here")
    given = parser.parse_args(arguments)
    try:
        # Before hundreds of jars are read.
        for ecosystem in (PYPI, MAVEN):
            archive_of(given.database, ecosystem)
        return report(given.database, packages(given.images))
    except (DatabaseWrong, ImageMissing) as error:
        print(f"scan: {error}", file=sys.stderr)
        return EXIT_MISSING


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
