"""Unpacks part of a wheel and checks each file against the wheel's own RECORD.

Arguments: the wheel, the destination, and pairs of a name in the wheel and its place in the destination; names that end in a slash
are of folders. Prints the number of bytes written. It installs nothing.
"""

import base64
import hashlib
import os
import shutil
import sys
import zipfile

wheel, destination, *pairs = sys.argv[1:]


def digest(path):
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256") if hasattr(hashlib, "file_digest") else None
        if found is None:
            found = hashlib.sha256()
            for block in iter(lambda: file.read(1 << 20), b""):
                found.update(block)
    return "sha256=" + base64.urlsafe_b64encode(found.digest()).rstrip(b"=").decode()


with zipfile.ZipFile(wheel) as archive:
    names = archive.namelist()
    record = next(name for name in names if name.endswith(".dist-info/RECORD"))
    hashes = {}
    for line in archive.read(record).decode().splitlines():
        name, found, _ = line.rsplit(",", 2)
        hashes[name.strip('"')] = found

    wanted = []
    for name, place in zip(pairs[::2], pairs[1::2]):
        if not name.endswith("/"):
            wanted.append((name, place))
            continue
        inside = [other for other in names if other.startswith(name) and not other.endswith("/")]
        if not inside:
            sys.exit(f"{wheel} has no folder {name}")
        wanted += [(other, place + other[len(name):]) for other in inside]

    written = 0
    for name, place in wanted:
        if name not in hashes:
            sys.exit(f"{wheel}: RECORD does not list {name}")
        path = os.path.join(destination, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with archive.open(name) as source, open(path, "wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
        if digest(path) != hashes[name]:
            sys.exit(f"{wheel}: {name} is not what RECORD says it is")
        written += os.path.getsize(path)

print(written)
